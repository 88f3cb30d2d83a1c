"""Faults of lines, blanks and encodings that users of other toolkits met, tried through the commands.

One output line per input line, each what the line gives alone; pairs of a corpus that stay pairs.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from random_run import MODELS, made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.data.prepare import PreparedData, prepare
from transformer_mt.decoding.translator import Translator
from transformer_mt.recipe import load_recipe

Translate = Callable[..., list[str]]
Prepare = Callable[[bytes, bytes], int]

INPUTS: dict[str, tuple[bytes, list[str]]] = {
    "B001": (
        b"a\xe2\x80\xa8b\nc\xc2\x85d\ne\x0bf\ng\x1ch\n",
        ["a\u2028b", "c\x85d", "e\x0bf", "g\x1ch"],
    ),
    "B001 more": (
        "a\u2029b\nc\x0cd\ne\x1df\x1eg\nh\ri\n".encode(),
        ["a\u2029b", "c\x0cd", "e\x1df\x1eg", "h\ri"],
    ),
    "B006": (b"a\n\nb\n\n\nc\nd\n", ["a", "", "b", "", "", "c", "d"]),
    "B007 ended": (b"a\nb\n", ["a", "b"]),
    "B007 not ended": (b"a\nb", ["a", "b"]),
    "B007 blank line at the end": (b"a\nb\n\n", ["a", "b", ""]),
    "B011": (
        b"i i i i i i i i i\nu\nn n n n n\nt\ns s s s s s s\nr r r\n",
        ["i " * 8 + "i", "u", "n " * 4 + "n", "t", "s " * 6 + "s", "r r r"],
    ),
    "B013": (b"a\n\n\n\nb\n", ["a", "", "", "", "b"]),
    "B014 one blank line": (b"\n", [""]),
    "B014 nothing": (b"", []),
    "B016": (b"\na b c d e f\na\n", ["", "a b c d e f", "a"]),
    "B016 all blank": ("\n \n\u3000\n".encode(), ["", "", ""]),
    "B018": (b"a b\n\nc\n", ["a b", "", "c"]),
    "B022": (b"a\x00b c\nd\n", ["a\x00b c", "d"]),
    "B024": (b"\xef\xbb\xbfhello\nworld\n", ["hello", "world"]),
}


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one", model=MODELS[request.param])


@pytest.fixture
def translate(run: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Translate:
    """translate(content, *flags) -> the lines that come out."""

    def lines(content: bytes, *flags: str) -> list[str]:
        source = tmp_path / "in.txt"
        source.write_bytes(content)
        assert main(["translate", str(run), str(source), "--device", "cpu", *flags]) == 0
        out = capfdbinary.readouterr().out.decode()
        assert out == "" or out.endswith("\n")
        return out.split("\n")[:-1]

    return lines


@pytest.mark.parametrize("case", INPUTS)
def test_every_line_comes_out_where_it_went_in(run: Path, translate: Translate, case: str) -> None:
    """B001, B006, B007, B011, B013, B014, B016, B018, B022, B024: as many lines as newline bytes, blank where
    the source is, each what the line gives alone, for greedy and beam search, batches of 1, 2, 3 and 64."""
    content, lines = INPUTS[case]
    assert len(lines) == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    batches = ("1", "2", "3", "64") if case in ("B006", "B011") else ("1", "64")
    for beam, sizes in (("1", batches[1:]), ("4", batches)):
        alone = Translator.load(run, device="cpu", beam_size=int(beam))
        expected = [alone.translate([line])[0].text for line in lines]
        assert [text == "" for text in expected] == [line.strip("\u3000 ") == "" for line in lines]
        for size in sizes:
            assert translate(content, "--beam-size", beam, "--batch-size", size) == expected


def test_lists_of_translations_are_in_the_order_of_the_lines(run: Path, translate: Translate) -> None:
    """B011: n-best rows too, for every batch size and several workers."""
    content, lines = INPUTS["B011"]
    alone = Translator.load(run, device="cpu", beam_size=4, nbest=3)
    expected = [
        f"{number}\t{rank}\t{candidate.text}"
        for number, line in enumerate(lines, start=1)
        for rank, candidate in enumerate(alone.translate([line])[0].nbest, start=1)
    ]
    for flags in (("--batch-size", "2"), ("--batch-size", "64"), ("--batch-size", "1", "--workers", "2")):
        rows = translate(content, "--beam-size", "4", "--nbest", "3", *flags)
        cells = [row.split("\t") for row in rows]
        assert ["\t".join((row[0], row[1], row[-1])) for row in cells] == expected


def test_a_blank_neighbour_changes_no_score(run: Path) -> None:
    """B016: scores of the lines of one batch are those of each alone, whatever is blank beside them."""
    lines = ["", "a b c d e f", "a", "\u3000"]
    translator = Translator.load(run, device="cpu", beam_size=4)
    together = translator.translate(lines)
    for line, found in zip(lines, together, strict=True):
        assert found.score == pytest.approx(translator.translate([line])[0].score, abs=1e-4)


@pytest.mark.parametrize("case", ["B007 not ended", "B007 blank line at the end", "B013", "B014 nothing"])
def test_standard_input_gives_the_same_lines(
    run: Path,
    translate: Translate,
    case: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """B007, B013, B014: the way the input takes makes no difference."""
    content, _ = INPUTS[case]
    expected = translate(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["translate", str(run), "--device", "cpu"]) == 0
    assert capfdbinary.readouterr().out.decode().split("\n")[:-1] == expected


@pytest.fixture
def prepare_pairs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Prepare]:
    """prepare_pairs(src, tgt) -> the exit code of `prepare` with these bytes after 60 good pairs."""
    (tmp_path / "valid.de").write_bytes(b"gut\n")
    (tmp_path / "valid.en").write_bytes(b"good\n")
    (tmp_path / "recipe.yaml").write_text(
        f"run_dir: {tmp_path}/runs/one\n"
        "data: {train: train, valid: valid, src_lang: de, tgt_lang: en, max_length_ratio: 50}\n"
        "tokenizer: {type: bpe, vocab_size: 320}\n",
        encoding="utf-8",
    )
    head = [made_up_lines(GOOD, seed=seed) for seed in (1, 2)]

    def run_it(src: bytes, tgt: bytes) -> int:
        for lang, lines, end in (("de", head[0], src), ("en", head[1], tgt)):
            text = "".join(f"{number}{line}\n" for number, line in enumerate(lines))
            (tmp_path / f"train.{lang}").write_bytes(text.encode() + end)
        return main(["prepare", str(tmp_path / "recipe.yaml")])

    yield run_it
    capfd.readouterr()


GOOD = 60
"""Pairs before those of a test."""


def _prepared(folder: Path) -> PreparedData:
    return prepare(load_recipe(folder / "recipe.yaml"), lambda message: None)


def _pairs(data: PreparedData) -> list[tuple[str, str]]:
    """What the ids of the training pairs after the good ones spell."""
    tokenizers = data.tokenizers
    ids = [data.train.ids(index) for index in range(GOOD, len(data.train))]
    return [(tokenizers.src.decode(src[:-1]), tokenizers.tgt.decode(tgt[:-1])) for src, tgt in ids]


@pytest.mark.parametrize(
    ("src", "tgt", "pairs"),
    [
        pytest.param(
            b"a\nb\nc\n",
            b"A\nB1\xe2\x80\xa8B2\nC\n",
            [("a", "A"), ("b", "B1\u2028B2"), ("c", "C")],
            id="B002",
        ),
        pytest.param(
            b"one\rtwo\nthree\n",
            b"eins zwei\ndrei\n",
            [("one\rtwo", "eins zwei"), ("three", "drei")],
            id="B004 CR",
        ),
        pytest.param(b"a\r\nb\r\n", b"A\nB\n", [("a", "A"), ("b", "B")], id="B004 CRLF"),
        pytest.param(b"a\nb", b"A\nB\n", [("a", "A"), ("b", "B")], id="B008"),
        pytest.param(b"a\n\nc\nd\n", b"A\nB\n\nD\n", [("a", "A"), ("d", "D")], id="B019"),
        pytest.param(
            "a\n \u3000\nc\n".encode(), "A\nB\n\ufeff\u200b\n".encode(), [("a", "A")], id="B019 invisible"
        ),
        pytest.param(b"a\x00b c\nd\n", b"A\nD\n", [("a\x00b c", "A"), ("d", "D")], id="B022"),
        pytest.param(b"x\n\x00\x00\ny\n", b"X\nN\nY\x1aZ\n", [("x", "X"), ("y", "Y\x1aZ")], id="B023"),
    ],
)
def test_pairs_stay_pairs(
    prepare_pairs: Prepare, tmp_path: Path, src: bytes, tgt: bytes, pairs: list[tuple[str, str]]
) -> None:
    """B002, B004, B008, B018, B019, B022, B023: as many pairs read as `wc -l` counts lines, those with a side
    that nobody sees dropped and counted, the rest as they were."""
    assert prepare_pairs(src, tgt) == 0
    data = _prepared(tmp_path)
    assert _pairs(data) == pairs
    read = GOOD + tgt.count(b"\n")
    report = data.report["train"]
    assert (report["read"], report["kept"]) == (read, GOOD + len(pairs))
    empty = read - GOOD - len(pairs)
    assert report["dropped"].get("empty side", {"count": 0})["count"] == empty


def test_no_carriage_return_is_learned(prepare_pairs: Prepare, tmp_path: Path) -> None:
    """B004: CRLF on one side only, as a file from Windows has: no piece of the vocabulary holds one."""
    assert prepare_pairs(b"wort eins\r\n" * 30 + b"zwei\r\n", b"word one\n" * 30 + b"two\n") == 0
    data = _prepared(tmp_path)
    pieces = data.tokenizers.src.pieces(range(data.tokenizers.src.vocab_size))
    assert not any("\r" in piece for piece in pieces)
    assert _pairs(data) == [("wort eins", "word one"), ("zwei", "two")]


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        pytest.param((b"a\nb", b"A\nB\nC"), r"has 62 lines but .* has 63;", id="B008"),
        pytest.param((b"a\ncaf\xe9\n", b"A\nB\n"), r"train.de:62: byte 4 of the line \(0xe9\)", id="B020"),
        pytest.param((b"a\n", b"A\xed\xa0\x80\n"), r"train.en:61: byte 2 of the line", id="B020 surrogate"),
    ],
)
def test_a_corpus_that_cannot_be_read_leaves_nothing(
    prepare_pairs: Prepare,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    sides: tuple[bytes, bytes],
    said: str,
) -> None:
    """B008, B020: code 3, one line with files and lines, and no data that a later `train` would accept."""
    assert prepare_pairs(*sides) == 3
    captured = capfd.readouterr()
    assert captured.out == ""
    (error,) = [line for line in captured.err.split("\n") if "error" in line]
    assert re.search(said, error)
    assert list((tmp_path / "runs" / "prepared").iterdir()) == []


def test_a_byte_order_mark_is_no_text(prepare_pairs: Prepare, tmp_path: Path) -> None:
    """B024: the first line of a file gives the ids it gives without the mark, and the score is 100."""
    assert prepare_pairs(b"hello\n", b"world\n") == 0
    plain = _prepared(tmp_path).train.ids(0)[0].tolist()
    source = tmp_path / "train.de"
    source.write_bytes(b"\xef\xbb\xbf" + source.read_bytes())
    assert main(["prepare", str(tmp_path / "recipe.yaml")]) == 0
    assert _prepared(tmp_path).train.ids(0)[0].tolist() == plain


def _scored(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["evaluate", *map(str, arguments), "--lang", "en"]) == 0
    return capfd.readouterr().out


def test_evaluate_counts_the_lines_that_wc_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """B023, B024: NUL and DOS's end of file are text, and a byte-order mark on one side costs no point."""
    lines = [f"line {number} of the text" for number in range(100)]
    lines[49], lines[50] = "\0\0", "cut \x1a here"
    text = "".join(line + "\n" for line in lines).encode()
    (tmp_path / "hyp").write_bytes(text)
    (tmp_path / "ref").write_bytes(b"\xef\xbb\xbf" + text)
    found = _scored(capfd, "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref")
    assert "(100 lines)" in found
    assert re.search(r"BLEU +100\.00", found)
    (tmp_path / "hyp").write_bytes(text.replace(b"cut \x1a here", b"cut"))
    assert not re.search(
        r"BLEU +100\.00", _scored(capfd, "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref")
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_named_by_every_command(
    run: Path, prepare_pairs: Prepare, tmp_path: Path, capfd: pytest.CaptureFixture[str], encoding: str
) -> None:
    """B024: UTF-16 is refused with its name, whichever command reads it, and nothing comes out."""
    wide, plain = tmp_path / "wide.txt", tmp_path / "plain.txt"
    plain.write_text("hello\nworld\n", encoding="utf-8")
    wide.write_bytes("hello\nworld\n".encode(encoding))
    prepare_pairs(b"a\n", b"b\n")
    (tmp_path / "train.de").write_bytes((tmp_path / "train.de").read_bytes().decode().encode(encoding))
    capfd.readouterr()
    for command in (
        ["translate", str(run), str(wide)],
        ["evaluate", "--hyp", str(plain), "--ref", str(wide), "--lang", "en"],
        ["prepare", str(tmp_path / "recipe.yaml")],
    ):
        assert main(command) == 3
        captured = capfd.readouterr()
        assert captured.out == ""
        assert f"is {encoding[:6].upper()}, but text must be UTF-8" in captured.err


@pytest.mark.parametrize("number", [1000, 50_000])
def test_a_bad_byte_is_found_before_anything_is_translated(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    """B020: a file holds a Latin-1 byte, also beyond all lines that are translated together: code 3, file and
    line, no output at all."""
    source = tmp_path / "in.txt"
    source.write_bytes(b"good line\n" * (number - 1) + b"caf\xe9\n" + b"good line\n" * 40)
    assert main(["translate", str(run), str(source), "--device", "cpu"]) == 3
    captured = capfd.readouterr()
    assert captured.out == ""
    assert f"in.txt:{number}: byte 4 of the line (0xe9) is not UTF-8" in captured.err


def test_training_text_with_nul_trains_and_translates(
    prepare_pairs: Prepare, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """B022: prepare counts it, two updates run, and what stands after a NUL is still heard."""
    assert prepare_pairs(b"a\x00b c\nd\n", b"A\nD\n") == 0
    assert "NUL in the text (first: " in capfd.readouterr().out
    sizes = ["model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.num_encoder_layers=1"]
    sizes += ["model.num_decoder_layers=1", "decoding.beam_size=1", "training.precision=fp32"]
    recipe = str(tmp_path / "recipe.yaml")
    assert main(["train", recipe, "training.max_steps=2", "training.max_tokens=300", *sizes]) == 0
    capfd.readouterr()
    source = tmp_path / "in.txt"
    source.write_bytes(b"a\x00b c\nd\n")
    assert main(["translate", str(tmp_path / "runs" / "one"), str(source)]) == 0
    assert capfd.readouterr().out.count("\n") == 2
    tokenizer = _prepared(tmp_path).tokenizers.src
    assert tokenizer.decode(tokenizer.encode("a\x00b c")) == "a\x00b c"
