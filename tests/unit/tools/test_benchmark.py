"""tools/benchmark from its command line to its table, with a fake peer, and the parts it stands on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.conftest import REPOSITORY
from tests.small_corpora import write_made_up
from tools.bench import __main__ as command
from tools.bench import exported, machine, meter, workspace
from tools.bench.measure import MeasurementFailed, Setting
from tools.bench.plain_lstm import PlainLstm
from tools.bench.rows import ROWS
from tools.bench.task import SIZES, Effort, Job, Measurement
from tools.command_line import one_line_errors, writable
from transformer_mt.config import ModelConfig
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.model.build import build_model

TINY = Effort(
    warm_seconds=0.01,
    window_seconds=0.01,
    windows=2,
    sentences={"S": 5, "B": 3},
    memory_updates=2,
    prepared_pairs=70,
)
FAKE_PEERS = """#!/bin/sh
case "$*" in
*peer_plain*) exec {python} "$@" ;;
*peer_ctranslate2*int8*) echo "no integers today" >&2; exit 1 ;;
*peer_ctranslate2*) echo '{{"values": [40.0, 10.0], "versions": {{"ctranslate2": "0.1"}}, "detail": {{}}}}' ;;
*) printf 'torch 1\\nnumpy 1\\nctranslate2 0.1\\n' ;;
esac
"""


@pytest.fixture
def peers(tmp_path: Path) -> str:
    """A Python in which the plain loop runs, and CTranslate2 seems to."""
    script = tmp_path / "python"
    script.write_text(FAKE_PEERS.format(python=sys.executable), encoding="utf-8")
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that gets as far as its workspace breaks there."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "build", None)


def test_end_to_end(
    tmp_path: Path, peers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins the whole way: text, common batches, children of both Pythons by turns, ratios, table, JSON."""
    write_made_up(tmp_path / "text", "de", "en")
    for path in (tmp_path / "text").glob("train.*"):  # one update of S must be short
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:60]), encoding="utf-8")
    corpus = workspace.Corpus(tmp_path / "text", "de", "en", "train", "test", 320)
    monkeypatch.setattr(command, "find_corpus", lambda folder: corpus)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "QUICK", TINY)
    rows = ["--only", "train-S-bf16", "--only", "decode-S-beam5-bf16", "--only", "decode-S-beam5-bf16-int8"]
    code = command.main(["--quick", "--pairs", "1", "--threads", "1", "--peer-python", peers, *rows])
    out = capsys.readouterr().out
    record = json.loads((tmp_path / "runs" / "benchmark" / "result.json").read_text(encoding="utf-8"))
    found = {row["row"]: row for row in record["rows"]}
    assert code == 0
    training = found["train-S-bf16"]
    assert training["ratio"] == training["ours"]["values"][0] / training["peer"]["values"][0]
    assert training["ratio"] > 0.0
    decoding = found["decode-S-beam5-bf16"]
    assert decoding["peer"]["values"] == [25.0]
    assert decoding["ratio"] == decoding["ours"]["values"][0] / 25.0
    assert "ctranslate2 failed: exit code 1: no integers today" in found["decode-S-beam5-bf16-int8"]["note"]
    assert len(out.splitlines()) == 3 + 2 + 3
    assert "1 threads" in out.splitlines()[0]
    _check_batches(next((tmp_path / "runs" / "benchmark").glob("de_en_*")))


def _check_batches(folder: Path) -> None:
    """The peers train on the batches that ours trains on, in the same order."""
    from transformer_mt.cli.build_trainer import open_stream
    from transformer_mt.data.prepare import prepare
    from transformer_mt.recipe import load_recipe

    recipe = load_recipe(str(folder / "S.yaml"), [])
    stream = open_stream(recipe, prepare(recipe))(1, 0)
    theirs = exported.Exported(folder).stream()
    for batch in stream.take(len(stream.order())):
        src_rows, tgt_rows = next(theirs)
        assert [row.tolist() for row in src_rows] == [
            [int(token) for token in row if token] for row in batch.src_ids
        ]
        assert sum(map(len, tgt_rows)) == batch.num_tokens


