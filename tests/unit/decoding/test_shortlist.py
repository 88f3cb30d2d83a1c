"""Shortlists: what is in them, and that a line's translation depends on the line alone with them too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from random_run import VOCAB, made_up_lines

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding import shortlist as module
from transformer_mt.decoding.lexical_table import LINKS, LexicalTable
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.decoding.translator import Translation, Translator
from transformer_mt.errors import ConfigError
from transformer_mt.runtime.device import int8_features
from transformer_mt.text.lines import is_blank

EOS, BANNED = 3, (0, 1, 2)
CPU = torch.device("cpu")


def _table(src_vocab_size: int, tgt_vocab_size: int, seed: int) -> LexicalTable:
    draw = np.random.default_rng(seed)
    best = draw.integers(4, tgt_vocab_size, (src_vocab_size, LINKS), dtype=np.int32)
    best[::3, 2:] = -1
    return LexicalTable(best, draw.permutation(tgt_vocab_size).astype(np.int32))


def _shortlist(size: int, *, shared: bool = True, seed: int = 1, vocab_size: int = VOCAB) -> Shortlist:
    table = _table(vocab_size, vocab_size, seed)
    return Shortlist(table, size, shared=shared, eos_id=EOS, banned=BANNED, device=CPU)


@pytest.fixture(autouse=True)
def _few_frequent_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FREQUENT", 20)


@pytest.mark.parametrize("shared", [True, False])
def test_what_a_shortlist_holds(shared: bool) -> None:
    """Eos, the frequent, the table's and, with one vocabulary, the source's own; in order, each once, as many
    for every sentence, whatever the neighbours."""
    shortlist = _shortlist(5, shared=shared)
    src_ids = torch.tensor([[9, 4, 7, 3, 0, 0, 0], [330, 331, 332, 333, 334, 5, 3], [3, 0, 0, 0, 0, 0, 0]])
    found = shortlist.choose(src_ids)
    assert found is not None
    assert found.ids.shape == (3, 64)
    table = _table(VOCAB, VOCAB, 1)
    for row, sentence in zip(found.ids.tolist(), src_ids.tolist(), strict=True):
        assert row[0] == EOS
        assert row == sorted(set(row))
        assert not set(row) & set(BANNED)
        words = [word for word in sentence if word]
        wanted = {int(token) for word in words for token in table.best[word, :5] if token >= 0}
        assert wanted <= set(row)
        assert set(table.by_frequency[:20].tolist()) - set(BANNED) <= set(row)
        if shared:
            assert set(words) <= set(row)
    assert torch.equal(found.union[found.columns], found.ids)
    assert len(found.union) % 64 == 0
    alone = shortlist.choose(src_ids[1:2])
    assert alone is not None
    assert torch.equal(alone.ids, found.ids[1:2])
    kept = found.keep(torch.tensor([2, 0]))
    assert torch.equal(kept.ids, found.ids[[2, 0]])
    logits = torch.randn(2, 4, len(found.union))
    picked = kept.pick(logits)
    assert picked.shape == (2, 4, 64)
    assert torch.equal(picked[1, 3], logits[1, 3, found.columns[0]])
    assert kept.token_ids(torch.tensor([[0, 63], [1, 0]])).tolist() == [
        [EOS, found.ids[2, 63]],
        [found.ids[0, 1], EOS],
    ]


def test_long_sentences_use_all_tokens() -> None:
    """A shortlist as long as the vocabulary would only cost."""
    shortlist = _shortlist(5, vocab_size=71)
    assert shortlist.choose(torch.full((2, 7), 9)) is not None
    assert shortlist.choose(torch.full((2, 8), 9)) is None


def _translator(loaded: LoadedRun, *, models: int = 1, workers: int = 1, **options: object) -> Translator:
    decoding = DecodingConfig.model_validate({**loaded.recipe.decoding.model_dump(), **options})
    together = [loaded.model] * models
    return Translator(together, loaded.tokenizers, decoding, workers=workers, shortlist=_shortlist(4))


def _outcome(found: list[Translation]) -> list[list[tuple[str, float]]]:
    return [[(candidate.text, candidate.score) for candidate in item.nbest] for item in found]


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    "precision",
    ["fp32", pytest.param("int8", marks=pytest.mark.skipif(not int8_features(), reason="no int8 here"))],
)
def test_neighbours_and_workers_do_not_matter(loaded: LoadedRun, beam_size: int, precision: str) -> None:
    """Bit for bit, though the output matrix is cut to another union in every batch; long lines use all."""
    lines = [*made_up_lines(25, seed=3), " ".join(made_up_lines(12, seed=4))]
    options = {"beam_size": beam_size, "nbest": min(beam_size, 2), "precision": precision}
    expected = _outcome(_translator(loaded, **options).translate(lines))
    assert _outcome(_translator(loaded, batch_size=1, **options).translate(lines)) == expected
    assert _outcome(_translator(loaded, batch_size=7, **options).translate(lines[::-1])) == expected[::-1]
    assert _outcome(_translator(loaded, batch_size=7, workers=2, **options).translate(lines)) == expected


def test_scores_and_tokens_are_of_the_shortlist(loaded: LoadedRun) -> None:
    """The score is that of the teacher-forced model whose probabilities are spread over the shortlist alone;
    an ensemble of a model with itself gives the same."""
    lines = made_up_lines(8, seed=8)
    shortlist = _shortlist(4)
    plain = _translator(loaded).translate(lines)
    twice = _translator(loaded, models=2).translate(lines)
    used = set()
    for line, item, other in zip(lines, plain, twice, strict=True):
        ids = [*loaded.tokenizers.src.encode(line), EOS]
        src_ids = torch.tensor([ids + [0] * (-len(ids) % 8)])
        allowed = shortlist.choose(src_ids)
        assert allowed is not None
        own = allowed.ids[0]
        assert set(item.ids) <= set(own.tolist())
        mask = (src_ids != 0)[:, None, None]
        with torch.no_grad():
            hidden = loaded.model.hidden(src_ids, mask, torch.tensor([[2, *item.ids]]))
            log_probs = loaded.model.project(hidden, own)[0].log_softmax(-1)
        columns = torch.searchsorted(own, torch.tensor([*item.ids, EOS]))
        total = log_probs.gather(1, columns[:, None]).sum()
        assert item.score == pytest.approx(float(total) / (len(item.ids) + 1), abs=1e-4)
        assert other.score == pytest.approx(item.score, abs=1e-4)
        used.update(item.ids)
    assert used != set()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_shortest_translation_still_shows_something(loaded: LoadedRun, beam_size: int) -> None:
    """min_length and the limit hold in the columns of a shortlist as they do in token ids."""
    options = {"beam_size": beam_size, "max_len_a": 0.0, "max_len_b": 2, "min_length": 2}
    for item in _translator(loaded, **options).translate(made_up_lines(12, seed=5)):
        assert len(item.ids) == 2
        assert not any(is_blank(loaded.tokenizers.tgt.decode([token])) for token in item.ids)


def test_sizes_out_of_range_are_refused(run: Path) -> None:
    """Before anything is read or learned."""
    for size in (-1, LINKS + 1):
        with pytest.raises(ConfigError, match=rf"--shortlist {size}: must be 0 \(off\) or at most 100"):
            Translator.load(run, device="cpu", shortlist=size)
