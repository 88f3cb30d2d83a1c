"""`max_tokens: auto`: the search for the largest budget, with a memory that is a formula."""

from __future__ import annotations

import pytest

from transformer_mt.training.token_budget import UNIT, find_budget


@pytest.mark.parametrize("tried", [None, 4096])
@pytest.mark.parametrize("limit", [900_000, 5_000_000, 12_345_678])
def test_the_largest_budget_below_the_limit_is_found(limit: int, tried: int | None) -> None:
    """Where memory grows in a line, a few points and the line give what trying everything gives."""
    seen: list[int] = []

    def peak(tokens: int) -> int | None:
        seen.append(tokens)
        used = 200_000 + 700 * tokens
        return used if used <= limit else None

    found = find_budget(peak, limit, 1 << 30, tried=tried)
    assert found.tokens % UNIT == 0
    assert 200_000 + 700 * found.tokens == found.bytes <= limit
    assert 200_000 + 700 * (found.tokens + UNIT) > limit
    assert len(seen) == len(set(seen)) < 20
    assert tried is None or max(seen) <= tried


def test_a_peak_above_the_limit_does_not_fit_though_it_could_be_held() -> None:
    assert find_budget(lambda tokens: tokens, 1500, 1 << 30, tried=None).tokens == 1024


def test_no_more_than_all_there_is() -> None:
    seen: list[int] = []

    def peak(tokens: int) -> int:
        seen.append(tokens)
        return 1

    assert find_budget(peak, 1 << 40, 3000, tried=None).tokens == 2560
    assert max(seen) == 2560
    assert find_budget(peak, 1 << 40, 3000, tried=1024).tokens == 2560
    assert find_budget(peak, 1 << 40, 10, tried=None).tokens == UNIT


@pytest.mark.parametrize("used", [None, 5000])
def test_the_smallest_budget_is_what_is_left_where_none_fits(used: int | None) -> None:
    """And no larger one is tried: a machine that is out of memory can be slow beyond all patience."""
    seen: list[int] = []

    def peak(tokens: int) -> int | None:
        seen.append(tokens)
        return used

    assert find_budget(peak, 1000, 1 << 30, tried=None).tokens == UNIT
    assert seen == [UNIT]
