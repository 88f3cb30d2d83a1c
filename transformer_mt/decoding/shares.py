"""The lines of a text, shared among the processes that torchrun started: each translates its share of them.

Every process gets all translations, in the order of the lines. How a line is translated is not known here.
The two halves can be had by themselves: what a process does alone may be broken off, what all do may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from transformer_mt.decoding.translation import Candidate, Translation
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import CheckpointError
from transformer_mt.runtime.distributed import Ranks

Share = list[Translation] | str
"""Translations of a part of the lines, or why there are none."""


def translate_in_shares(
    translator: Translator,
    ranks: Ranks,
    lines: Sequence[str],
    first_line: int = 1,
    *,
    prefixes: Sequence[str] | None = None,
) -> list[Translation]:
    """What `Translator.translate` gives, with the same arguments; all processes call it with the same lines.

    Raises:
        CheckpointError: on all processes, where it is raised on any: a model without finite probabilities.
        LostProcessError: another process failed, or did not come in time.
    """
    return all_shares(ranks, own_share(translator, ranks, lines, first_line, prefixes=prefixes))


def own_share(
    translator: Translator,
    ranks: Ranks,
    lines: Sequence[str],
    first_line: int = 1,
    *,
    prefixes: Sequence[str] | None = None,
) -> Share:
    """This process's part of the lines, translated; arguments as `translate_in_shares`."""
    start, end = (len(lines) * rank // ranks.world for rank in (ranks.rank, ranks.rank + 1))
    try:
        return translator.translate(
            lines[start:end], first_line + start, prefixes=None if prefixes is None else prefixes[start:end]
        )
    except CheckpointError as error:
        return str(error)


def all_shares(ranks: Ranks, own: Share) -> list[Translation]:
    """What `own_share` gave each process, on all of them.

    Raises:
        CheckpointError, LostProcessError: as `translate_in_shares`.
    """
    if ranks.world == 1 and not isinstance(own, str):
        return own
    shares = ranks.gathered(own if isinstance(own, str) else [asdict(one) for one in own])
    for share in shares:
        if isinstance(share, str):
            raise CheckpointError(share)
    return [_from_json(one) for share in shares for one in share]


def _from_json(plain: dict[str, Any]) -> Translation:
    """The translation that `asdict` made this of, and JSON after it."""
    nbest = [
        Candidate(**{**one, "alignment": one["alignment"] and [(src, tgt) for src, tgt in one["alignment"]]})
        for one in plain["nbest"]
    ]
    return Translation(**{**plain, "nbest": nbest, "flags": tuple(plain["flags"])})
