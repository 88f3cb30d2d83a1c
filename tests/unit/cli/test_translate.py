"""`translate` through the command: one line out per line in, whatever is in it and wherever it comes from."""

from __future__ import annotations

import gzip
import io
import select
import subprocess
import sys
from pathlib import Path

import pytest
from random_run import made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator
from transformer_mt.text.lines import is_blank

ODD = [
    b"abd eik",
    b"",
    "a\u2028b".encode(),
    "a\u0085b".encode(),
    b"a\x0bb\x0cc\x1cd",
    b"a\rb",
    b"crlf line\r",
    b"",
    b"",
    "\u3000".encode(),
    "\ufeff".encode(),
    b"tab\tin it  ",
    b"nul\x00here",
    "猫 😀".encode(),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one run")


def _expected(run: Path, lines: list[str]) -> list[str]:
    return [item.text for item in Translator.load(run, device="cpu").translate(lines)]


def _lines(raw: bytes) -> list[str]:
    assert raw == b"" or raw.endswith(b"\n")
    return raw.decode().split("\n")[:-1]


@pytest.mark.parametrize("final", [b"", b"\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_input_line_gives_one_output_line(
    run: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], final: bytes, packed: bool
) -> None:
    """B001, B002, B004, B007, B008, B024: a line ends at a newline byte and nowhere else, with or without a
    last one; a BOM at the start is no text; blank lines stay where they are."""
    content = b"\xef\xbb\xbf" + b"\n".join(ODD) + final
    path = tmp_path / ("in.gz" if packed else "in.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert main(["translate", str(run), str(path), "--device", "cpu"]) == 0
    captured = capfdbinary.readouterr()
    texts = [raw.decode().removesuffix("\r") for raw in ODD]
    assert _lines(captured.out) == _expected(run, texts)
    assert [text == "" for text in _lines(captured.out)] == [is_blank(text) for text in texts]


def test_files_are_joined_and_output_appears_whole(run: Path, tmp_path: Path) -> None:
    """B185: the output file is written beside and renamed; an old one survives a failure."""
    lines = made_up_lines(6, seed=3)
    first, second, out = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "out.txt"
    first.write_bytes("\n".join(lines[:4]).encode())
    second.write_bytes("\n".join(lines[4:]).encode())
    assert (
        main(["translate", str(run), str(first), str(second), "--output", str(out), "--device", "cpu"]) == 0
    )
    before = out.read_bytes()
    assert _lines(before) == _expected(run, lines)
    second.write_bytes(b"fine\nbroken \xff\n")
    assert main(["translate", str(run), str(first), str(second), "--output", str(out)]) == 3
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt", "out.txt"]


@pytest.mark.parametrize(
    "case",
    [
        ("translate", ["", "in.txt"], "RUN"),
        ("translate", [".", ""], "FILE"),
        ("translate", [".", "--output", ""], "--output"),
        ("translate", [".", "--prefix", ""], "--prefix"),
        ("translate", [".", "--ensemble", ""], "--ensemble"),
        ("score", [".", "--src", "", "--tgt", "x"], "--src"),
        ("score", [".", "--src", "x", "--tgt", ""], "--tgt"),
        ("score", [".", "--output", ""], "--output"),
        ("evaluate", [""], "RUN"),
        ("evaluate", ["--hyp", "", "--ref", "x"], "--hyp"),
        ("evaluate", ["--hyp", "x", "--ref", "x", ""], "--ref"),
        ("evaluate", [".", "--json", ""], "--json"),
    ],
)
def test_an_empty_name_is_refused(
    case: tuple[str, list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As a variable of a script is that was never set: it is neither this folder nor no flag at all."""
    verb, words, name = case
    with pytest.raises(SystemExit, match="2"):
        main([verb, *words])
    assert f"argument {name}: is empty; name a file or folder" in capsys.readouterr().err


def test_an_output_that_is_an_input_or_has_no_folder_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B184, B185: before any work, with the path, and nothing written over; links to the input included."""
    source, link = tmp_path / "in.txt", tmp_path / "link.txt"
    source.write_bytes(b"abd\n")
    link.symlink_to(source)
    for output, message in [
        (source, "is also the input"),
        (link, "is also the input"),
        (tmp_path, "is a folder; name a file"),
        (tmp_path / "no" / "out.txt", "there is no folder"),
    ]:
        assert main(["translate", str(run), str(source), "--output", str(output)]) == 2
        assert message in capsys.readouterr().err
    assert source.read_bytes() == b"abd\n"
    assert link.is_symlink()


def test_n_best_lists_are_tables(
    run: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """B069: line, rank, score, flags, source, text; scores fall, texts differ, a blank line has its row."""
    source = tmp_path / "in.txt"
    source.write_bytes(b"abd eik\n\nlm nor\n")
    assert main(["translate", str(run), str(source), "--nbest", "3", "--beam-size", "9"]) == 0
    rows = [line.split("\t") for line in _lines(capfdbinary.readouterr().out)]
    ranks = {number: [row[1] for row in rows if row[0] == number] for number in ("1", "2", "3")}
    assert list(dict.fromkeys(row[0] for row in rows)) == ["1", "2", "3"]
    assert ranks["2"] == ["1"]
    assert ranks["1"] == ["1", "2", "3"]
    assert [row[3:] for row in rows if row[0] == "2"] == [["", "", ""]]
    assert {row[4] for row in rows if row[0] == "3"} == {"lm nor"}
    scores = [float(row[2]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    assert len({row[5] for row in rows[:3]}) == 3


def test_flags_override_the_recipe_through_its_checks(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong value or a misspelt flag ends with code 2 and a word on what is allowed."""
    source = tmp_path / "in.txt"
    source.write_bytes(b"abd eik\n")
    assert main(["translate", str(run), str(source), "--beam-size", "0"]) == 2
    assert "--beam-size: " in capsys.readouterr().err
    assert (
        main(["translate", str(run), str(source), "--beam-size", "1", "--max-len-a", "0", "--max-len-b", "2"])
        == 0
    )
    captured = capsys.readouterr()
    assert "cut off at their longest length" in captured.err or captured.err == ""
    with pytest.raises(SystemExit) as stop:
        main(["translate", str(run), str(source), "--beamsize", "3"])
    assert stop.value.code == 2


def test_a_run_that_cannot_tell_long_lines_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, before anything is translated; not where lines shall stay whole, nor of a run that can tell."""
    (tmp_path / "in").write_bytes(b"a\n" * 3)
    words = [str(tmp_path / "in"), "--device", "cpu", "--buffer-size", "1"]
    old, new = random_run(tmp_path / "old", sentences=None), random_run(tmp_path / "new")
    for run, more, notes in (
        (old, [], 1),
        (old, ["--no-split-long"], 0),
        (old, ["--quiet"], 0),
        (new, [], 0),
    ):
        assert main(["translate", str(run), *words, *more]) == 0
        said = capsys.readouterr().err
        assert said.count(f"note: {run} does not know how many sentences its training lines had") == notes


def test_cut_off_translations_are_counted_on_stderr(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B054, B182: a note with the number of lines and the first of them, never in the text."""
    source = tmp_path / "in.txt"
    source.write_bytes(b"\n" + b"abd eik lm\n" * 3)
    translator = Translator.load(run, device="cpu", max_len_a=0.0, max_len_b=1)
    cut = sum(item.at_limit for item in translator.translate(["abd eik lm"] * 3))
    assert cut == 3
    assert (
        main(["translate", str(run), str(source), "--max-len-a", "0", "--max-len-b", "1", "--device", "cpu"])
        == 0
    )
    captured = capsys.readouterr()
    assert "3 of 4 translations were cut off at their longest length, first in line 2" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere"], 5, "nowhere: no such run directory; `train` writes one, the run_dir of its recipe"),
        (["RUN", "--ensemble", "nowhere"], 5, "nowhere: no such run directory"),
        (["RUN", "no.txt"], 3, "no.txt: cannot be read"),
        (["RUN", "--checkpoint", "7"], 5, "has no checkpoint of step 7; it has 20"),
        (["RUN", "--nbest", "4"], 2, "--nbest: `nbest` must not exceed"),
        (["RUN", "--checkpoint", "newest"], 2, "must be best, latest, averaged or the number"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """B184: a code that is not 0, the path or key in the message, no traceback."""
    arguments = [str(run) if word == "RUN" else word for word in arguments]
    assert main(["translate", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_bad_bytes_on_stdin_end_it_with_line_and_byte(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B020: what came before is translated and out, the error names the line."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abd\nb\xff\n")))
    assert main(["translate", str(run), "--device", "cpu"]) == 3
    captured = capsys.readouterr()
    assert captured.out == _expected(run, ["abd"])[0] + "\n"
    assert "stdin:2: byte 2 of the line (0xff) is not UTF-8" in captured.err


def _start(run: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "transformer_mt", "translate", str(run), "--device", "cpu", "--quiet"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_slow_writer_is_answered_line_by_line(run: Path) -> None:
    """B179: each line's translation can be read before the next is sent; then the end gives code 0,
    and a pipe gets no progress bar (B182)."""
    lines = ["abd eik", "", "lm nor stu"]
    expected = _expected(run, lines)
    with _start(run) as process:
        assert process.stdin and process.stdout and process.stderr
        for line, text in zip(lines, expected, strict=True):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 90)[0], "no answer"
            assert process.stdout.readline().decode() == text + "\n"
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_reader_that_closes_early_ends_it_quietly(run: Path) -> None:
    """B183: `… | head -1` shows no traceback; empty input gives empty output (B014)."""
    with _start(run) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"abd eik\n" * 3000)
        process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 141)
    empty = _start(run)
    assert empty.communicate(b"", timeout=120) == (b"", b"")
    assert empty.returncode == 0


LOADED = """
import sys
from transformer_mt.cli.main import main
code = main(sys.argv[1:])
print(code, *[name for name in {unwanted} if name in sys.modules], file=sys.stderr)
"""


def test_a_start_brings_in_nothing_that_translating_does_not_need(run: Path) -> None:
    """Pins imports of a second and more, which no test of the clock could pin on a busy machine."""
    unwanted = ["datasets", "pyarrow", "pandas", "sacrebleu", "tensorboard", "matplotlib", "scipy", "sympy"]
    unwanted += ["torch._dynamo", "torch._inductor", "torch.utils.tensorboard", "transformer_mt.training"]
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(unwanted=unwanted), "translate", str(run), "--device", "cpu"],
        input=b"abd eik\n",
        capture_output=True,
        check=False,
    )
    assert done.stdout.count(b"\n") == 1
    assert done.stderr.decode().split("\n")[-2] == "0"
