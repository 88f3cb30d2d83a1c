"""The text and score of a line depend on the line alone: not on batch size, neighbours or order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import small_config

from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.translator import Translation, Translator
from transformer_mt.model.build import Model, build_model
from transformer_mt.text.corpus import read_pairs
from transformer_mt.text.tokenizer import Tokenizers, train_tokenizer

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "multi30k"


def _lines(count: int, seed: int) -> list[str]:
    """Lines of 1 to 22 made-up words."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abdeiklmnorstu", k=draw.randint(1, 7))) for _ in range(80)]
    return [" ".join(draw.choices(words, k=draw.randint(1, 22))) for _ in range(count)]


def _tokenizers(lines: list[str], vocab_size: int) -> Tokenizers:
    tokenizer = train_tokenizer(lines, type="bpe", vocab_size=vocab_size)
    return Tokenizers(tokenizer, tokenizer)


ROTARY = {"positions": "rotary", "d_ff": 160}
SINUSOIDAL = {"positions": "sinusoidal", "d_ff": 160}
LSTM = {"architecture": "lstm", "tied_embeddings": "none"}
FED_LSTM = {**LSTM, "attention": "additive", "input_feeding": True}


def _model(vocab_size: int, seed: int, **options: Any) -> Model:
    torch.manual_seed(seed)
    sizes = {"d_model": 96, "num_encoder_layers": 1, "num_decoder_layers": 1}
    return build_model(small_config(**{**sizes, **options}), vocab_size, vocab_size).eval()


def _decoding(**options: object) -> DecodingConfig:
    return DecodingConfig.model_validate({"max_len_a": 0.2, "max_len_b": 3, **options})


def _outcome(translations: list[Translation]) -> list[list[tuple[str, float]]]:
    return [[(candidate.text, candidate.score) for candidate in line.nbest] for line in translations]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("beam_size", "options", "threads", "count"),
    # Two threads that share busy cores wait for each other at every step: few lines suffice there.
    [
        (1, ROTARY, 1, 40),
        (2, SINUSOIDAL, 1, 40),
        (5, ROTARY, 1, 40),
        (1, ROTARY, 2, 8),
        (5, ROTARY, 2, 8),
        (1, FED_LSTM, 1, 40),
        (5, LSTM, 1, 40),
        (5, LSTM, 2, 8),
    ],
)
def test_batch_size_and_neighbours_do_not_matter(
    beam_size: int, options: dict[str, Any], threads: int, count: int
) -> None:
    """Pins B016, B074, B075 and the rounding of matrix products with few rows: texts and scores are equal
    bit for bit. No tolerance, hence no chance in it."""
    torch.set_num_threads(threads)
    lines = _lines(count, seed=beam_size)
    lines[3:3] = ["", " \u3000", "\ufeff"]
    tokenizers = _tokenizers([*lines, *_lines(40, seed=99)], 340)
    model = _model(340, 7, **options)

    def outcome(batch_size: int, texts: list[str]) -> list[list[tuple[str, float]]]:
        decoding = _decoding(beam_size=beam_size, batch_size=batch_size)
        return _outcome(Translator([model], tokenizers, decoding).translate(texts))

    expected = outcome(64, lines)
    assert outcome(1, lines) == expected
    assert outcome(2, lines) == expected
    assert outcome(7, lines) == expected
    assert outcome(64, lines[::-1]) == expected[::-1]
    assert len({candidates[0][0] for candidates in expected}) > count // 4


@pytest.mark.slow
@pytest.mark.realdata
def test_a_real_test_set_gives_one_text_at_every_batch_size() -> None:
    """1,000 lines of Multi30k through a model with random weights, fp32, batch sizes 1, 7 and 64."""
    if not (DATA / "test2016.de.xz").is_file():
        pytest.skip("needs Multi30k in ../shared/data/multi30k")
    lines = [source for source, _ in read_pairs("test2016", DATA, "de", "en")]
    tokenizers = _tokenizers(lines, 700)
    model = _model(700, 3, d_model=64, d_ff=128)
    outcomes = {}
    for batch_size in (1, 7, 64):
        decoding = _decoding(beam_size=3, batch_size=batch_size, max_len_a=0.1, max_len_b=2)
        translations = Translator([model], tokenizers, decoding).translate(lines)
        outcomes[batch_size] = _outcome(translations)
    assert len(outcomes[64]) == len(lines) == 1000
    assert outcomes[1] == outcomes[64]
    assert outcomes[7] == outcomes[64]


def test_n_best_lists_do_not_depend_on_neighbours() -> None:
    """The same for lists of several translations, whose texts are all different (B069)."""
    lines = _lines(30, seed=5)
    tokenizers = _tokenizers(lines, 340)
    model = _model(340, 9, d_ff=160)
    outcomes = []
    for batch_size in (1, 64):
        decoding = _decoding(beam_size=4, nbest=4, batch_size=batch_size)
        outcomes.append(_outcome(Translator([model], tokenizers, decoding).translate(lines)))
    assert outcomes[0] == outcomes[1]
    for candidates in outcomes[0]:
        texts = [text for text, _ in candidates]
        scores = [score for _, score in candidates]
        assert len(set(texts)) == len(texts)
        assert scores == sorted(scores, reverse=True)
        assert all(text.strip() for text in texts)
