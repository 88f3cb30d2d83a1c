"""Tokenizer: special ids, what training makes of odd text, and which models are refused."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from transformer_mt.errors import ConfigError, DataError
from transformer_mt.runtime.cores import Cores
from transformer_mt.text import vocabulary
from transformer_mt.text.tokenizer import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    Tokenizers,
    load_tokenizers,
    train_tokenizer,
)

_RANDOM = random.Random(5)
_WORDS = ["the", "cat"] + ["".join(_RANDOM.choices("aeiklmnostu", k=5)) for _ in range(80)]
LINES = [" ".join(_RANDOM.choices(_WORDS, k=8)) for _ in range(200)]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def kind(request: pytest.FixtureRequest) -> str:
    """Both segmentation algorithms."""
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizer(kind: str) -> Tokenizer:
    """A small vocabulary."""
    return train_tokenizer(LINES, type=kind, vocab_size=330)


def _foreign_model(**options: Any) -> bytes:
    model = io.BytesIO()
    settings: dict[str, Any] = {
        "vocab_size": 330,
        "byte_fallback": True,
        "minloglevel": 2,
        "pad_id": 0,
        "unk_id": 1,
    }
    settings |= {"bos_id": 2, "eos_id": 3, "normalization_rule_name": "identity"}
    settings |= {"remove_extra_whitespaces": False, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=model, **settings)
    return model.getvalue()


def test_size_and_special_ids(tokenizer: Tokenizer) -> None:
    """B162: the vocabulary has exactly the size asked for, special pieces included."""
    assert tokenizer.vocab_size == 330
    assert tokenizer.pieces([PAD_ID, UNK_ID, BOS_ID, EOS_ID, 4, 259]) == [
        "<pad>",
        "<unk>",
        "<s>",
        "</s>",
        "<0x00>",
        "<0xFF>",
    ]


def test_typed_control_words_are_plain_text(tokenizer: Tokenizer) -> None:
    """B026: "</s>" typed by a user must not end the sentence, nor "<0x0A>" start a new line."""
    for text in ("</s>", "<pad> <s> <unk>", "a</s>b", "<0x0A>"):
        ids = tokenizer.encode(text)
        assert min(ids) > EOS_ID
        assert 4 + 0x0A not in ids
        assert tokenizer.decode(ids) == text


def test_decoding_passes_over_special_tokens(tokenizer: Tokenizer) -> None:
    """B040: no " ⁇ " and no "<unk>" in final text."""
    ids = tokenizer.encode("the cat")
    assert tokenizer.decode([BOS_ID, *ids, UNK_ID, EOS_ID, PAD_ID, PAD_ID]) == "the cat"
    assert tokenizer.decode([]) == ""


def test_half_a_surrogate_pair_becomes_a_question_mark(tokenizer: Tokenizer) -> None:
    """A Python string may hold what is no text; it must not end the whole job."""
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a?b"
    assert tokenizer.encode_batch(["\udfff"]) == [tokenizer.encode("?")]


def test_threads_are_begun_for_much_text_alone(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that someone waits for is not kept waiting for threads; the ids are the same."""
    cores = Cores(3, "as the test says")
    monkeypatch.setattr("transformer_mt.text.tokenizer.usable_cores", lambda: cores)
    real, begun = tokenizer._processor, list[int]()

    class Processor:
        def encode(self, texts: list[bytes], *, num_threads: int, **options: object) -> list[list[int]]:
            begun.append(num_threads)
            return real.encode(texts, num_threads=num_threads, **options)

    one = "the cat sat on the mat"
    expected = real.encode(one)
    monkeypatch.setattr(tokenizer, "_processor", Processor())
    for number in (1, 2000):
        assert tokenizer.encode_batch([one] * number) == [expected] * number
    assert begun == [1, 3]


def test_flat_ids_are_those_of_each_text(tokenizer: Tokenizer) -> None:
    """One row of ids for many texts, each ending in eos, an empty text too."""
    texts = ["the cat", "", "xyz\u2028 ä", "the"]
    ids, lengths = tokenizer.encode_flat([text.encode() for text in texts])
    expected = [[*tokenizer.encode(text), EOS_ID] for text in texts]
    assert ids.tolist() == [token for row in expected for token in row]
    assert lengths.tolist() == [len(row) for row in expected]
    assert [part.tolist() for part in tokenizer.encode_flat([])] == [[], []]


def test_training_is_reproducible(kind: str, tokenizer: Tokenizer) -> None:
    """B145: the same lines give the same model, byte for byte."""
    again = train_tokenizer(iter(LINES), type=kind, vocab_size=330)
    assert again.fingerprint == tokenizer.fingerprint


