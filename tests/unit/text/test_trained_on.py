"""Facts of a training text, by hand, and through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from transformer_mt.text.trained_on import TrainedOn

PAIRS = [(f"{'wort ' * (1 + number % 9)}so.", f"{'word ' * (1 + number % 9)}so.") for number in range(1000)]


def test_lengths_but_for_the_rarest() -> None:
    """One source in a hundred may be longer, one in twenty may hold more sentences."""
    lengths = np.array([10] * 198 + [77, 99])
    two = [("Eins. Zwei.", "One. Two.")]
    assert TrainedOn.learn(lengths, PAIRS).src_tokens == 77
    assert TrainedOn.learn(lengths, PAIRS + two * 40).sentences == 1
    assert TrainedOn.learn(lengths, PAIRS + two * 60).sentences == 2


def test_what_is_usual_is_no_sign() -> None:
    """Danish and Norwegian: where a tenth of the pairs are copies, a copy is nothing to tell."""
    copy = ("han går hjem nu.", "han går hjem nu.")
    few, many = (TrainedOn.learn(np.array([9]), PAIRS + [copy] * number) for number in (90, 130))
    assert few.usual == ()
    assert many.usual == ("copy",)
    assert few.oddities(*copy) == ("copy",)
    assert many.oddities(*copy) == ()
    assert many.oddities("ein Haus", "a a a a a") == ("loop",)


@pytest.mark.parametrize("facts", [TrainedOn(12), TrainedOn.learn(np.array([9, 8]), PAIRS)])
def test_facts_survive_json(facts: TrainedOn) -> None:
    assert TrainedOn.from_json(json.loads(json.dumps(facts.as_json()))) == facts