def test_list_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Pins that --list names every row, one a line."""
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [row.name for row in ROWS]


def test_the_command_itself_starts() -> None:
    """Pins the entry: a Python that has the package, and imports that resolve from any folder."""
    done = subprocess.run(
        [REPOSITORY / "tools" / "benchmark", "--list", "--only", "memory-B"],
        cwd="/",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.split()[0] == "memory-B"


@pytest.mark.parametrize("flag", ["--pairs", "--threads"])
def test_counts_start_at_one(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins that nothing is divided by no runs at all."""
    with pytest.raises(SystemExit, match="2"):
        command.main([flag, "0"])
    assert f"argument {flag}: 0: must be a whole number from 1 on; see" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--only", "nope"], 2, "--only nope: no such row; --list shows them"),
        (["--data", "/nowhere"], 3, "/nowhere: has no train.de (plain, .xz or .gz); name another --data"),
        (["--device", "foo"], 2, "--device foo: no such device; use cpu, cuda or cuda:N"),
        (["--json", "/dev/null/result.json"], 2, "--json /dev/null/result.json: cannot be written: Not a"),
        (["--peers"], 2, "unrecognized arguments: --peers; see tools/benchmark --help"),
    ],
)
@pytest.mark.usefixtures("nothing_is_built")
def test_bad_arguments_are_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    """Pins what ended in a traceback, or came to light after the first contest."""
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    err = capsys.readouterr().err
    assert ended.value.code == code
    assert err.startswith("tools/benchmark: error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["attention_table", "foo"], 2, "argument device: invalid choice: 'foo'"),
        (["attention_table", "cpu", "abc"], 2, "argument threads: abc: must be a whole number from 1 on"),
        (["profile_step", "nowhere.yaml"], 2, "nowhere.yaml: no such recipe; name a YAML file"),
        (["profile_step", "{}"], 3, "one.de: no such file, nor with .gz, .xz; check data.root"),
    ],
)
def test_bad_arguments_of_the_small_tools(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    """Pins one line and the error's own exit code, where there were tracebacks and 1."""
    recipe = tmp_path / "recipe.yaml"
    files = {"root": str(tmp_path), "train": "one", "valid": "one", "src_lang": "de", "tgt_lang": "en"}
    recipe.write_text(json.dumps({"run_dir": str(tmp_path / "run"), "data": files}), encoding="utf-8")
    tool, *rest = (word.format(recipe) for word in words)
    done = subprocess.run(
        [REPOSITORY / "tools" / tool, *rest], cwd="/", capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"tools/{tool}: error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_checked_file_is_left_as_it_was(tmp_path: Path) -> None:
    """Pins that the check before a measurement costs no earlier result, and leaves no empty one."""
    earlier = tmp_path / "earlier.json"
    earlier.write_text("{}", encoding="utf-8")
    assert writable(earlier, "--json").read_text(encoding="utf-8") == "{}"
    assert not writable(tmp_path / "new" / "result.json", "--json").exists()


def test_a_refused_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Pins the line and the code of errors of the system."""
    with pytest.raises(SystemExit, match="3"), one_line_errors("tools/some"):
        Path("/nowhere/file").read_bytes()
    said = "tools/some: error: /nowhere/file: No such file or directory; check the path, the permissions"
    assert capsys.readouterr().err.startswith(said)


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    """Pins what --data must hold, packed or not, and that the bundled corpus says what it is."""
    for name in ("train.de.xz", "train.en", "test2016.de"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"has no test2016\.en \(plain, \.xz or \.gz\); name another --data"):
        workspace.find_corpus(str(tmp_path))
    (tmp_path / "test2016.en.gz").touch()
    assert workspace.find_corpus(str(tmp_path)).folder == tmp_path


def test_without_real_text_the_bundled_corpus_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins the fallback and its note, which the head of the table shows."""
    monkeypatch.setattr(workspace, "_MULTI30K", Path("/nowhere"))
    corpus = workspace.find_corpus(None)
    assert (corpus.folder / f"{corpus.train}.{corpus.src_lang}").is_file()
    assert "bundled synthetic corpus" in corpus.note


def test_a_peer_python_that_is_none_is_refused() -> None:
    """Pins the message for a wrong path."""
    with pytest.raises(ConfigError, match="--peer-python /nowhere: is not a Python of version 3.11"):
        machine.installed("/nowhere", {})


def test_children_that_end_badly(tmp_path: Path) -> None:
    """Pins what is said of a child that fails and of one that says nothing."""
    script = tmp_path / "python"
    setting = Setting(str(tmp_path), "cpu", 1, TINY, str(script))
    for body, message in (("echo so be it >&2; exit 3", "exit code 3: so be it"), ("true", "gave no answer")):
        script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        script.chmod(0o755)
        with pytest.raises(MeasurementFailed, match=message):
            setting.run(Measurement("plain", "train", "S", "bf16"))


def test_children_that_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins that a child is not waited for without end."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec sleep 9\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr("tools.bench.measure._MOST_SECONDS", 0.1)
    with pytest.raises(MeasurementFailed, match=r"took more than 0\.1 s"):
        Setting(str(tmp_path), "cpu", 1, TINY, str(script)).run(Measurement("plain", "train"))


def test_the_plain_lstm_is_of_our_size_and_sees_no_padding() -> None:
    """Pins a row that compares unequal models, and a peer that is slow or quick for being wrong."""
    torch.manual_seed(0)
    size = SIZES["lstm"]
    plain = PlainLstm(size, 500).eval()
    wanted = {"architecture": "lstm", "preset": size.preset}
    ours = build_model(ModelConfig.model_validate(wanted), 500, 500)
    assert [len(plain.cells), plain.encoder.num_layers, plain.output.in_features] == [
        len(ours.decoder_layers),
        len(ours.encoder_layers),
        ours.output_weight.size(1),
    ]
    counts = [sum(weight.numel() for weight in model.parameters()) for model in (plain, ours)]
    assert counts[0] / counts[1] == pytest.approx(1.0, abs=0.02)
    src, tgt_in = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
    alone = plain(src, tgt_in)
    among = plain(torch.tensor([[5, 6, 7, 3, 0, 0], [5] * 5 + [3]]), torch.tensor([[2, 8, 9, 0], [2] * 4]))
    torch.testing.assert_close(among[:1, :3], alone, rtol=1e-4, atol=1e-4)


def test_a_job_arrives_as_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins the one argument of a child."""
    job = Job(Measurement("plain", "train", "B", "fp32"), TINY, "/some/folder", "cuda:1", 7)
    monkeypatch.setattr(sys, "argv", ["peer", job.to_json()])
    assert Job.from_command_line() == job


class Clock:
    """Stands in for the module time."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


def test_windows_leave_the_warm_up_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins rates computed by hand: ticks of 2 s, a warm-up of 3 s (two ticks), two windows of 5 s (three)."""
    clock, waits = Clock(), []
    monkeypatch.setattr(meter, "time", clock)
    watch = meter.Meter(3.0, 5.0, 2, lambda: waits.append(clock.now))
    over = []
    for num_tokens in (1000, 1000, 10, 20, 30, 5, 5, 5):
        clock.now += 2.0
        over.append(watch.tick(num_tokens))
    assert over == [False] * 7 + [True]
    assert watch.rates == [60 / 6.0, 15 / 6.0]
    assert waits == [104.0, 110.0, 116.0]  # a device is waited for at the ends of windows alone


def test_the_largest_batch_counts_padding_on_both_sides(tmp_path: Path) -> None:
    """Pins rows x (longest source + longest target): 3 x (2 + 5) = 21 beats 2 x (7 + 3) = 20."""
    lengths = [(7, 3), (1, 1), (2, 1), (1, 5), (1, 1)]
    columns: dict[str, Any] = {
        "src": [np.full(src, 8) for src, _ in lengths],
        "tgt": [np.full(tgt, 9) for _, tgt in lengths],
        "batches": [[0, 1], [2, 3, 4]],
        "test": [[4, 3]],
    }
    exported.write(tmp_path, columns, ["<pad>", "a"])
    data = exported.Exported(tmp_path)
    assert data.largest() == 1
    first, second = (next(stream) for stream in (data.stream([1]), data.stream()))
    assert [len(row) for row in first[1]] == [1, 5, 1]
    assert [len(row) for row in second[0]] == [7, 1]
    assert (data.test[0].tolist(), data.pieces) == ([4, 3], ["<pad>", "a"])


def test_the_processor_is_read_from_the_first_core() -> None:
    """Pins the facts that decide whether saved figures are of this machine."""
    cpuinfo = "processor\t: 0\nmodel name\t: Abacus 7\nflags\t\t: fpu avx2 amx_bf16\n\nmodel name\t: Other\n"
    assert machine._processor(cpuinfo) == ("Abacus 7", ["avx2", "amx_bf16"])
    facts = machine.machine_facts("cpu", 3)
    assert (facts["threads"], facts["device"]) == (3, "cpu")
    assert machine.same_machine(facts, {**facts, "memory_gib": 1})
    assert not machine.same_machine(facts, {**facts, "threads": 1})
    assert not machine.same_machine(facts, {**facts, "flags": ["beads"]})
    assert "(no vector flags known), 3 threads" in machine.one_line({**facts, "flags": []})


def test_peak_memory_is_that_of_this_program() -> None:
    """Pins unit and place: a child of a process that once held 300 MB reports what it holds itself, 80 MB."""
    measure = "from tools.bench.meter import peak_gib; a = b'x' * (80 << 20); print(peak_gib(None, 'cpu'))"
    program = (
        "import subprocess, sys; a = b'x' * (300 << 20); "
        f"subprocess.run([sys.executable, '-c', {measure!r}], check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, encoding="utf-8", check=True
    )
    assert 80 / 1024 < float(done.stdout) < 200 / 1024
