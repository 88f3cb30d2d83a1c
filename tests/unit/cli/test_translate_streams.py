"""`translate` between other programs: coprocesses, pipes as files, readers that close early, a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from random_run import made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one run")


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return Translator.load(run, device="cpu")


def _start(run: Path, *words: str | Path, **streams: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "transformer_mt", "translate", run, *words, "--device", "cpu"]
    defaults = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(list(map(str, command)), **{**defaults, **streams})


def test_a_line_typed_at_a_terminal_is_answered_at_once(run: Path, translator: Translator) -> None:
    """B179: before the next is typed, and the end of the input ends it; two lines pasted are two."""
    ours, theirs = pty.openpty()
    with _start(run, stdin=theirs) as process:
        assert process.stdout and process.stderr
        os.close(theirs)
        for text in ("abd eik\n", "lm nor\nstu ab\n"):
            os.write(ours, text.encode())
            for line in text.splitlines():
                assert process.stdout.readline().decode() == translator.translate([line])[0].text + "\n"
        os.write(ours, b"\x04")
        assert process.stdout.read() == b""
        assert process.stderr.read().startswith(b"transformer-mt: 3 lines (0 blank), ")
    os.close(ours)
    assert process.returncode == 0


@pytest.mark.parametrize("first", ["in", "out"])
def test_a_named_pipe_is_answered_line_by_line(
    run: Path, translator: Translator, tmp_path: Path, first: str
) -> None:
    """B179: a FIFO as FILE and another as --output, opened in either order, are like stdin and stdout."""
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    with _start(run, tmp_path / "in", "--output", tmp_path / "out", "--format", "jsonl") as process:
        with contextlib.ExitStack() as stack:
            ends: dict[str, io.FileIO] = {}
            for name, mode in (("in", "w"), ("out", "r"))[:: 1 if first == "in" else -1]:
                ends[name] = stack.enter_context(io.FileIO(tmp_path / name, mode))
            receive = io.BufferedReader(ends["out"])
            for line in ("abd eik", "", "lm nor"):
                ends["in"].write(line.encode() + b"\n")
                answer = json.loads(receive.readline())
                assert answer["source"] == line
                assert answer["translation"] == translator.translate([line])[0].text
        assert process.communicate()[0] == b""
    assert process.returncode == 0
    assert (tmp_path / "out").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_process_substitution_and_head(run: Path, translator: Translator) -> None:
    """B183: `translate RUN <(...) | head -1` prints one line and ends quietly, with workers too."""
    script = '"$0" -m transformer_mt translate "$1" <(yes "abd eik" | head -4000) --device cpu --workers 2'
    script += ' --buffer-size 100 | head -1; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, str(run)], capture_output=True, check=False, timeout=120
    )
    line, code = done.stdout.decode().splitlines()
    assert line == translator.translate(["abd eik"])[0].text
    assert code in ("0", "141")
    assert done.stderr == b""


def _stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("kind", ["text", "tsv", "jsonl", "moses"])
def test_buffers_change_nothing(
    run: Path,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """B074, B182: files, stdin by its sign, any buffer: the same bytes, numbered through; --quiet."""
    content = ("\n".join(made_up_lines(5, seed=8)) + "\n\n").encode()
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(content)
    outputs = set()
    for size, second in (("1", "-"), ("4", "-"), ("1000", str(tmp_path / "b"))):
        _stdin(monkeypatch, content)
        words = ["translate", str(run), str(tmp_path / "a"), second, "--device", "cpu", "--quiet"]
        assert main([*words, "--format", kind, "--buffer-size", size]) == 0
        out, err = capfdbinary.readouterr()
        assert (out.count(b"\n"), err) == (12, b"")
        outputs.add(out)
    assert len(outputs) == 1


def test_stdout_by_its_name_is_stdout(
    run: Path, translator: Translator, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Were it opened as a file, what stands there already would be lost."""
    (tmp_path / "in").write_bytes(b"abd eik\n")
    os.write(1, b"before\n")
    assert main(["translate", str(run), str(tmp_path / "in"), "--output", "/dev/stdout"]) == 0
    assert capfd.readouterr().out == "before\n" + translator.translate(["abd eik"])[0].text + "\n"