def test_sampling_varies_with_the_seed(tokenizer: Tokenizer) -> None:
    """B147: different seeds give different draws."""
    text = " ".join(_WORDS[:12])
    assert len({tuple(tokenizer.sample(text, 0.2, seed)) for seed in range(30)}) > 1


@pytest.mark.parametrize("long_line", ["x y z " * 2500, "xyz" * 4000, "好" * 3000 + "xyz" * 10])
def test_long_lines_are_learned_from(kind: str, long_line: str) -> None:
    """B046: letters that occur only in a line over 4192 bytes are pieces, not bytes."""
    tokenizer = train_tokenizer([*LINES, long_line], type=kind, vocab_size=330)
    assert all(len(piece) < 6 for piece in tokenizer.pieces(tokenizer.encode("xyz")))


@pytest.mark.parametrize("odd", ["\0", "\u2585", "\t", "\u2581", "\u2047"])
def test_odd_characters_hide_no_line(kind: str, odd: str) -> None:
    """B022: SentencePiece skips lines that hold its reserved characters; the rest of the line must count."""
    tokenizer = train_tokenizer([*LINES, *[f"Ω {odd} Ω"] * 30], type=kind, vocab_size=330)
    assert tokenizer.pieces(tokenizer.encode("Ω"))[-1].endswith("Ω")
    if odd != "\u2581":
        assert tokenizer.decode(tokenizer.encode(f"a{odd}b")) == f"a{odd}b"


@pytest.mark.parametrize(
    "text", ["\u2581", "\u2581\u2581a b\u2581 c", "a\u2581\U0010fffd\U0010fffc\n", "a b"]
)
def test_any_text_comes_back_where_that_is_asked(kind: str, text: str) -> None:
    """U+2581 in bytes, and all around it as ever; though the characters that help to find it are there."""
    tokenizer = train_tokenizer([*LINES, "\U0010fffb" * 99], type=kind, vocab_size=330)
    ids = tokenizer.encode_exactly(text)
    assert tokenizer.decode(ids) == text
    pieces = "".join(tokenizer.pieces(ids)).replace("<0xE2><0x96><0x81>", "\u2581")
    assert pieces == "".join(tokenizer.pieces(tokenizer.encode(text)))


def test_rare_characters_are_spelled_in_bytes() -> None:
    """B033: an alphabet that fills the vocabulary loses its rarest characters to bytes, and no text."""
    alphabet = [chr(0x4E00 + number) for number in range(2000)]
    lines = ["".join(alphabet[:40])] * 2500 + [
        "".join(alphabet[start : start + 20]) for start in range(0, 2000, 20)
    ]
    tokenizer = train_tokenizer(lines, type="bpe", vocab_size=400)
    assert tokenizer.decode(tokenizer.encode("龘" + alphabet[1999])) == "龘" + alphabet[1999]
    assert len(tokenizer.pieces(tokenizer.encode(alphabet[1999]))) == 4
    assert len(tokenizer.pieces(tokenizer.encode(alphabet[5]))) == 2


def test_the_space_is_always_a_piece(kind: str) -> None:
    """A space rarer than what the vocabulary covers, spelled in bytes, would come back as U+2581."""
    tokenizer = train_tokenizer(["a b"] * 20 + ["xyz" * 4000], type=kind, vocab_size=264)
    assert tokenizer.decode(tokenizer.encode("a b")) == "a b"


def test_too_large_a_vocabulary_names_the_largest(kind: str) -> None:
    """B044: the size named works, and the next one does not."""
    with pytest.raises(
        ConfigError, match=r"^tokenizer.vocab_size: must be at most \d+ .* is 8000 instead$"
    ) as error:
        train_tokenizer(LINES, type=kind, vocab_size=8000)
    largest = int(str(error.value).split("at most ")[1].split()[0])
    assert train_tokenizer(LINES, type=kind, vocab_size=largest).vocab_size == largest
    with pytest.raises(ConfigError, match=f"at most {largest} for this training text"):
        train_tokenizer(LINES, type=kind, vocab_size=largest + 1)


@pytest.mark.parametrize("size", [8, 259, 268])
def test_too_small_a_vocabulary_names_the_smallest(kind: str, size: int) -> None:
    """B045: the size named works, and the one before does not."""
    with pytest.raises(ConfigError, match=rf"must be at least \d+ .*, but is {size} instead") as error:
        train_tokenizer(LINES, type=kind, vocab_size=size)
    smallest = int(str(error.value).split("at least ")[1].split()[0])
    assert train_tokenizer(LINES, type=kind, vocab_size=smallest).vocab_size == smallest
    with pytest.raises(ConfigError, match="must be at least"):
        train_tokenizer(LINES, type=kind, vocab_size=smallest - 1)


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_no_text_is_an_error(lines: list[str]) -> None:
    """An empty corpus must not end in a C++ message."""
    with pytest.raises(DataError, match="training text is empty"):
        train_tokenizer(lines, type="bpe", vocab_size=300)


