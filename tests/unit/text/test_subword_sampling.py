"""SubwordSampler: the two distributions, purity, and agreement with SentencePiece where nothing is random."""

from __future__ import annotations

import io
import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import sentencepiece

from transformer_mt.text import subword_sampling
from transformer_mt.text.lines import read_lines
from transformer_mt.text.subword_sampling import draw_from_lattice, drop_merges
from transformer_mt.text.tokenizer import EOS_ID, Tokenizer, train_tokenizer

_RANDOM = random.Random(5)
_SYLLABLES = [start + end for start in ("k", "l", "m", "st", "tr") for end in ("a", "en", "i", "os", "u")]
_WORDS = ["the", "猫が好き"] + ["".join(_RANDOM.choices(_SYLLABLES, k=3)) for _ in range(600)]
LINES = [" ".join(_RANDOM.choices(_WORDS, k=8)) for _ in range(400)]
TEXT = " ".join(_WORDS[:40]) + "  ü </s>"
DRAWS = 20_000


@cache
def _tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer(LINES, type=kind, vocab_size=360)


@pytest.fixture(params=["unigram", "bpe"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A small vocabulary of either kind."""
    return _tokenizer(request.param)


def assert_shares(drawn: Counter[tuple[str, ...]], expected: dict[tuple[str, ...], float]) -> None:
    """Each share within five standard deviations; the seeds are fixed, so there is no false alarm."""
    assert set(drawn) <= set(expected)
    assert sum(expected.values()) == pytest.approx(1.0)
    for pieces, share in expected.items():
        tolerance = 5 * math.sqrt(share * (1 - share) / DRAWS)
        assert drawn[pieces] / DRAWS == pytest.approx(share, abs=tolerance), pieces


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_share_of_merges_left_out(rate: float) -> None:
    """A merge left out at one step may come at the next: only an empty step ends the word.

    Pins drawing once per merge instead, where "cd" alone would be left out as often as "ab" alone.
    """
    scores = {"a": -2.0, "b": -3.0, "c": -4.0, "d": -5.0, "ab": 0.0, "cd": -1.0}
    generator = random.Random(1)
    drawn = Counter(tuple(drop_merges("abcd", rate, generator, scores=scores)) for _ in range(DRAWS))
    keep = 1 - rate
    expected = {
        ("a", "b", "c", "d"): rate**2,
        ("ab", "c", "d"): keep * rate,
        ("a", "b", "cd"): rate * keep * rate,
        ("ab", "cd"): keep * keep + rate * keep * keep,
    }
    assert_shares(drawn, expected)


def test_order_of_merges() -> None:
    """The best piece first, the leftmost of equal ones; what two pieces make must be a piece itself."""
    generator = random.Random(1)
    scores = {"ab": -2.0, "bc": -1.0, "aa": 0.0, "abcd": -3.0}
    assert drop_merges("abc", 0.0, generator, scores=scores) == ["a", "bc"]
    assert drop_merges("aaa", 0.0, generator, scores=scores) == ["aa", "a"]
    assert drop_merges("aaaaa", 0.0, generator, scores=scores) == ["aa", "aa", "a"]
    assert drop_merges("abcd", 0.0, generator, scores=scores) == ["a", "bc", "d"]
    assert drop_merges("", 0.0, generator, scores=scores) == []


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_shares_of_segmentations(alpha: float) -> None:
    """Against all segmentations, counted one by one; "x" is no piece, "abx" is one."""
    scores = {"a": -2.0, "b": -2.5, "ab": -3.0, "ba": -3.5, "bab": -4.5, "abx": -9.0}
    word = "ababx"
    weights = {}
    for cuts in range(2 ** (len(word) - 1)):
        ends = [place for place in range(1, len(word)) if cuts >> (place - 1) & 1]
        pieces = tuple(word[a:b] for a, b in zip([0, *ends], [*ends, len(word)], strict=True))
        if all(piece in scores or piece == "x" for piece in pieces):
            weights[pieces] = math.exp(alpha * sum(scores.get(piece, 0.0) for piece in pieces))
    assert len(weights) > 6
    generator = random.Random(1)
    drawn = Counter(
        tuple(draw_from_lattice(word, alpha, generator, scores=scores, longest=3)) for _ in range(DRAWS)
    )
    assert_shares(drawn, {pieces: weight / sum(weights.values()) for pieces, weight in weights.items()})


def test_a_long_lattice_does_not_underflow() -> None:
    """Probabilities of long texts are below the smallest number; a draw must still be possible."""
    pieces = draw_from_lattice("ab" * 3000, 1.0, random.Random(1), scores={"a": -9.0, "ab": -9.5}, longest=2)
    assert "".join(pieces) == "ab" * 3000


def test_every_process_draws_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Pins the fault of SentencePiece's own generator, and any use of hash()."""
    tokenizer.save(tmp_path / "model")
    program = (
        "import json, sys; from transformer_mt.text.tokenizer import Tokenizer; "
        "tokenizer = Tokenizer.load(sys.argv[1]); "
        "print(json.dumps([tokenizer.sample(sys.argv[2], 0.02, seed) for seed in range(20)]))"
    )
    drawn = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program, str(tmp_path / "model"), TEXT],
                env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
                check=True,
                capture_output=True,
            ).stdout
        )
        for hash_seed in ("1", "2")
    ]
    assert drawn[0] == drawn[1] == [tokenizer.sample(TEXT, 0.02, seed) for seed in range(20)]
    assert len({str(ids) for ids in drawn[0]}) > 10


