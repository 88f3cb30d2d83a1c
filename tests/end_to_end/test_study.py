"""A study of both models on the bundled corpus: killed, continued, compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Cli
from tests.small_corpora import write_head

STUDY = """\
run_dir: runs/s
recipe: {recipes}/zh_en_bundled/transformer.yaml
overrides:
  data.root: text
  tokenizer.vocab_size: 900
  model.d_model: 32
  model.num_encoder_layers: 1
  model.num_decoder_layers: 1
  training.max_steps: 20
  training.max_tokens: 256
  training.save_every: 10
  training.validate_every: 10
  training.log_every: 1
  decoding.beam_size: 1
  decoding.max_len_a: 0.1
  decoding.max_len_b: 4
variants:
  lstm: {{recipe: {recipes}/zh_en_bundled/lstm.yaml}}
  transformer: {{overrides: {{model.num_heads: 2, model.d_ff: 48}}}}
"""


@pytest.mark.slow
def test_a_killed_study_goes_on_where_it_stopped_and_ends_with_a_comparison(cli: Cli, tmp_path: Path) -> None:
    """Pins one signal to the child, its saved state, shared data, table and report.

    The signal goes to the whole group, as Ctrl-C in a terminal does.
    """
    write_head(REPOSITORY / "data" / "zh_en", tmp_path / "text")
    study = tmp_path / "s.yaml"
    study.write_text(STUDY.format(recipes=REPOSITORY / "recipes"), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "transformer_mt", "study", "s.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.startswith("step 3/"):
            os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 130
    assert "stopped; what was trained is saved, and the same command continues" in told[-1]
    lstm, transformer = tmp_path / "runs" / "s" / "lstm", tmp_path / "runs" / "s" / "transformer"
    saved = json.loads((lstm / "latest.json").read_text(encoding="utf-8"))["step"]
    assert 3 <= saved < 20
    assert not transformer.exists()

    done = cli("study", "s.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"continuing after step {saved}" in done.stderr
    assert len(list((tmp_path / "runs" / "s" / "prepared").iterdir())) == 1
    assert (lstm / "tokenizer.model").read_bytes() == (transformer / "tokenizer.model").read_bytes()
    infos = [json.loads((run / "run.json").read_text(encoding="utf-8")) for run in (lstm, transformer)]
    assert infos[0]["data_fingerprint"] == infos[1]["data_fingerprint"]
    assert "training.max_steps=20" in infos[0]["command"]

    rows = json.loads((tmp_path / "runs" / "s" / "study.json").read_text(encoding="utf-8"))["trials"]
    assert [(row["variant"], row["state"], row["updates"]) for row in rows] == [
        ("lstm", "finished", 20),
        ("transformer", "finished", 20),
    ]
    best = json.loads((transformer / "best.json").read_text(encoding="utf-8"))
    assert (rows[1]["best"], rows[1]["best_step"]) == (best["value"], best["step"])
    report = json.loads((tmp_path / "runs" / "s" / "report.json").read_text(encoding="utf-8"))
    assert [system["name"] for system in report["systems"]] == ["lstm", "transformer"]
    assert [one["name"] for one in report["sets"]] == ["test", "test_long"]
    assert (tmp_path / "runs" / "s" / "report.html").is_file()
    assert done.stdout.startswith("variant ")
    assert "\ntest (7 lines)" in done.stdout
