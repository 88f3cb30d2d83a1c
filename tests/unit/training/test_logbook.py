"""Reported numbers against hand computations, and records that appear once."""

import json
import logging
import math
import sys
import threading

import pytest

from transformer_mt.training.logbook import Logbook, Totals
from transformer_mt.training.step import Update


def update(**values):
    defaults = {
        "loss_sum": 30.0,
        "nll_sum": 20.0,
        "num_tokens": 10,
        "num_src_tokens": 14,
        "padded_tokens": 32,
        "grad_norm": 1.5,
        "learning_rate": 0.1,
        "applied": True,
    }
    return Update(**{**defaults, **values})


def test_record_is_hand_computed():
    """Updates of 10 and 30 tokens: 50 / 40 nats a token, e^1.25, 40 tokens in 2 s, 40 + 28 of 80 places."""
    totals = Totals()
    totals.add(update(), 0.5)
    last = update(loss_sum=50.0, nll_sum=30.0, num_tokens=30, padded_tokens=48, learning_rate=0.2)
    totals.add(last, 1.5)
    record = totals.record(12, last, 3 * 2**29)
    assert record == {
        "step": 12,
        "loss": 2.0,
        "nll": 1.25,
        "ppl": pytest.approx(3.4903429),
        "grad_norm": 1.5,
        "learning_rate": 0.2,
        "tokens": 40,
        "tokens_per_second": 20.0,
        "padding": pytest.approx(0.15),
        "peak_gib": 1.5,
        "skipped": 0,
    }


def test_a_skipped_update_counts_its_tokens_but_not_its_loss():
    """An infinite loss must not make the whole line infinite."""
    totals = Totals()
    totals.add(update(), 1.0)
    broken = update(loss_sum=float("inf"), nll_sum=float("nan"), applied=False)
    totals.add(broken, 1.0)
    record = totals.record(2, broken, 0)
    assert (record["loss"], record["nll"], record["tokens"], record["skipped"]) == (3.0, 2.0, 20, 1)


def test_a_window_of_skipped_updates_says_that_nothing_was_learned(tmp_path, caplog):
    """Pins `loss 0.000 ppl 1.00`, the best numbers there are, where no update was applied."""
    caplog.set_level(logging.INFO, "transformer_mt")
    totals = Totals()
    for _ in range(2):
        totals.add(update(loss_sum=math.nan, grad_norm=math.inf, applied=False), 1.0)
    with Logbook(tmp_path, 0, 20) as logbook:
        logbook.training(totals.record(2, update(grad_norm=math.inf), 0))
        logbook.validation({"step": 2, "nll": math.inf, "best": None})
    trained, validated = caplog.messages
    assert trained.startswith("step 2/20 nothing learned, all 2 updates skipped, 10 tok/s")
    assert "loss" not in trained and "ppl" not in trained and trained.count("skipped") == 1
    assert validated == "step 2 validation: nll inf best none"
    lines = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = (json.loads(line, parse_constant=pytest.fail) for line in lines)
    assert [first[name] for name in ("loss", "nll", "ppl", "grad_norm", "skipped")] == [*[None] * 4, 2]
    assert second["nll"] is None and second["best"] is None


def test_records_after_the_step_continued_from_are_cut(tmp_path):
    """B200: duplicate steps after a resume, and a half-written last line of a killed run."""
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"kind": "train", "step": step}) for step in (5, 10, 15)]
    path.write_text("\n".join([*lines, "[3]", "null", '{"kind": "tr']), encoding="utf-8")
    with Logbook(tmp_path, 10, 20) as logbook:
        logbook.training(Totals().record(15, update(), 0))
    steps = [json.loads(line)["step"] for line in path.read_text(encoding="utf-8").split("\n") if line]
    assert steps == [5, 10, 15]


def test_one_plain_line_per_log_step_on_a_pipe(tmp_path, caplog):
    """stderr of the tests is no terminal: the line has all that the bar shows."""
    caplog.set_level(logging.INFO, "transformer_mt")
    totals = Totals()
    totals.add(update(), 0.5)
    with Logbook(tmp_path, 0, 20) as logbook:
        logbook.training(totals.record(5, update(), 2**30))
    (message,) = caplog.messages
    for part in (
        "step 5/20",
        "loss 3.000",
        "ppl 7.39",
        "20 tok/s",
        "pad 25.0%",
        "lr 1.00e-01",
        "mem 1.00",
        "eta",
    ):
        assert part in message
    assert message in (tmp_path / "train.log").read_text(encoding="utf-8")


def test_samples_are_one_line_each(tmp_path):
    """A tab or newline inside a text may not break the table."""
    with Logbook(tmp_path, 0, 20) as logbook:
        logbook.samples(3, [("a\tb", "c\nd", "e")])
    text = (tmp_path / "samples" / "step_00000003.tsv").read_text(encoding="utf-8")
    assert text == "source\treference\ttranslation\na b\tc d\te\n"


def test_a_full_disk_is_not_shown_by_a_thread_as_well(tmp_path, monkeypatch):
    """TensorBoard writes in a thread of its own, whose traceback came before our line; other faults show."""
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: seen.append(failure.exc_type))

    def fail(error):
        raise error

    with Logbook(tmp_path, 0, 20):
        for error in (OSError(28, "No space left on device"), ValueError("ours")):
            thread = threading.Thread(target=fail, args=(error,))
            thread.start()
            thread.join()
    assert seen == [ValueError]
    with Logbook(tmp_path, 0, 20):
        pass
    threading.excepthook(threading.ExceptHookArgs((OSError, OSError(), None, None)))
    assert seen == [ValueError, OSError]


def test_without_tensorboard_training_goes_on(tmp_path, caplog, monkeypatch):
    """B200: a broken installation costs the curves and one warning, not the run."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with Logbook(tmp_path, 0, 20) as logbook:
        logbook.training(Totals().record(5, update(), 0))
        logbook.samples(5, [("a", "b", "c")])
        logbook.picture("attention/0", None, 5)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "install it with: pip install tensorboard" in warnings[0]
    assert (tmp_path / "metrics.jsonl").read_bytes().count(b"\n") == 1
    assert not (tmp_path / "tensorboard").exists()
