"""`tools/gpu_check` around its measurements: settings, work, and parts that fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import REPOSITORY
from tools.gpu import __main__ as command
from tools.gpu import ids, parts_fast, parts_lstm, setting
from transformer_mt.config import PRESETS, ModelConfig, TrainingConfig
from transformer_mt.errors import DataError
from transformer_mt.model.narrow_linear import HalfLinear


@pytest.mark.parametrize("size", ["small", "base", "big"])
def test_settings_are_those_of_the_recipes(size: str) -> None:
    """Pins a default that has moved on in config.py, which the stand-ins cannot read without pydantic."""
    ours = vars(setting.model_config(size))
    theirs = ModelConfig.model_validate({"preset": size}).model_dump(exclude={"preset"})
    assert {**ours, "ablation": vars(ours["ablation"])} == theirs
    assert set(PRESETS["transformer"][size]) < set(ours)
    if size == "small":
        ours = vars(parts_lstm.lstm_config(size))
        theirs = ModelConfig.model_validate({"architecture": "lstm", "preset": size}).model_dump()
        assert ours == {name: theirs[name] for name in theirs if name != "preset"}
    training = vars(setting.training_config())
    assert training == {name: getattr(TrainingConfig(), name) for name in training}


def test_work_of_a_batch() -> None:
    """By hand: D 32, F 64, V 97, two layers a side; 5 source tokens and 3 target tokens."""
    model = setting.make_model("toy", 97, dropout=0.0)
    attention, feed_forward, cross_keys = 4 * 32 * 32, 2 * 32 * 64, 2 * 32 * 32
    per_src_token = 2 * (attention + feed_forward) + 2 * cross_keys
    per_token = 2 * (2 * attention + feed_forward) - 2 * cross_keys + 97 * 32
    assert setting.training_work(model, 5, 3) == 6 * (5 * per_src_token + 3 * per_token)


def test_peaks_by_name() -> None:
    """The longer name first: a PCIe card is no SXM card."""
    assert setting.peak_flops("NVIDIA H200") == 989e12
    assert setting.peak_flops("NVIDIA H100 PCIe") == 756e12
    assert setting.peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    assert setting.peak_flops("NVIDIA GeForce RTX 4090") is None


def test_made_up_batches_keep_the_budget() -> None:
    """Pins batches that pad more than real ones, which would flatter packing."""
    batches = setting.made_up_batches(3, 4096, 500)
    assert len(batches) == 3
    for batch in batches:
        assert max(batch.src_ids.numel(), batch.labels.numel()) <= 4096
        assert batch.padded_tokens < 1.2 * (batch.num_tokens + batch.num_src_tokens)


def test_a_broken_process_loses_one_part_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No such device ends the process; the next part has its own, and both failures are written down."""
    file = tmp_path / "result.json"
    words = ["--device", "nonsense", "--json", str(file), "--only", "machine", "--only", "kernels"]
    assert command.main(words) == 1
    results = json.loads(file.read_text(encoding="utf-8"))
    assert set(results) == {"machine", "kernels"}
    assert {result["error"] for result in results.values()} == {"the process ended with code 1"}
    assert "ERROR the process ended with code 1" in capsys.readouterr().out


def test_time_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a part that hangs for ever, and one that starts when all time is over."""
    file = tmp_path / "result.json"
    monkeypatch.setitem(command.PARTS, "machine", 0.0)
    words = ["--device", "cpu", "--json", str(file)]
    assert command.main([*words, "--only", "machine"]) == 1
    assert json.loads(file.read_text())["machine"]["error"] == "stopped: its time was over"
    assert command.main([*words, "--only", "kernels", "--seconds", "3"]) == 1
    assert json.loads(file.read_text())["kernels"]["error"] == "not run: no time was left"


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line instead of a traceback from the middle of an import."""
    monkeypatch.setattr(command, "_NEEDED", ("numpy", "no_such_package"))
    assert command.main([]) == 2
    assert "this Python lacks no_such_package" in capsys.readouterr().err


