"""YAML text -> a tree of values, within limits: what nobody wrote by hand costs neither time nor memory.

YAML 1.2: the language `no` stays text, `3e-4` is a number, doubled keys are errors. Knows neither schemas nor
overrides.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from transformer_mt.errors import ConfigError

DEEPEST = 100
"""Sections and lists within each other; the reader takes seconds for a thousand, and recursion ends it."""
# Characters of a file, and values in it with all aliases written out: a few lines can stand for billions.
_MOST_CHARACTERS = 1 << 18
_MOST_VALUES = 100_000


def read_tree(path: Path, kind: str) -> CommentedMap:
    """The mapping that a file holds.

    Args:
        path: of the file.
        kind: what it is called in messages, such as `recipe`.

    Raises:
        ConfigError: there is no such file, or it is not a YAML mapping, or larger than any that people write.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such {kind}; name a YAML file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name the YAML file in it") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        tree = load_yaml(text, str(path))
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        problem = " ".join(str(error.problem or error.context or "is not YAML").split())
        if "\t" in problem or "'\\t'" in problem:
            problem += "; indent with spaces, not tabs"
        raise ConfigError(f"{where}: {problem}") from None
    except (YAMLError, ValueError) as error:  # a date or a number that is none is a ValueError
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(tree, CommentedMap):
        found = "is empty" if tree is None else f"is a {'list' if isinstance(tree, list) else 'single value'}"
        raise ConfigError(f"{path}:1:1: a {kind} must be a mapping of keys to values, but it {found}")
    return tree


def load_yaml(text: str, where: str) -> Any:
    """The tree of values that a text spells.

    Args:
        text: YAML.
        where: what stands before a message.

    Raises:
        ConfigError: it is larger than anything that people write.
        YAMLError: it is not YAML.
        ValueError: a date or a number in it is none.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(
            f"{where}: has {len(text):,} characters, but {_MOST_CHARACTERS:,} are more than anyone writes; "
            "name another file"
        )
    too_deep = ConfigError(f"{where}: is nested more than {DEEPEST} deep; write it flatter")
    if _bracket_depth(text) > DEEPEST:
        raise too_deep
    try:
        tree = YAML(typ="rt", pure=True).load(text)
        number = _count(tree, {})
    except RecursionError:
        raise too_deep from None
    if number > _MOST_VALUES:
        raise ConfigError(
            f"{where}: stands for more than {_MOST_VALUES:,} values with its aliases written out; use fewer"
        )
    return tree


def plain(value: Any) -> Any:
    """ruamel's round-trip types -> plain Python types."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _bracket_depth(text: str) -> int:
    """How deep brackets are nested, those in quotes and comments counted with the others."""
    depth = deepest = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _count(node: Any, known: dict[int, int]) -> int:
    """How many values a node stands for with all aliases written out.

    Args:
        known: id of a node -> its count.
    """
    if not isinstance(node, dict | list):
        return 1
    if id(node) not in known:
        items = node.values() if isinstance(node, dict) else node
        known[id(node)] = 1 + sum(_count(item, known) for item in items)
    return known[id(node)]
