"""Batches of finished translations: what is in them, who shares them, and what is too long."""

from __future__ import annotations

import pytest
import torch
from small_models import small_config

from transformer_mt.decoding import teacher_forcing
from transformer_mt.decoding.stepper import MIN_ROWS
from transformer_mt.decoding.teacher_forcing import ForcedBatch, Pair, teacher_forced
from transformer_mt.errors import DataError
from transformer_mt.model.build import Model, build_model

CPU = torch.device("cpu")


def _model(**options: object) -> Model:
    torch.manual_seed(0)
    return build_model(small_config(**options), 40, 40)


def test_a_batch_has_two_padded_lengths_and_rows_enough() -> None:
    """Pairs of 3 + 9 and 4 + 10 tokens go together, those of 9 + 3 do not; results come back in order."""
    pairs = [
        Pair([5, 6, 3], [7] * 8),
        Pair([5] * 8 + [3], [8, 9]),
        Pair([6, 6, 6, 3], [9] * 9),
    ]
    seen: list[ForcedBatch] = []

    def work(batch: ForcedBatch) -> list[Pair]:
        seen.append(batch)
        return list(batch.pairs)

    assert teacher_forced([_model()], pairs, work, device=CPU, batch_size=5) == pairs
    assert [[len(pair.tgt_ids) for pair in batch.pairs] for batch in seen] == [[2], [8, 9]]
    batch = seen[1]
    assert batch.src_ids.shape == (MIN_ROWS, 8) and batch.labels.shape == (MIN_ROWS, 16)
    assert batch.src_ids[0].tolist() == [5, 6, 3, 0, 0, 0, 0, 0]
    assert batch.src_mask[0, 0, 0].tolist() == [True] * 3 + [False] * 5
    assert batch.decoder_input_ids[0].tolist() == [2] + [7] * 8 + [0] * 7
    assert batch.labels[0].tolist() == [7] * 8 + [3] + [0] * 7
    assert torch.equal(batch.labels[1:], batch.labels[1].expand(MIN_ROWS - 1, -1))


def test_no_batch_is_larger_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven pairs by twos; a pair too long for MIN_ROWS of its like is by itself, in one row, always."""
    sizes: list[tuple[int, int]] = []

    def work(batch: ForcedBatch) -> list[int]:
        sizes.append((len(batch.pairs), len(batch.src_ids)))
        return [0] * len(batch.pairs)

    pairs = [Pair([5, 3], [6])] * 7
    teacher_forced([_model()], pairs, work, device=CPU, batch_size=2)
    assert sizes == [(2, 16), (2, 16), (2, 16), (1, 16)]
    sizes.clear()
    monkeypatch.setattr(teacher_forcing, "_ALONE_FROM", 9)
    teacher_forced([_model()], [*pairs * 3, *[Pair([5, 3], [6] * 8)] * 2], work, device=CPU, batch_size=64)
    assert sorted(sizes) == [(1, 1), (1, 1), (21, 21)]


def test_dropout_is_off_and_the_mode_comes_back() -> None:
    """B128: a model in the middle of training."""
    model = _model().train()

    def work(batch: ForcedBatch) -> list[bool]:
        assert not torch.is_grad_enabled()
        return [model.training]

    assert teacher_forced([model], [Pair([3], [])], work, device=CPU, batch_size=1) == [False]
    assert model.training


@pytest.mark.parametrize(
    ("pair", "side"), [(Pair([5] * 10 + [3], [], 7), "source"), (Pair([3], [5] * 10, 7), "translation")]
)
def test_what_learned_positions_do_not_hold_is_refused(pair: Pair, side: str) -> None:
    """Of the two models the shorter counts; what just fits is padded to no more."""
    models = [_model(positions="learned", max_positions=size) for size in (16, 10)]
    message = (
        f"line 7: the {side} has 11 tokens with eos, but this model's learned positions end at 10; split"
    )
    fits = Pair([5] * 9 + [3], [5] * 9)

    def work(batch: ForcedBatch) -> list[torch.Size]:
        inputs = batch.src_ids, batch.src_mask, batch.decoder_input_ids
        return [model.hidden(*inputs)[0].shape for model in models]

    assert teacher_forced(models, [fits] * 2, work, device=CPU, batch_size=2) == [(10, 24)] * 2
    with pytest.raises(DataError, match=message):
        teacher_forced(models, [fits, pair], work, device=CPU, batch_size=2)


def test_a_batch_is_halved_until_it_fits_into_the_memory() -> None:
    """B055: and a pair that does not fit alone has no result; the others have theirs."""

    def work(batch: ForcedBatch) -> list[int]:
        if len(batch.pairs) > 2 or any(pair.number == 9 for pair in batch.pairs):
            raise torch.OutOfMemoryError
        return [pair.number for pair in batch.pairs]

    pairs = [Pair([5, 3], [6], number) for number in range(5)]
    assert teacher_forced([_model()], pairs, work, device=CPU, batch_size=8) == [0, 1, 2, 3, 4]
    pairs[1] = Pair([5, 3], [6], 9)
    assert teacher_forced([_model()], pairs, work, device=CPU, batch_size=8) == [0, None, 2, 3, 4]


def test_other_errors_are_raised_as_they_are() -> None:
    """What is no lack of memory is not tried again."""
    calls = []

    def work(batch: ForcedBatch) -> list[int]:
        calls.append(1)
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        teacher_forced([_model()], [Pair([3], [])] * 2, work, device=CPU, batch_size=8)
    assert calls == [1]
