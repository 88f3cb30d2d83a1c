"""`translate` that is killed, fails in a worker, or is told to warn: what is written, what is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from random_run import made_up_lines, random_run

from transformer_mt.checkpoint import load_run
from transformer_mt.cli.main import main
from transformer_mt.model.protocol import EncoderOutput
from transformer_mt.model.transformer import Transformer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one run")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """60 lines, of which line 50 is "kkkkk" and no other has as many k."""
    lines = made_up_lines(60, seed=6)
    lines[49] = "kkkkk"
    path = tmp_path / "in.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("end", ["raises", "is killed"])
def test_a_worker_that_fails_leaves_no_file_that_looks_whole(
    run: Path, source: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """B184: at line 50 of 60; a failing exit, and the output is absent or bears another name."""
    wanted = torch.tensor(load_run(run).tokenizers.src.encode("kkkkk"))
    encode, parent = Transformer.encode, os.getpid()

    def fail(self: Transformer, src_ids: torch.Tensor, src_mask: torch.Tensor) -> EncoderOutput:
        width = len(wanted)
        if src_ids.size(1) >= width and bool((src_ids[:, :width] == wanted).all(1).any()):
            assert os.getpid() != parent
            if end == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ZeroDivisionError("a fault of the program")
        return encode(self, src_ids, src_mask)

    monkeypatch.setattr(Transformer, "encode", fail)
    out = source.parent / "out.txt"
    words = ["translate", str(run), str(source), "--output", str(out), "--device", "cpu", "--workers", "2"]
    words += ["--buffer-size", "20", "--batch-size", "4"]
    if end == "is killed":
        assert main(words) == 3
        assert "a worker process ended by itself (signal 9)" in capfd.readouterr().err
    else:
        with pytest.raises(ZeroDivisionError, match="a fault of the program"):
            main(words)
    assert not out.exists()
    assert capfd.readouterr().out == ""


def test_a_killed_command_leaves_the_old_file(
    run: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B185: SIGKILL after some lines: what was there before is whole, new lines have another name."""
    out = source.parent / "out.txt"
    out.write_bytes(b"old\n")
    encode = Transformer.encode

    def slow(self: Transformer, src_ids: torch.Tensor, src_mask: torch.Tensor) -> EncoderOutput:
        time.sleep(0.05)
        return encode(self, src_ids, src_mask)

    monkeypatch.setattr(Transformer, "encode", slow)
    child = os.fork()
    if not child:
        os.closerange(0, 3)
        words = ["--output", str(out), "--device", "cpu", "--buffer-size", "1", "--quiet"]
        os._exit(main(["translate", str(run), str(source), *words]))
    partial = source.parent / "out.txt.partial"
    while not partial.exists() or partial.read_bytes().count(b"\n") < 3:
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert out.read_bytes() == b"old\n"
    assert 3 <= partial.read_bytes().count(b"\n") < 60
    assert len(source.read_bytes().split(b"\n")) == 61


def test_warnings_of_python_never_reach_the_text(run: Path, source: Path) -> None:
    """B182: all of them on, the output is as many lines as the input, byte for byte those of a quiet run."""
    command = ["-m", "transformer_mt", "translate", str(run), str(source), "--device", "cpu"]
    loud, quiet = (
        subprocess.run([sys.executable, *words], capture_output=True, check=True, timeout=300)
        for words in (["-W", "always", *command], ["-W", "ignore", *command, "--quiet"])
    )
    assert loud.stdout == quiet.stdout and loud.stdout.count(b"\n") == 60
    assert b"transformer-mt: 60 lines (0 blank), " in loud.stderr
    assert quiet.stderr == b""