def test_training_says_nothing(capfd: pytest.CaptureFixture[str], kind: str) -> None:
    """B182: SentencePiece logs hundreds of lines unless told not to."""
    train_tokenizer([*LINES, "x" * 9000], type=kind, vocab_size=330)
    with pytest.raises(ConfigError):
        train_tokenizer(LINES, type=kind, vocab_size=8000)
    captured = capfd.readouterr()
    assert captured.err == captured.out == ""


def test_save_and_load(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """A path with spaces and other letters works (B048)."""
    path = tmp_path / "mein Ordner 文" / "tokenizer.model"
    path.parent.mkdir()
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.fingerprint == tokenizer.fingerprint == Tokenizer.from_bytes(path.read_bytes()).fingerprint
    assert loaded.encode("the cat") == tokenizer.encode("the cat")


def test_shared_and_separate_vocabularies(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """B029: one file when the vocabulary is joint, one a side otherwise."""
    other = train_tokenizer(LINES, type="bpe", vocab_size=290)
    Tokenizers(tokenizer, tokenizer).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]
    assert load_tokenizers(tmp_path).shared
    assert load_tokenizers(tmp_path / "tokenizer.model").shared
    (tmp_path / "two").mkdir()
    Tokenizers(tokenizer, other).save(tmp_path / "two")
    loaded = load_tokenizers(tmp_path / "two")
    assert not loaded.shared
    assert (loaded.src.vocab_size, loaded.tgt.vocab_size) == (330, 290)


def test_models_that_cannot_be_used(tmp_path: Path) -> None:
    """Missing, damaged, with other ids, with normalisation, without byte fallback: one line each."""
    with pytest.raises(DataError, match="holds no tokenizer.model and no pair"):
        load_tokenizers(tmp_path)
    with pytest.raises(DataError, match="nowhere.model: the tokenizer cannot be read: No such file"):
        Tokenizer.load(tmp_path / "nowhere.model")
    with pytest.raises(DataError, match="is not a SentencePiece model, or a damaged one"):
        Tokenizer.from_bytes(b"no model")
    with pytest.raises(DataError, match="ids 0, 1, 2, 3, but have -1, 0, 1, 2"):
        Tokenizer.from_bytes(_foreign_model(pad_id=-1, unk_id=0, bos_id=1, eos_id=2))
    for change in (
        {"normalization_rule_name": "nmt_nfkc"},
        {"remove_extra_whitespaces": True},
        {"byte_fallback": False, "vocab_size": 60},
    ):
        with pytest.raises(DataError, match="changes text on the way to tokens and back"):
            Tokenizer.from_bytes(_foreign_model(**change))


def test_training_lines_are_drawn_from_the_whole_text() -> None:
    """B050: a sample of the head alone would never see what comes later."""
    drawn = vocabulary._draw((str(number) for number in range(10_000)), 500)
    assert len(set(drawn)) == 500
    assert 4_400 < sum(map(int, drawn)) / 500 < 5_600
    assert drawn == vocabulary._draw((str(number) for number in range(10_000)), 500)
    assert vocabulary._draw(["a", " ", "", "b"], 500) == ["a", "b"]


@pytest.mark.parametrize("type", ["bpe", "unigram"])
def test_spans_say_where_every_token_stands(type: str) -> None:
    """On text with spaces and bytes, and on ids as a model may write them: broken characters, special ids."""
    tokenizer = train_tokenizer(LINES, type=type, vocab_size=320)
    draw = random.Random(3)
    texts = ["", " ", "  the  cat ", "日本 the😀cat", "the cat\u0301", "\ufffd a\ufffd"]
    written = [tokenizer.encode(text) for text in texts]
    written += [[draw.randrange(320) for _ in range(draw.randrange(12))] for _ in range(300)]
    for ids in written:
        text, covered = tokenizer.decode(ids), set()
        for token, piece, (start, end) in zip(ids, tokenizer.pieces(ids), tokenizer.spans(ids), strict=True):
            covered |= set(range(start, end))
            if token <= EOS_ID:
                assert start == end
            elif tokenizer.is_byte(token):
                assert end == start + 1
                byte = bytes([int(piece[1:-1], 16)])
                assert byte in text[start:end].encode() or text[start:end] == "\ufffd"
            else:
                assert piece.replace("\u2581", " ") in (text[start:end], " " + text[start:end])
        assert covered == set(range(len(text)))
    assert tokenizer.spans(tokenizer.encode("日 the"))[-1][1] == 5
    the = tokenizer.encode("the")
    spans = tokenizer.spans(the * 2)
    assert spans[0][0] == 0 and spans[len(the)][0] == 3 and spans[-1][1] == 7
