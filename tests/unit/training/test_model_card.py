"""The model card is made of the files of a run, and says what each score was computed with."""

import json

import pytest
from random_run import MODELS, random_run

from transformer_mt.checkpoint_files import folder_of
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import write_json
from transformer_mt.training.model_card import write_model_card

SIGNATURE = "nrefs:1|case:mixed|tok:13a"


@pytest.mark.parametrize(
    ("architecture", "described"),
    [
        ("transformer", "A transformer of 1,234 parameters (d_model 32, 2 heads, d_ff 48, 1 + 1 layers)"),
        ("lstm", "An lstm of 1,234 parameters (d_model 32, general attention, 1 + 1 layers)"),
    ],
)
def test_card_holds_data_command_scores_with_signatures_and_cost(tmp_path, architecture, described):
    """Pins scores without signature, and signatures that break the table they stand in."""
    run_dir = random_run(tmp_path / "run", model=MODELS[architecture])
    config = next(run_dir.glob("checkpoints/*/config.yaml"))
    (run_dir / "config.yaml").write_bytes(config.read_bytes())
    info = {
        "transformer_mt": "0.1.0",
        "parameters": 1234,
        "training_pairs": 5678,
        "data_fingerprint": "f" * 64,
        "command": "transformer-mt train recipe.yaml",
        "machine": "x86_64",
        "threads": 2,
        "torch": "2",
        "cost": {"steps": 20, "target_tokens": 4321, "seconds": 90.0, "peak_gib": 1.5},
        "signatures": {"bleu": SIGNATURE},
    }
    write_json(run_dir / "run.json", info)
    write_json(run_dir / "best.json", {"step": 20, "metric": "bleu", "value": 33.333})
    (run_dir / "evaluation").mkdir()
    report = {
        "set": "test",
        "step": 20,
        "scores": [{"name": "ter", "value": 50.0, "signature": "sig|nature"}],
    }
    (run_dir / "evaluation" / "test.json").write_text(json.dumps(report), encoding="utf-8")
    write_model_card(run_dir)
    card = (run_dir / "README.md").read_text(encoding="utf-8")
    for part in (
        described,
        "5,678 pairs",
        "transformer-mt train recipe.yaml",
        f"- validation, step 20: bleu 33.33 (`{SIGNATURE}`)",
        "- test, step 20: ter 50.00 (`sig|nature`)",
        "4,321 target tokens in 1.5 minutes",
        "1.50 GiB",
    ):
        assert part in card
    assert folder_of(run_dir, 20).is_dir()


def test_no_card_before_training_has_come_to_an_end(tmp_path):
    """`evaluate` on a run in progress must not invent a cost."""
    run_dir = random_run(tmp_path / "run")
    write_json(run_dir / "best.json", {"step": 20, "metric": "bleu", "value": 1.0})
    write_json(run_dir / "run.json", {"command": "x"})
    write_model_card(run_dir)
    assert not (run_dir / "README.md").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", '{"cost": {}}', "model card cannot be written: run.json, best.json or .*KeyError"),
        ("evaluation/x.json", "{}", "model card cannot be written"),
        ("evaluation/x.json", "x", "x.json: cannot be read"),
    ],
)
def test_files_that_someone_changed_are_named(tmp_path, name, content, message):
    """Pins tracebacks at the end of an evaluation that took an hour."""
    run_dir = random_run(tmp_path / "run")
    config = next(run_dir.glob("checkpoints/*/config.yaml"))
    (run_dir / "config.yaml").write_bytes(config.read_bytes())
    info = dict.fromkeys(("transformer_mt", "command", "machine", "torch", "data_fingerprint"), "x")
    cost = {"steps": 20, "target_tokens": 4321, "seconds": 90.0, "peak_gib": 1.5}
    numbers = {"parameters": 1, "training_pairs": 1, "threads": 1, "signatures": {}, "cost": cost}
    write_json(run_dir / "run.json", info | numbers)
    write_json(run_dir / "best.json", {"step": 20, "metric": "bleu", "value": 1.0})
    write_model_card(run_dir)
    (run_dir / "evaluation").mkdir()
    (run_dir / name).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        write_model_card(run_dir)
