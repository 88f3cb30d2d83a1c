"""The words of `compare`: `[NAME=]PATH[,PATH...]` for a system, with names that tell systems apart, and
`METRIC[:lower]=FILE` for the scores of another metric.

Knows paths and names, not what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transformer_mt.errors import ConfigError
from transformer_mt.evaluation.segment_scores import lower_is_better


@dataclass(frozen=True)
class NamedSystem:
    """A system as it was typed: its name, the paths, and whether the name was given."""

    name: str
    paths: tuple[str, ...]
    given: bool


def parse_system(word: str) -> NamedSystem:
    """One word of the command line; a path that exists is never taken apart.

    Raises:
        ConfigError: a name or a path is missing, or a path is there twice.
    """
    one = _taken_apart(word)
    places = [Path(path).resolve() for path in one.paths]
    if twice := [path for number, path in enumerate(one.paths) if places[number] in places[:number]]:
        raise ConfigError(f"{word}: names {twice[0]} twice; seeds of a system must be different runs")
    return one


def parse_scores(word: str) -> tuple[str, bool, str]:
    """Metric, whether lower is better, and file.

    Raises:
        ConfigError: a name or a file is missing, or nothing says which way is better.
    """
    name, _, path = word.partition("=")
    metric, _, direction = name.rpartition(":")
    if direction not in ("lower", "higher"):
        metric, direction = name, ""
    if not metric or not path:
        raise ConfigError(f"--scores {word}: must be METRIC=FILE, METRIC:lower=FILE or METRIC:higher=FILE")
    lower = lower_is_better(metric) if not direction else direction == "lower"
    if lower is None:
        raise ConfigError(
            f"--scores {word}: is a lower or a higher {metric} better? write {metric}:lower={path} or "
            f"{metric}:higher={path}"
        )
    return metric, lower, path


def _taken_apart(word: str) -> NamedSystem:
    if Path(word).exists():
        return NamedSystem(_base(word), (word,), given=False)
    paths = tuple(word.split(","))
    if all(Path(path).exists() for path in paths):
        return NamedSystem(_base(paths[0]), paths, given=False)
    name, equals, rest = word.partition("=")
    if not equals:
        return NamedSystem(_base(paths[0]), paths, given=False)
    if not name or not rest:
        raise ConfigError(f"{word}: must be NAME=PATH, but one of the two is missing")
    for place in (place for place, character in enumerate(word) if character == "="):
        paths = _paths(word[place + 1 :])
        if place and all(map(_exists, paths)):
            return NamedSystem(word[:place], paths, given=True)
    return NamedSystem(name, _paths(rest), given=True)


def _paths(text: str) -> tuple[str, ...]:
    return (text,) if _exists(text) else tuple(text.split(","))


def _exists(path: str) -> bool:
    return bool(path) and Path(path).exists()


def _base(path: str) -> str:
    return Path(path).resolve().name


def distinct(named: Sequence[NamedSystem]) -> list[NamedSystem]:
    """Names that were not given grow by parent folders while others are the same.

    Raises:
        ConfigError: names that are the same all the same.
    """
    parts = [Path(one.paths[0]).resolve().parts for one in named]
    depths = [1] * len(named)
    names = [one.name for one in named]
    while growing := [
        place
        for place, one in enumerate(named)
        if not one.given and names.count(names[place]) > 1 and depths[place] < len(parts[place])
    ]:
        for place in growing:
            depths[place] += 1
            names[place] = "/".join(parts[place][-depths[place] :])
    for place, one in enumerate(named):
        first = names.index(names[place])
        if first < place:
            raise ConfigError(
                f"compare: {named[first].paths[0]} and {one.paths[0]} are both named {one.name}; "
                f"tell them apart with NAME={one.paths[0]}"
            )
    return [replace(one, name=name) for one, name in zip(named, names, strict=True)]
