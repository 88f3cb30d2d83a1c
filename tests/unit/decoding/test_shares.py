"""What one process cannot translate; what several do together is tested with torchrun, in end_to_end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from transformer_mt.decoding.shares import translate_in_shares
from transformer_mt.decoding.translation import Translation
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import CheckpointError
from transformer_mt.runtime.distributed import Ranks


class _Translator:
    """Lines that hold `nan` show that the model is broken."""

    def translate(self, lines: Sequence[str], *rest: Any, **more: Any) -> list[Translation]:
        if "nan" in lines:
            raise CheckpointError("the model gives no finite probabilities in fp32")
        return []


class _OtherSays(Ranks):
    """The other of two processes."""

    def __init__(self, rank: int, other: Any) -> None:
        super().__init__(rank, 2)
        self._other = other

    def gathered(self, value: Any) -> list[Any]:
        return [value, self._other] if self.first else [self._other, value]


@pytest.mark.parametrize("lines", [["nan", "fine"], ["fine", "nan"]])
def test_a_broken_model_is_that_of_all_processes(lines: list[str]) -> None:
    """Each must go back to the last checkpoint, though only one has met a sentence that shows it."""
    translator = cast("Translator", _Translator())
    said = "the model gives no finite probabilities in fp32"
    for rank in (0, 1):
        other: Any = said if lines[1 - rank] == "nan" else []
        with pytest.raises(CheckpointError, match=said):
            translate_in_shares(translator, _OtherSays(rank, other), lines)