def test_draws_do_not_depend_on_other_calls(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order, other texts and rates, the global generator, and what is kept from before change nothing."""
    forward = [tokenizer.sample(TEXT, 0.02, seed) for seed in range(20)]
    monkeypatch.setattr(subword_sampling, "_CACHE_SIZE", 2)
    tokenizer.save(tmp_path / "model")
    fresh = Tokenizer.load(tmp_path / "model")
    backward = []
    for seed in reversed(range(20)):
        random.seed(seed)
        fresh.encode(TEXT)
        fresh.sample(TEXT[::-1], 0.02, seed)
        fresh.sample(TEXT, 0.7, seed)
        backward.append(fresh.sample(TEXT, 0.02, seed))
    assert backward[::-1] == forward


def test_each_word_is_drawn_by_itself() -> None:
    """Neither the same word twice nor different words in a text are always cut alike; a word has 64 ways."""
    tokenizer = _tokenizer("bpe")
    word = "".join(_WORDS[5:8])
    ways = {tuple(tokenizer.sample(word, 0.4, seed)) for seed in range(1000)}
    assert 5 < len(ways) <= 64
    letters = [
        piece[1] for piece in tokenizer.pieces(range(260, 360)) if piece[0] == "\u2581" and len(piece) == 2
    ]
    patterns = {tuple(len(tokenizer.sample(letter, 0.3, seed)) for seed in range(200)) for letter in letters}
    assert len(patterns) == len(letters) > 1
    twice = [tokenizer.sample(f"{word} {word}", 0.4, seed) for seed in range(50)]
    assert any(ids[: len(ids) // 2] != ids[len(ids) // 2 :] for ids in twice)


def test_typed_control_words_are_plain_text(tokenizer: Tokenizer) -> None:
    """B026: neither "</s>" nor the name of a byte may become the piece of that name."""
    for seed in range(20):
        for text in ("</s>", "<pad> <s> <unk>", "a</s>b", "<0x0A>"):
            ids = tokenizer.sample(text, 0.3, seed)
            assert min(ids) > EOS_ID
            assert tokenizer.decode(ids) == text


def test_pieces_keep_within_words(tokenizer: Tokenizer) -> None:
    """What allows each word to be drawn by itself."""
    assert not any("\u2581" in piece[1:] for piece in tokenizer.pieces(range(tokenizer.vocab_size)))


def test_a_model_whose_pieces_cross_words() -> None:
    """A vocabulary brought along may hold pieces with spaces inside; they must be drawn too."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["in the cat", "in the hat", "on the mat"] * 30),
        model_writer=model,
        model_type="bpe",
        vocab_size=290,
        byte_fallback=True,
        split_by_whitespace=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    tokenizer = Tokenizer.from_bytes(model.getvalue())
    text = "in the hat\non the cat"
    plain = tokenizer.encode(text)
    assert any("\u2581" in piece[1:] for piece in tokenizer.pieces(plain))
    assert tokenizer.sample(text, 0.0, 1) == plain


@pytest.mark.parametrize(("kind", "rate"), [("bpe", 0.0), ("unigram", 1e4)])
def test_every_piece_can_be_drawn(kind: str, rate: float) -> None:
    """Without chance each piece's text is cut as by SentencePiece; pins a longest piece out of reach."""
    tokenizer = _tokenizer(kind)
    for piece in tokenizer.pieces(range(260, 360)):
        text = piece.lstrip("\u2581")
        assert tokenizer.sample(text, rate, 1) == tokenizer.encode(text)


@pytest.mark.realdata
@pytest.mark.parametrize("source", ["multi30k/train.de.xz", "tatoeba-zh-en/train.zh.xz"])
@pytest.mark.parametrize(("kind", "rate"), [("bpe", 0.0), ("unigram", 1e4)])
def test_real_text(shared_data: Path, source: str, kind: str, rate: float) -> None:
    """Without chance (no merge left out, or only the best segmentation left) it is SentencePiece's own."""
    lines = list(islice(read_lines(shared_data / source), 3000))
    tokenizer = train_tokenizer(lines, type=kind, vocab_size=2500)
    for line in lines[::2]:
        assert tokenizer.sample(line, rate, 1) == tokenizer.encode(line)
        assert tokenizer.decode(tokenizer.sample(line, 0.3, 1)) == line
