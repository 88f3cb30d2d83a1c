"""The mutations that prove the tests of `tests/faults.md`, and the command that applies them."""