def test_a_full_device_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B185: exit code 3 and the name of the device."""
    (tmp_path / "in").write_bytes(b"abd eik\n")
    assert main(["translate", str(run), str(tmp_path / "in"), "--output", "/dev/full"]) == 3
    message = "transformer-mt: error: /dev/full: No space left on device; check the path"
    assert capsys.readouterr().err.startswith(message)


def test_a_full_stdout_is_named(run: Path, tmp_path: Path) -> None:
    """Pins that the message says where: a disk may be full in many places."""
    (tmp_path / "in").write_bytes(b"abd eik\n")
    words = [sys.executable, "-m", "transformer_mt", "translate", str(run), str(tmp_path / "in"), "--quiet"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("transformer-mt: error: stdout: No space left on device; check the path")


def test_an_output_that_is_read_is_refused(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B185: `translate RUN --output f < f`, a hard link to the input, and every name that is written to."""
    source = tmp_path / "f"
    source.write_bytes(b"abd\n")
    os.link(source, tmp_path / "g.partial")
    assert main(["translate", str(run), str(source), "--output", str(tmp_path / "g")]) == 2
    assert "g.partial: is also the input" in capfd.readouterr().err
    before = os.dup(0)
    with source.open("rb") as stdin:
        os.dup2(stdin.fileno(), 0)
    try:
        monkeypatch.setattr(sys, "stdin", os.fdopen(0, encoding="utf-8", closefd=False))
        assert main(["translate", str(run), "--output", str(source)]) == 2
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert "f: is also the input /dev/stdin; name another file" in capfd.readouterr().err
    assert source.read_bytes() == b"abd\n"


def test_an_ensemble_is_several_runs(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What the runs say together; a run with another vocabulary is refused."""
    other, foreign = random_run(tmp_path / "other", seed=4), random_run(tmp_path / "no", tokenizer_seed=2)
    lines = made_up_lines(8, seed=5)
    (tmp_path / "in").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["--device", "cpu", "--quiet", "--format", "tsv", str(tmp_path / "in")]
    assert main(["translate", str(run), "--ensemble", str(other), *words]) == 0
    rows = [row.split("\t") for row in capfd.readouterr().out.split("\n")[:-1]]
    together = Translator.load(run, other, device="cpu").translate(lines)
    assert [float(row[2]) for row in rows] == pytest.approx([one.score for one in together], abs=1e-6)
    alone = Translator.load(run, device="cpu").translate(lines)
    assert [float(row[2]) for row in rows] != pytest.approx([one.score for one in alone], abs=1e-3)
    assert main(["translate", str(run), "--ensemble", str(foreign), *words]) == 5
    assert "has another tokenizer" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--buffer-size", "0"], "--buffer-size 0: must be at least 1"),
        (["--resume"], "--resume: goes on with an output file; name that file with --output"),
        (["--resume", "--output", "/dev/null"], "--resume: goes on with an output file"),
        (["--format", "text", "--nbest", "2"], "--format text: has no room for what --nbest gives; use tsv"),
        (["--format", "text", "--token-scores"], "--format text: has no room for what --token-scores gives"),
        (["--format", "text", "--alignment", "1"], "--format text: has no room for what --alignment gives"),
        (["--alignment", "2"], "--alignment 2: must be `mean` or a decoder layer from 1 to 1"),
        (["--prefix-field", "x"], "--prefix-field: lines of text have no fields; add --input-format jsonl"),
        (
            ["--prefix", "x", "--prefix-field", "y"],
            "--prefix-field: --prefix names a file already; leave one",
        ),
        (["--source-field", "x"], "--source-field: lines of text have no fields; add --input-format jsonl"),
        (["--format", "jsonl", "--added-prefix", "\udcff"], r"--added-prefix '\udcff': is no name of"),
        (["--added-prefix", "x"], "--added-prefix: text has no fields; add --format jsonl"),
    ],
)
def test_flags_that_do_not_fit_together_are_refused(
    run: Path, words: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before stdin is touched, in one line, with code 2."""
    assert main(["translate", str(run), "--device", "cpu", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"transformer-mt: error: {message}")
    assert captured.err.count("\n") == 1


def test_a_layer_is_a_number_or_the_mean(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What else there is to write is said."""
    with pytest.raises(SystemExit):
        main(["translate", str(run), "--alignment", "x"])
    assert "argument --alignment: x: must be the number of a layer from 1, or mean" in capsys.readouterr().err


def test_json_lines_come_back_with_all_their_fields(
    run: Path, translator: Translator, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A blank source is a blank translation; the recipe's language is a field too; a clash is refused."""
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": 1.0, "de": "abd eik"}\n{"de": "\\u3000", "x": null}\n', encoding="utf-8")
    words = ["translate", str(run), str(path), "--device", "cpu", "--quiet"]
    assert main(words) == 0
    first, second = capfd.readouterr().out.splitlines()
    assert first.startswith('{"id": 1.0, "de": "abd eik", "translation": ')
    assert json.loads(first)["translation"] == translator.translate(["abd eik"])[0].text
    assert second == '{"de": "\\u3000", "x": null, "translation": "", "score": 0.0, "flags": [], "parts": 1}'
    assert main([*words, "--format", "text", "--source-field", "de"]) == 0
    assert capfd.readouterr().out == json.loads(first)["translation"] + "\n\n"
    path.write_text('{"translation": {"de": "abd", "en": "x"}}\n', encoding="utf-8")
    assert main(words) == 3
    assert "in.jsonl:1: has a field translation already" in capfd.readouterr().err
    assert main([*words, "--added-prefix", "mt_"]) == 0
    assert '"translation": {"de": "abd", "en": "x"}, "mt_translation": ' in capfd.readouterr().out
