"""What other systems do differently and can be played here: code pages, and processes that are not forked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.test_prepare_command import RECIPE

SOURCES = ["xin chào thế giới", "tôi đi học", "hôm nay trời đẹp", "anh ấy mua một quyển sách"]
TARGETS = ["世界你好。", "我去上学。", "今天天气很好。", "他买了一本书。"]

PROGRAM = """\
import builtins, io, multiprocessing, sys, warnings
multiprocessing.set_start_method("spawn")
warnings.filterwarnings("error", category=EncodingWarning, module=r"transformer_mt(\\..*)?")
plain = io.open
def of_code_page(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *rest, **more):
    if "b" not in mode and encoding in (None, "locale"):
        encoding, newline = "cp1252", newline if newline is not None or "r" in mode else "\\r\\n"
    return plain(file, mode, buffering, encoding, errors, newline, *rest, **more)
builtins.open = io.open = of_code_page
from transformer_mt.cli.main import main
for words in {commands!r}:
    code = main(words)
    if code:
        sys.exit(f"{{words[0]}} ended with {{code}}")
"""
"""Files whose encoding is not named are of a code page, with its line ends, as are the standard streams."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vietnamese and Chinese text, and a recipe that notes so in both."""
    folder = tmp_path_factory.mktemp("số 一")
    for name, copies in (("train", 12), ("valid", 1)):
        for suffix, lines in (("xx", SOURCES), ("yy", TARGETS)):
            numbered = [f"{line} {number}" for number in range(copies) for line in lines]
            (folder / f"{name}.{suffix}").write_bytes("".join(f"{line}\n" for line in numbered).encode())
    text = RECIPE.format(folder=folder).replace("vocab_size: 280", "vocab_size: 340, sampling: 0.1")
    text = text.replace("data: {", "# việc 一\ndata: {test: valid, ").replace("yy", "zh")
    (folder / "train.yy").rename(folder / "train.zh")
    (folder / "valid.yy").rename(folder / "valid.zh")
    (folder / "recipe.yaml").write_bytes(text.encode())
    return folder


def test_text_is_utf_8_whatever_the_code_page(folder: Path) -> None:
    """B195, B196: every verb on Vietnamese and Chinese text and paths, where other encodings are the default
    and processes are started anew; what is written is UTF-8 with plain line ends."""
    run, out = str(folder / "run"), str(folder / "ra 出.txt")
    commands = [
        ["prepare", str(folder / "recipe.yaml")],
        ["train", str(folder / "recipe.yaml"), "training.workers=2", "training.max_steps=3"],
        ["train", str(folder / "recipe.yaml"), "training.workers=2", "training.max_steps=4"],
        ["translate", run, str(folder / "valid.xx"), "--device", "cpu", "--workers", "2"],
        ["translate", run, str(folder / "valid.xx"), "--device", "cpu", "--output", out],
        ["evaluate", run, "--device", "cpu"],
        ["evaluate", "--hyp", out, "--ref", str(folder / "valid.zh"), "--lang", "zh"],
        ["compare", run, "--hyp", f"hệ={folder / 'valid.zh'}", "--output", str(folder / "so 比")],
        ["average", run, "--last", "1"],
        ["doctor", run],
    ]
    (folder / "program.py").write_bytes(PROGRAM.format(commands=commands).encode())
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", str(folder / "program.py")],
        env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-3000:]
    printed = done.stdout.decode("utf-8")
    assert (folder / "ra 出.txt").read_bytes().decode("utf-8") in printed
    assert str(folder) in printed
    written = [
        path for path in folder.rglob("*") if path.suffix in (".tsv", ".json", ".jsonl", ".log", ".md")
    ]
    assert len(written) > 10
    for path in (*written, folder / "run" / "config.yaml", folder / "so 比" / "report.html"):
        content = path.read_bytes()
        assert b"\r" not in content
        content.decode("utf-8")
    (samples, *_) = sorted((folder / "run" / "samples").iterdir())
    assert f"{SOURCES[0]} 0\t{TARGETS[0]} 0\t" in samples.read_bytes().decode("utf-8")
