"""The error classes and their exit codes, which scripts rely on."""

from __future__ import annotations

import pytest

from transformer_mt import errors


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.ConfigError, 2),
        (errors.DataError, 3),
        (errors.DivergenceError, 4),
        (errors.CheckpointError, 5),
    ],
)
def test_exit_codes_are_those_of_the_documentation(kind: type[errors.UserError], code: int) -> None:
    """Pins the documented numbers: a renumbering would break users' scripts."""
    assert kind.exit_code == code
    assert issubclass(kind, errors.UserError)


def test_no_two_errors_share_an_exit_code() -> None:
    """Pins that the exit code alone tells what went wrong."""
    kinds = errors.UserError.__subclasses__()
    codes = [kind.exit_code for kind in kinds]
    assert len(set(codes) | {errors.EXIT_OK, errors.EXIT_INTERRUPTED, 1}) == len(codes) + 3
