"""What every verb does with checkpoints that were tampered with, and what ours consist of."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

from tests.end_to_end.conftest import MakeTask
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.recipe import load_recipe
from transformer_mt.text.tokenizer import Tokenizers, load_tokenizers, train_tokenizer

Capture = pytest.CaptureFixture[str]
MODEL = files.MODEL


@pytest.fixture(scope="module")
def trained(copy_task: MakeTask) -> Path:
    """The recipe of a run with a checkpoint of step 2 and three-way tied embeddings."""
    recipe = copy_task(pairs=200, num_valid=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
        assert main(["train", str(recipe), "training.max_steps=2"]) == 0
    return recipe


@pytest.fixture
def recipe(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be spoilt."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    shutil.copytree(trained.parent, tmp_path / "task")
    copy = tmp_path / "task" / "recipe.yaml"
    text = copy.read_text(encoding="utf-8")
    copy.write_text(text.replace(str(trained.parent), str(tmp_path / "task")), encoding="utf-8")
    return copy


def folder_of(recipe: Path) -> Path:
    return files.folder_of(recipe.parent / "run", 2)


def vouch(folder: Path) -> None:
    """A manifest that fits what stands there now."""
    (folder / "manifest.json").unlink()
    files._write_manifest(folder)


def verbs(recipe: Path) -> dict[str, list[str]]:
    """Every verb that reads weights."""
    run, source = str(recipe.parent / "run"), str(recipe.parent / "valid.xx")
    return {
        "translate": ["translate", run, source],
        "evaluate": ["evaluate", run, "--test", "valid"],
        "average": ["average", run, "--last", "1"],
        "train": ["train", str(recipe), "training.max_steps=3"],
        "init": ["train", str(recipe), "--init-from", run, f"run_dir={recipe.parent / 'new'}"],
    }


def prefixed(folder: Path) -> None:
    weights = safetensors.torch.load((folder / MODEL).read_bytes())
    safetensors.torch.save_file({f"_orig_mod.module.{n}": w for n, w in weights.items()}, folder / MODEL)


UNREAD = {
    ("translate", files.STATE),
    ("evaluate", files.STATE),
    ("train", "tokenizer.model"),
}
"""Parts that a verb has no use for: a run that goes on has its tokenizer already."""


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.canary,)


@pytest.mark.parametrize("verb", ["translate", "evaluate", "train", "init"])
def test_other_names_of_weights_are_an_error(recipe: Path, capsys: Capture, verb: str) -> None:
    """B114: names with a prefix are never passed over; what misses and what is too much are told."""
    prefixed(folder_of(recipe))
    vouch(folder_of(recipe))
    capsys.readouterr()
    assert main(verbs(recipe)[verb]) == 5
    out, err = capsys.readouterr()
    number = len(safetensors.torch.load_file(folder_of(recipe) / MODEL))
    assert out == "" and f"({number} missing, {number} extra)" in err.splitlines()[-1]


@pytest.mark.parametrize("verb", ["translate", "evaluate", "average", "train", "init"])
@pytest.mark.parametrize("name", [MODEL, files.STATE, files.SCALARS, "tokenizer.model", "config.yaml"])
def test_a_pickle_is_not_opened(recipe: Path, tmp_path: Path, capsys: Capture, verb: str, name: str) -> None:
    """B115: in the place of any part, vouched for by the manifest: one line, and nothing of it has run."""
    canary = tmp_path / "canary"
    torch.save({"model": Evil(canary)}, folder_of(recipe) / name)
    vouch(folder_of(recipe))
    capsys.readouterr()
    code = main(verbs(recipe)[verb])
    assert not canary.exists()
    if (verb, name) in UNREAD:
        assert code == 0
        return
    out, err = capsys.readouterr()
    assert code in (2, 3, 5) and out == ""
    assert name in err.splitlines()[-1] or "recipe cannot be used" in err


def test_a_pickle_in_the_place_of_a_run_or_tokenizer_is_not_opened(
    recipe: Path, tmp_path: Path, capsys: Capture
) -> None:
    """B115: nor where the command line or a recipe names it."""
    canary, evil = tmp_path / "canary", tmp_path / "model.pt"
    torch.save({"model": Evil(canary)}, evil)
    for words in (
        ["translate", str(evil)],
        ["average", str(evil)],
        ["doctor", str(evil)],
        ["compare", str(evil), str(recipe.parent / "run")],
        ["train", str(evil)],
        ["train", str(recipe), "--init-from", str(evil), f"run_dir={tmp_path / 'new'}"],
        ["train", str(recipe), f"tokenizer.from={evil}", f"run_dir={tmp_path / 'new'}"],
    ):
        capsys.readouterr()
        assert main(words) in (2, 3, 5), words
        error = capsys.readouterr().err.splitlines()
        assert "model.pt" in error[-1], words
    assert not canary.exists()


def test_our_checkpoints_hold_tensors_and_plain_values(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B116: they can be read without trust, and are written, continued and used without a pickle."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pickle")

    for module, names in (
        (pickle, ("load", "loads", "dump", "dumps", "Unpickler")),
        (torch, ("load", "save")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, refuse)
    for words in verbs(recipe).values():
        assert main(words) == 0
    folder = files.folder_of(recipe.parent / "run", 3)
    assert {path.suffix for path in folder.iterdir()} == {".safetensors", ".json", ".yaml", ".model"}
    for path in folder.iterdir():
        if path.suffix == ".json":
            json.loads(path.read_bytes().decode("utf-8"))
        elif path.suffix == ".safetensors":
            with safetensors.safe_open(path, "np") as tensors:
                assert list(tensors.keys())
    load_recipe(folder / "config.yaml")
    load_tokenizers(folder)


def test_tied_embeddings_stay_tied(recipe: Path) -> None:
    """B120: one tensor in the file, in the model after loading, averaging, continuing, in the optimizer."""
    assert main(verbs(recipe)["average"]) == 0
    assert main(verbs(recipe)["train"]) == 0
    for which in ("2", "averaged", "3"):
        run = ckpt.load_run(recipe.parent / "run", which)
        out = run.model.output_weight
        assert run.model.src_embedding is None and run.model.tgt_embedding.weight is out
        saved = safetensors.torch.load_file(run.checkpoint_dir / MODEL)
        assert saved.keys() == dict(run.model.named_parameters()).keys()
        assert [name for name, weight in saved.items() if weight.shape == out.shape] == [
            "tgt_embedding.weight"
        ]
        assert torch.equal(saved["tgt_embedding.weight"], out)
    moments = safetensors.torch.load_file(files.folder_of(recipe.parent / "run", 3) / files.STATE)
    assert [n for n, m in moments.items() if m.shape == out.shape and ".exp_avg." in n] == [
        "optimizer.exp_avg.tgt_embedding.weight"
    ]


@pytest.mark.parametrize("verb", ["translate", "evaluate"])
def test_a_tokenizer_of_another_size_is_refused(recipe: Path, capsys: Capture, verb: str) -> None:
    """B159: before anything is translated, with both numbers; ids beyond the embedding reach no model."""
    lines = (recipe.parent / "train.xx").read_text(encoding="utf-8").split("\n")
    other = train_tokenizer(lines, type="bpe", vocab_size=303)
    Tokenizers(other, other).save(folder_of(recipe))
    vouch(folder_of(recipe))
    capsys.readouterr()
    assert main(verbs(recipe)[verb]) == 5
    out, err = capsys.readouterr()
    assert out == "" and "tgt_embedding.weight is (310, 64), but (303, 64) is needed" in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
@pytest.mark.parametrize("verb", ["translate", "evaluate", "train", "init"])
def test_a_machine_without_a_gpu(recipe: Path, capsys: Capture, verb: str) -> None:
    """B197: the CPU is taken by itself; where a GPU is asked for, one line says that there is none."""
    assert main([*verbs(recipe)[verb], "--device", "cuda"]) == 2
    assert "--device cuda: this machine has 0 such devices" in capsys.readouterr().err.splitlines()[-1]
    assert main(verbs(recipe)[verb]) == 0


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA card")
def test_weights_of_a_gpu_are_saved_as_those_of_a_cpu(recipe: Path) -> None:
    """B197: nothing in the file says where its tensors were."""
    assert main([*verbs(recipe)["train"], "--device", "cuda"]) == 0
    found = files.read_checkpoint(files.folder_of(recipe.parent / "run", 3))
    assert {t.device.type for part in (found.weights, found.state) for t in part.values()} == {"cpu"}
    assert main([*verbs(recipe)["translate"], "--device", "cpu"]) == 0
