"""Checkpoints are whole or absent, verified before use, rotated by number, and hold no pickle."""

import json
import os
import shutil
import sys

import pytest
import torch

from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.json_file import write_json
from transformer_mt.model.build import build_model
from transformer_mt.text.proportion import Proportion
from transformer_mt.text.tokenizer import Tokenizers, train_tokenizer
from transformer_mt.text.trained_on import TrainedOn


@pytest.fixture(scope="module")
def tokenizers():
    lines = [f"line {number} of some text" for number in range(50)]
    shared = train_tokenizer(lines, type="bpe", vocab_size=300)
    return Tokenizers(shared, shared)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return Recipe.model_validate(
        {
            "run_dir": "runs/x",
            "data": {
                "train": "t",
                "valid": "v",
                "src_lang": "de",
                "tgt_lang": "en",
                "root": str(tmp_path_factory.mktemp("data")),
            },
            "model": {
                "d_model": 16,
                "num_heads": 2,
                "d_ff": 24,
                "num_encoder_layers": 1,
                "num_decoder_layers": 1,
            },
        }
    )


@pytest.fixture
def save(tmp_path, recipe, tokenizers):
    """save(step) writes a checkpoint whose weights all equal the step."""

    def write(step, **scalars):
        model = build_model(recipe.model, 300, 300)
        weights = {n: torch.full_like(p, float(step)) for n, p in model.named_parameters()}
        state = {"optimizer.exp_avg.x": torch.arange(3.0)}
        return files.save_checkpoint(
            tmp_path,
            step,
            weights=weights,
            state=state,
            scalars=scalars,
            recipe=recipe,
            tokenizers=tokenizers,
        )

    return write


def test_what_is_saved_is_read(save, tmp_path):
    folder = save(7, progress={"best": 1.5})
    found = files.read_checkpoint(folder)
    assert (found.step, found.scalars["progress"]) == (7, {"best": 1.5})
    assert all(bool((weight == 7.0).all()) for weight in found.weights.values())
    torch.testing.assert_close(found.state["optimizer.exp_avg.x"], torch.arange(3.0))
    names = {entry.name for entry in folder.iterdir()}
    assert names == {
        "model.safetensors",
        "state.safetensors",
        "state.json",
        "config.yaml",
        "tokenizer.model",
        "manifest.json",
    }
    assert ckpt.saved_steps(tmp_path) == [7]


def test_steps_are_ordered_by_number(save, tmp_path):
    """Pins a lexicographic sort (B112): step 100,000,000 is newer than step 99,999,999."""
    for step in (100_000_000, 9, 99_999_999):
        save(step)
    assert ckpt.saved_steps(tmp_path) == [9, 99_999_999, 100_000_000]
    assert ckpt.newest_valid(tmp_path).step == 100_000_000


@pytest.mark.parametrize(
    "name", ["model.safetensors", "state.safetensors", "state.json", "config.yaml", "tokenizer.model"]
)
def test_a_flipped_byte_is_found_and_the_one_before_is_used(save, tmp_path, name, caplog):
    """Pins loading of damaged weights (B109): safetensors itself does not notice."""
    save(1)
    path = save(2) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=f"{name}: is damaged"):
        files.read_checkpoint(path.parent)
    assert ckpt.newest_valid(tmp_path).step == 1
    assert "not used" in caplog.text


def test_translating_reads_no_training_state(save):
    """Pins two thirds of the reading at every start; what is read is verified all the same."""
    folder = save(2)
    (folder / "state.safetensors").write_bytes(b"damaged")
    assert ckpt.load_run(folder).step == 2
    with pytest.raises(CheckpointError, match="state.safetensors: is damaged"):
        files.read_checkpoint(folder)
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="model.safetensors: is damaged"):
        ckpt.load_run(folder)


def test_missing_file_and_damaged_manifest_are_named(save):
    folder = save(3)
    (folder / "state.json").unlink()
    with pytest.raises(CheckpointError, match="state.json: cannot be read"):
        files.verify(folder)
    (folder / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="manifest.json: cannot be read"):
        files.verify(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="is not a complete checkpoint"):
        files.verify(folder)


