"""Errors that a user can mend. Each knows its exit code; the command line prints its text as one line.

Anything else that is raised is a fault of the program and shows a traceback.
"""

EXIT_OK = 0
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class UserError(Exception):
    """Base of all errors whose message tells a user what was found, where, and what to do next."""

    exit_code = 1


class ConfigError(UserError):
    """A recipe, an override or a command line that cannot be used as it stands."""

    exit_code = 2


class DataError(UserError):
    """Text, prepared data or a tokenizer that cannot be used as it stands."""

    exit_code = 3


class DivergenceError(UserError):
    """Training left the finite numbers and cannot go on."""

    exit_code = 4


class CheckpointError(UserError):
    """A run directory or checkpoint that is missing, damaged or belongs to something else."""

    exit_code = 5


class LostProcessError(UserError):
    """One of several processes that work as one has failed, was killed, or does not answer."""

    exit_code = 6
