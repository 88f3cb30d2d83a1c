"""Where a model looks while it writes its own translation: one map for each sentence.

Speaks to any model that has `cross_attention`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from transformer_mt.data.batch import make_batch
from transformer_mt.evaluation.comparison import AttentionMap
from transformer_mt.model.protocol import Seq2SeqModel
from transformer_mt.text.lines import is_blank
from transformer_mt.text.tokenizer import EOS_ID, Tokenizers
from transformer_mt.text.words import counts_characters, units

_SENTENCES = 3
# Shorter sentences show little, and longer ones make pictures that cannot be read.
_WORDS, _CHARACTERS = range(8, 19), range(12, 31)
_DIGITS = 4


def moderate_lines(sources: Sequence[str]) -> list[int]:
    """The first three lines of moderate length, from 0; where none is, the first that are not blank."""
    characters = counts_characters(sources)
    allowed = _CHARACTERS if characters else _WORDS
    fitting = [
        line for line, text in enumerate(sources) if len(units(text, characters=characters)) in allowed
    ]
    return (fitting or [line for line, text in enumerate(sources) if not is_blank(text)])[:_SENTENCES]


@torch.no_grad()
def attention_map(
    system: str,
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    source: str,
    translation: str,
    *,
    device: torch.device,
) -> AttentionMap | None:
    """Attention of the last decoder layer, mean over heads, with the translation given to the model.

    Args:
        system: the name it shall have.
        model: in eval mode, on `device`.

    Returns:
        None where a side is longer than the positions that the model has learned.
    """
    src_ids = [*tokenizers.src.encode(source), EOS_ID]
    tgt_ids = [*tokenizers.tgt.encode(translation), EOS_ID]
    if model.max_length is not None and max(len(src_ids), len(tgt_ids)) > model.max_length:
        return None
    batch = make_batch([(src_ids, tgt_ids)]).to(device)
    weights = model.cross_attention(batch.src_ids, batch.src_mask, batch.decoder_input_ids)[0]  # (T, S)
    return AttentionMap(
        system=system,
        source=tuple(tokenizers.src.pieces(src_ids)),
        target=tuple(tokenizers.tgt.pieces(tgt_ids)),
        weights=tuple(tuple(round(weight, _DIGITS) for weight in row) for row in weights.tolist()),
    )