def test_a_manifest_that_lost_its_last_byte_is_named(save):
    """Its text still reads, but where one byte is gone there may be more."""
    path = save(3) / "manifest.json"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="manifest.json: is damaged: it is not as it was written"):
        files.verify(path.parent)


def test_another_format_is_refused(save):
    folder = save(3)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 99}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="has format 99, this version reads format 1"):
        files.verify(folder)


def test_a_folder_without_a_manifest_is_named_and_passed_over(save, tmp_path, caplog):
    """Pins that a newer checkpoint which lost its manifest is passed over in silence."""
    save(1)
    (save(2) / "manifest.json").unlink()
    assert ckpt.saved_steps(tmp_path) == [1]
    assert ckpt.newest_valid(tmp_path).step == 1
    assert "not used: " in caplog.text and "step_00000002: is not a complete checkpoint" in caplog.text


def test_none_valid_is_an_error_not_a_new_start(save, tmp_path):
    (save(1) / "state.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="none of its 1 checkpoints can be used"):
        ckpt.newest_valid(tmp_path)


def test_lost_checkpoints_are_an_error_not_a_new_start(tmp_path):
    assert ckpt.newest_valid(tmp_path) is None
    write_json(tmp_path / "latest.json", {"step": 3})
    with pytest.raises(
        CheckpointError, match="has lost its checkpoints, for there is a latest.json; restore"
    ):
        ckpt.newest_valid(tmp_path)


def test_rotation_keeps_the_newest_and_the_best(save, tmp_path):
    """Pins deletion of the best checkpoint (B110)."""
    for step in (1, 2, 3, 10):
        save(step)
    leftovers = [
        tmp_path / "checkpoints" / name for name in (".writing-step_00000011", ".deleting-step_00000002")
    ]
    for leftover in leftovers:
        leftover.mkdir()
        (leftover / "x").touch()
    ckpt.rotate(tmp_path, 2, [1, 10])
    assert ckpt.saved_steps(tmp_path) == [1, 3, 10]
    assert not any(leftover.exists() for leftover in leftovers)


def test_rotation_keeps_every_so_many_steps(save, tmp_path):
    for step in (2, 4, 5, 8, 9):
        save(step)
    ckpt.rotate(tmp_path, 1, [9], keep_every=4)
    assert ckpt.saved_steps(tmp_path) == [4, 8, 9]


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
def test_nothing_is_deleted_before_its_successor_verifies(save, tmp_path, name):
    for step in (1, 2, 3):
        save(step)
    (files.folder_of(tmp_path, 3) / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"step_00000003/{name}: "):
        ckpt.rotate(tmp_path, 1, [3])
    assert ckpt.saved_steps(tmp_path) == [1, 2, 3]


def test_what_cannot_be_deleted_is_told_and_ends_nothing(save, tmp_path, caplog, monkeypatch):
    for step in (1, 2):
        save(step)

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(ckpt.Path, "rename", refuse)
    ckpt.rotate(tmp_path, 1, [2])
    assert "an old checkpoint cannot be deleted: [Errno 1] Operation not permitted" in caplog.text
    assert ckpt.saved_steps(tmp_path) == [1, 2]


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between attempts, which no test waits for."""
    slept = []
    monkeypatch.setattr(files.time, "sleep", slept.append)
    return slept


def test_a_write_that_fails_twice_is_tried_again(save, tmp_path, monkeypatch, pauses, caplog):
    """A network disk that is away for a moment costs no checkpoint."""
    save(1)
    write, failures = files.safetensors.torch.save_file, iter(range(2))

    def flaky(tensors, path):
        write(tensors, path)
        if next(failures, None) is not None:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(files.safetensors.torch, "save_file", flaky)
    files.verify(save(2))
    assert pauses == [0.5, 2.0]
    assert caplog.text.count("step_00000002: not written: Input/output error; tried again in") == 2
    assert not list((tmp_path / "checkpoints").glob(".writing-*"))


@pytest.mark.parametrize("call", [1, 2], ids=["the old is moved away", "the new takes its place"])
def test_a_replacement_that_fails_leaves_the_old_one(save, tmp_path, monkeypatch, pauses, call):
    save(4, note="old")
    rename, calls = files.Path.rename, []

    def fail(path, target):
        if path.name.startswith((".writing-step", "step")):
            calls.append(path)
            if len(calls) % call == 0:
                raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(files.Path, "rename", fail)
    with pytest.raises(CheckpointError, match="cannot be written: Input/output error"):
        save(4, note="new")
    assert len(calls) == 3 * call
    assert ckpt.newest_valid(tmp_path).scalars["note"] == "old"


def test_every_file_is_on_the_disk_before_the_folder_has_its_name(save, tmp_path, monkeypatch):
    """Pins a power cut after the renaming that leaves empty files under the final name."""
    happened = []
    fsync, rename, replace = os.fsync, files.Path.rename, files.Path.replace

    def note(descriptor):
        happened.append(("synced", os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))))
        fsync(descriptor)

    monkeypatch.setattr(files.os, "fsync", note)
    for name, original in (("rename", rename), ("replace", replace)):

        def move(path, target, original=original):
            happened.append(("named", target.name))
            return original(path, target)

        monkeypatch.setattr(files.Path, name, move)
    folder = save(5)
    names = {entry.name for entry in folder.iterdir()} - {"manifest.json"}
    manifest = happened.index(("named", "manifest.json"))
    assert {name for what, name in happened[: manifest - 1] if what == "synced"} == names
    assert happened[manifest - 1 :] == [
        ("synced", ".writing-manifest.json"),
        ("named", "manifest.json"),
        ("synced", ".writing-step_00000005"),
        ("named", "step_00000005"),
        ("synced", "checkpoints"),
        ("synced", tmp_path.name),
    ]


def test_full_disk_leaves_the_old_checkpoint(save, tmp_path, monkeypatch, pauses):
    save(1)
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CheckpointError, match="cannot be written: needs 1.0 MiB, but 0.0 MiB are free"):
        save(2)
    assert ckpt.saved_steps(tmp_path) == [1]
    assert not list((tmp_path / "checkpoints").glob(".writing-*"))


def test_saving_a_step_again_replaces_it(save, tmp_path):
    save(4, note="old")
    save(4, note="new")
    assert ckpt.newest_valid(tmp_path).scalars["note"] == "new"


def test_average_is_the_mean_in_the_dtype_of_the_weights(save, tmp_path):
    """Pins sums in low precision and wrong dtypes (B118)."""
    for step in (1, 2, 6):
        save(step)
    found = files.read_checkpoint(ckpt.average(tmp_path, [1, 2, 6]))
    assert found.scalars["averaged_steps"] == [1, 2, 6]
    for weight in found.weights.values():
        assert weight.dtype == torch.float32
        torch.testing.assert_close(weight, torch.full_like(weight, 3.0))
    assert ckpt.saved_steps(tmp_path) == [1, 2, 6]


def test_averaging_other_weights_is_refused(save, tmp_path, recipe, tokenizers):
    save(1)
    files.save_checkpoint(
        tmp_path,
        2,
        weights={"x": torch.zeros(2)},
        state={},
        scalars={},
        recipe=recipe,
        tokenizers=tokenizers,
    )
    with pytest.raises(CheckpointError, match="holds other weights than step 1"):
        ckpt.average(tmp_path, [1, 2])


def test_weights_must_fit_exactly(recipe, tmp_path):
    """Pins strict=False (B114): no weight may stay random, none may be left over."""
    model = build_model(recipe.model, 300, 300)
    weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    name, weight = weights.popitem()
    with pytest.raises(CheckpointError, match=r"it misses .* \(1 missing, 0 extra\)"):
        ckpt.load_weights(model, weights, tmp_path)
    with pytest.raises(CheckpointError, match=r"it also holds more \(0 missing, 1 extra\)"):
        ckpt.load_weights(model, {**weights, name: weight, "more": weight}, tmp_path)
    with pytest.raises(CheckpointError, match=f"{name} is "):
        ckpt.load_weights(model, {**weights, name: weight.new_zeros(3, 5)}, tmp_path)


def test_find_checkpoint_says_what_there_is(save, tmp_path):
    with pytest.raises(CheckpointError, match="no such run directory"):
        ckpt.find_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="holds no complete checkpoint"):
        ckpt.find_checkpoint(tmp_path)
    for step in (5, 6):
        save(step)
    assert ckpt.find_checkpoint(tmp_path, "best") == files.folder_of(tmp_path, 6)
    write_json(tmp_path / "best.json", {"step": 5})
    assert ckpt.find_checkpoint(tmp_path, "best") == files.folder_of(tmp_path, 5)
    assert ckpt.find_checkpoint(tmp_path, "latest") == files.folder_of(tmp_path, 6)
    assert ckpt.find_checkpoint(tmp_path, "5") == files.folder_of(tmp_path, 5)
    assert ckpt.find_checkpoint(files.folder_of(tmp_path, 5)) == files.folder_of(tmp_path, 5)
    with pytest.raises(CheckpointError, match="has no checkpoint of step 7; it has 5, 6"):
        ckpt.find_checkpoint(tmp_path, 7)
    with pytest.raises(CheckpointError, match="has no averaged checkpoint"):
        ckpt.find_checkpoint(tmp_path, "averaged")
    with pytest.raises(ConfigError, match="must be best, latest, averaged or the number of a step"):
        ckpt.find_checkpoint(tmp_path, "newest")


@pytest.mark.parametrize("pointer", ["{}", '{"step": null}', '{"step": "x"}'])
def test_a_pointer_without_a_step_is_named(save, tmp_path, pointer):
    """Pins a traceback on a pointer that someone edited."""
    save(3)
    (tmp_path / "best.json").write_text(pointer, encoding="utf-8")
    with pytest.raises(CheckpointError, match="best.json: names no step; delete it"):
        ckpt.find_checkpoint(tmp_path)


def test_a_manifest_vouches_for_every_part(save):
    """Pins that an emptied manifest verifies, and the missing weights are a traceback later."""
    folder = save(3)
    (folder / "manifest.json").write_text('{"format": 1, "sha256": {}}', encoding="utf-8")
    with pytest.raises(CheckpointError, match="manifest.json: does not list model.safetensors"):
        files.read_checkpoint(folder)


def test_load_run_gives_a_model_in_eval_mode_with_its_weights(save, tmp_path):
    save(3)
    run = ckpt.load_run(tmp_path)
    assert run.step == 3
    assert not any(module.training for module in run.model.modules())
    assert all(bool((weight == 3.0).all()) for weight in run.model.parameters())
    assert run.model.output_weight is run.model.tgt_embedding.weight


def test_facts_of_the_training_text_go_along(save, tmp_path, recipe):
    """Into `load_run`, also of an average; without any the longest length of the recipe stands for them."""
    facts = TrainedOn(17, 2, Proportion(0.1, 0.9, -0.5, -0.2, 0.8), ("copy",))
    save(1)
    assert ckpt.load_run(tmp_path).trained_on == TrainedOn(recipe.data.max_length)
    for step in (2, 3):
        save(step, trained_on=facts.as_json())
    assert ckpt.load_run(tmp_path, 2).trained_on == facts
    assert ckpt.load_run(ckpt.average(tmp_path, [2, 3])).trained_on == facts
    assert ckpt.load_run(ckpt.average(tmp_path, [1])).trained_on == TrainedOn(recipe.data.max_length)
    save(4, trained_on={"src_tokens": "many"})
    with pytest.raises(CheckpointError, match="`trained_on` tells nothing of a training text"):
        ckpt.load_run(tmp_path, 4)


def test_a_foreign_tokenizer_is_refused(save, tmp_path):
    """Tokenizer and weights that do not belong together, with a manifest that fits."""
    folder = save(3)
    other = train_tokenizer(["quite another text", "with other words"] * 30, type="bpe", vocab_size=300)
    (folder / "tokenizer.model").unlink()
    Tokenizers(other, other).save(folder)
    (folder / "manifest.json").unlink()
    files._write_manifest(folder)
    with pytest.raises(CheckpointError, match="tokenizer and weights do not belong together"):
        ckpt.load_run(tmp_path)


def test_a_damaged_recipe_with_a_fitting_manifest_is_named(save, tmp_path):
    folder = save(3)
    (folder / "config.yaml").write_text("run_dir: 3\n", encoding="utf-8")
    (folder / "manifest.json").unlink()
    files._write_manifest(folder)
    with pytest.raises(CheckpointError, match="its recipe cannot be used"):
        ckpt.load_run(tmp_path)


def _killed_while_saving(write, lines, function="", **scalars):
    """Save in a child that is gone after so many lines of the module, or of one function of it.

    Returns its exit code: 9, or 0 where it came to its end.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = lines

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename != files.__file__ or function not in ("", frame.f_code.co_name):
            return None
        if event == "line" and (left := left - 1) < 0:
            os._exit(9)
        return trace

    sys.settrace(trace)
    write(2, **scalars)
    os._exit(0)


def test_a_kill_at_any_line_leaves_whole_checkpoints(save, tmp_path):
    """B107: what has the right name is complete, the one before is there, and the next saving cleans up."""
    save(1)
    lines, code = 1, 9
    while code:
        shutil.rmtree(files.folder_of(tmp_path, 2), ignore_errors=True)
        code = _killed_while_saving(save, lines)
        assert code in (0, 9)
        steps = ckpt.saved_steps(tmp_path)
        assert steps in ([1], [1, 2])
        assert [files.read_checkpoint(files.folder_of(tmp_path, step)).step for step in steps] == steps
        lines += 3
    assert lines > 50
    assert ckpt.saved_steps(tmp_path) == [1, 2]
    assert _killed_while_saving(save, lines // 2) == 9
    ckpt.rotate(tmp_path, 5, [])
    names = sorted(entry.name for entry in (tmp_path / "checkpoints").iterdir())
    assert names == ["step_00000001", "step_00000002"]


def test_a_kill_at_any_line_of_a_replacement_leaves_the_old_or_the_new(save, tmp_path):
    """B107: also where a step is saved again, there is a whole checkpoint of it at any instant."""
    lines, code, found = 12, 9, []
    while code:
        shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
        save(2, note="old")
        code = _killed_while_saving(save, lines, "_write", note="new")
        assert code in (0, 9)
        found.append(ckpt.newest_valid(tmp_path).scalars["note"])
        assert ckpt.newest_valid(tmp_path).step == 2
        lines += 1
    assert found == sorted(found, reverse=True) and set(found) == {"old", "new"}


def test_halves_integers_and_flags_have_their_mean(save, tmp_path, recipe, tokenizers):
    """B118: fp16 weights are not summed in fp16; counts and flags are the last ones; one alone is itself."""
    parts = [
        {"w": torch.tensor([40000.0, 0.1]).half(), "n": torch.tensor([3]), "on": torch.tensor([True, False])},
        {
            "w": torch.tensor([40000.0, 0.3]).half(),
            "n": torch.tensor([5]),
            "on": torch.tensor([False, False]),
        },
    ]
    for step, weights in enumerate(parts, start=1):
        files.save_checkpoint(
            tmp_path, step, weights=weights, state={}, scalars={}, recipe=recipe, tokenizers=tokenizers
        )
    found = files.read_checkpoint(ckpt.average(tmp_path, [1, 2])).weights
    assert {name: weight.dtype for name, weight in found.items()} == {
        "w": torch.float16,
        "n": torch.int64,
        "on": torch.bool,
    }
    assert torch.equal(found["w"], torch.tensor([40000.0, 0.2]).half())
    assert (found["n"].tolist(), found["on"].tolist()) == ([5], [False, False])
    for steps in ([1], [2, 2]):
        found = files.read_checkpoint(ckpt.average(tmp_path, steps)).weights
        assert all(torch.equal(found[name], weight) for name, weight in parts[steps[0] - 1].items())


def test_the_newest_by_number_are_averaged_and_kept(save, tmp_path):
    """B112: of 8, 9, 10 and 100 the newest are 10 and 100, also where names would be sorted otherwise."""
    for steps in ([8, 9, 10, 100], [99_999_998, 99_999_999, 100_000_000]):
        for step in reversed(steps):
            save(step)
        assert main(["average", str(tmp_path), "--last", "2"]) == 0
        averaged = files.read_checkpoint(tmp_path / "checkpoints" / "averaged")
        assert averaged.scalars["averaged_steps"] == steps[-2:]
        assert ckpt.newest_valid(tmp_path).step == ckpt.load_run(tmp_path, "latest").step == steps[-1]
        ckpt.rotate(tmp_path, 2, [])
        assert ckpt.saved_steps(tmp_path) == steps[-2:]