WITHOUT_PACKAGES = """
import sys

NAMES = {"pydantic", "ruamel", "safetensors", "datasets", "pyarrow", "tqdm", "sacrebleu"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NAMES:
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Missing())
import tools.gpu.parts_fast, tools.gpu.parts_lstm, tools.gpu.parts_right
"""


def test_the_parts_need_no_more_than_they_say() -> None:
    """Pins imports that the machine of a card cannot fulfil: it has torch, numpy and sentencepiece alone."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGES],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_bf16_decodes_as_translate_does() -> None:
    """Pins the lane that is measured: narrow products in an fp32 model, and logits corrected to its own."""
    model = setting.make_model("toy", 97, dropout=0.0).eval()
    fp32, bf16 = (parts_fast.make_stepper(model, precision) for precision in ("fp32", "bf16"))
    assert (fp32.models, fp32.rough_output) == ([model], None)
    assert bf16.rough_output is not None
    assert bf16.rough_output.weight.dtype == torch.bfloat16
    twin = bf16.models[0]
    assert isinstance(twin, torch.nn.Module)
    assert {parameter.dtype for parameter in twin.parameters()} == {torch.float32}
    assert twin.output_weight is model.output_weight
    assert isinstance(twin.decoder.layers[0].feed_forward.get_submodule("outer"), HalfLinear)


def write_text(folder: Path, src_lines: int, tgt_lines: int) -> None:
    for split in ids.SPLITS:
        (folder / f"{split}.de").write_text("eins zwei\n" * src_lines, encoding="utf-8")
        (folder / f"{split}.en").write_text("one two\n" * tgt_lines, encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--make-ids", "{}/ids", "{}", "--languages", "de"], 2, "--languages: de: must be two languages"),
        (["--make-ids", "{}/ids", "{}", "--vocab-size", "0"], 2, "--vocab-size: 0: must be a whole number"),
        (["--make-ids", "{}/train.de/ids", "{}"], 2, "/ids: cannot be written: Not a directory"),
        (["--make-ids", "{}/ids", "{}"], 3, "train: 3 lines of de and 5 of en; give as many of both"),
        (["--ids", "{}/train.de"], 3, "train.de: is not a file of ids; make one with --make-ids"),
        (["--ids", "{}/nowhere"], 3, "nowhere: cannot be read: No such file or directory; check the path"),
        (["--json", "{}"], 2, "cannot be written: Is a directory; name another file"),
    ],
)
def test_bad_arguments_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    """Pins what ended in a traceback, or only after minutes of a card's time."""
    write_text(tmp_path, 3, 5)
    with pytest.raises(SystemExit) as ended:
        command.main(["--json", str(tmp_path / "result.json"), *(word.format(tmp_path) for word in words)])
    err = capsys.readouterr().err
    assert ended.value.code == code
    assert message in err
    assert err.startswith("tools/gpu_check: error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "ids").exists()


@pytest.mark.parametrize("kind", ["empty", "one array", "other arrays", "cut short"])
def test_other_files_are_no_ids(tmp_path: Path, kind: str) -> None:
    """Pins every way in which numpy refuses a file, or takes one that is something else."""
    file = tmp_path / "ids"
    with file.open("wb") as stream:
        if kind == "one array":
            np.save(stream, np.arange(3))
        elif kind != "empty":
            np.savez_compressed(stream, numbers=np.arange(300))
    if kind == "cut short":
        file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DataError, match="ids: is not a file of ids; make one with --make-ids"):
        ids.load_ids(file)


def test_ids_are_written_under_the_name_given(tmp_path: Path) -> None:
    """Pins a suffix that numpy would add, so that --ids found nothing."""
    write_text(tmp_path, 4, 4)
    words = ["--make-ids", str(tmp_path / "ids"), str(tmp_path), "--vocab-size", "270"]
    assert command.main(words) == 0
    corpus = ids.load_ids(tmp_path / "ids")
    assert len(corpus.src["train"]) == 4
    assert corpus.references == ["one two"] * 4
