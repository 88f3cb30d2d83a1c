"""YAML files that people write -> plain values, and what a schema finds wrong in them, with its place.

YAML 1.2: the language `no` stays text, `3e-4` is a number, doubled keys are errors. All problems of a file
are found at once. Knows no schema: recipes and studies bring theirs.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from transformer_mt.errors import ConfigError

# Stands in the name of a section for each name that the file may choose.
_ANY_NAME = "NAME"


class YamlFile:
    """One file that was read: its values, and where each key stands."""

    def __init__(self, path: str | Path, kind: str) -> None:
        """kind: what the file is called in messages, such as `recipe`.

        Raises:
            ConfigError: there is no such file, or it is not a YAML mapping.
        """
        self.path = Path(path)
        self._tree = _read_tree(self.path, kind)

    def values(self) -> dict[str, Any]:
        """All values as plain Python types, new at each call."""
        values: dict[str, Any] = _plain(self._tree)
        return values

    def place(self, keys: Sequence[str]) -> str:
        """`file:line:col` of the deepest key of this path that the file holds."""
        node: Any = self._tree
        line, column = 0, 0
        for key in keys:
            if isinstance(node, CommentedMap) and key in node:
                line, column = node.lc.key(key)
            elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
                line, column = node.lc.item(int(key))  # type: ignore[attr-defined]
            else:
                break
            node = node[int(key)] if isinstance(node, list) else node[key]
        return f"{self.path}:{line + 1}:{column + 1}"


class Problem(NamedTuple):
    """One thing that a schema found wrong."""

    keys: list[str]
    """Path of the key, places in a list included."""
    key: str
    """The same as people write it: dotted, without places in a list."""
    message: str
    is_unknown: bool
    """The schema has no such key."""


def find_problems(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """What pydantic found, in words.

    A check across keys names its key first ("num_heads: …"); the nearest name of `model` is suggested for a
    key that it does not have.
    """
    problems = []
    for item in error.errors():
        keys = [str(part) for part in item["loc"]]
        message = say_what_is_wrong(item)
        if item["type"] == "value_error":
            named, _, message = message.partition(": ")
            keys += named.split(".")
        is_unknown = item["type"] == "extra_forbidden"
        if is_unknown:
            message = "no such key" + _suggest(keys, model)
        key = ".".join(key for key, part in zip_longest(keys, item["loc"]) if not isinstance(part, int))
        problems.append(Problem(keys, key, message, is_unknown))
    return problems


def say_what_is_wrong(error: Any) -> str:
    """One of pydantic's errors as the end of a sentence that began with the key."""
    if error["type"] == "missing":
        return "this key is needed"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return f"must be a section of keys, but is {error['input']!r} instead"
    if error["type"] == "tuple_type":
        return f"must be a name or a list of names, but is {error['input']!r} instead"
    text: str = error["msg"]
    text = text[0].lower() + text[1:]
    return f"{text.replace('input should be', 'must be')}, but is {error['input']!r} instead"


def parse_value(override: str, text: str) -> Any:
    """The value of a `key=value` override.

    Raises:
        ConfigError: it is not YAML.
    """
    try:
        return _plain(YAML(typ="rt", pure=True).load(text))
    except (YAMLError, ValueError, RecursionError):
        raise ConfigError(f"command line: {override}: the value is not YAML; quote it") from None


def _read_tree(path: Path, kind: str) -> CommentedMap:
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
        tree = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        problem = " ".join(str(error.problem or error.context or "is not YAML").split())
        if "\t" in problem or "'\\t'" in problem:
            problem += "; indent with spaces, not tabs"
        raise ConfigError(f"{where}: {problem}") from None
    except (
        YAMLError,
        ValueError,
        RecursionError,
    ) as error:  # a date or a number that is none is a ValueError
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(tree, CommentedMap):
        found = "is empty" if tree is None else f"is a {'list' if isinstance(tree, list) else 'single value'}"
        raise ConfigError(f"{path}:1:1: a {kind} must be a mapping of keys to values, but it {found}")
    return tree


def _plain(value: Any) -> Any:
    """ruamel's round-trip types -> plain Python types."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _sections(model: type[BaseModel], prefix: str = "") -> dict[str, list[str]]:
    """Dotted section name -> the keys it takes ("" is the top)."""
    found: dict[str, list[str]] = {prefix: []}
    for name, field in model.model_fields.items():
        key = field.alias or name
        found[prefix].append(key)
        inner, kind = (f"{prefix}.{key}" if prefix else key), field.annotation
        if get_origin(kind) is dict:
            inner, kind = f"{inner}.{_ANY_NAME}", get_args(kind)[1]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= _sections(kind, inner)
    return found


def _suggest(keys: list[str], model: type[BaseModel]) -> str:
    sections = _sections(model)
    here, wrong = _section_of(keys[:-1], sections), keys[-1]
    near = difflib.get_close_matches(wrong, sections[here], 1, 0.6)
    if near:
        return f"; did you mean {near[0]}?"
    elsewhere = {name: section for section, names in sections.items() for name in names}
    near = difflib.get_close_matches(wrong, elsewhere, 1, 0.75)
    if near:
        section = elsewhere[near[0]]
        return f"; did you mean {section + '.' if section else ''}{near[0]}?"
    return f"; this section takes {', '.join(sections[here])}"


def _section_of(keys: list[str], sections: dict[str, list[str]]) -> str:
    """The name in `sections` of the section at this path."""
    section = ""
    for key in keys:
        inner = f"{section}.{key}" if section else key
        section = (
            inner if inner in sections or f"{inner}.{_ANY_NAME}" in sections else f"{section}.{_ANY_NAME}"
        )
    return section
