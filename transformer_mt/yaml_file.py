"""YAML files that people write, with overrides laid over them -> a checked pydantic model.

All problems are found at once, and each is reported with its place. Knows no schema: recipes and studies
bring theirs.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from transformer_mt.errors import ConfigError
from transformer_mt.yaml_text import DEEPEST, load_yaml, plain, read_tree

# Stands in the name of a section for each name that the file may choose.
_ANY_NAME = "NAME"
# Characters of a value in a message.
_LONGEST_SHOWN = 200
# Problems told at once: a file with more of them is of another kind.
_MOST_TOLD = 50

Model = TypeVar("Model", bound=BaseModel)


class YamlFile:
    """One file that was read: its values, and where each key stands."""

    def __init__(self, path: str | Path, kind: str) -> None:
        """kind: what the file is called in messages, such as `recipe`.

        Raises:
            ConfigError: there is no such file, or it is not a YAML mapping.
        """
        self.path = Path(path)
        self._tree = read_tree(self.path, kind)

    def values(self) -> dict[str, Any]:
        """All values as plain Python types, new at each call."""
        values: dict[str, Any] = plain(self._tree)
        return values

    def check_names(self, section: str) -> None:
        """Names that a section lets people choose must be text: 1e-3 would silently become 0.001.

        Raises:
            ConfigError: one line for each that is none.
        """
        names = self._tree.get(section)
        problems = []
        for name in names if isinstance(names, CommentedMap) else ():
            if not isinstance(name, str):
                line, column = names.lc.key(name)
                where = f"{self.path}:{line + 1}:{column + 1}"
                problems.append(f"{where}: {section}: the name {name!r} is not text; put it in quotes")
        if problems:
            raise ConfigError("\n".join(problems))

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


@dataclass(frozen=True)
class Override:
    """A value that is laid over those of a file."""

    key: str
    """Dotted."""
    value: Any
    where: str = "command line: "
    """What stands before the key in a message about it."""
    folder: str = "."
    """What a path in the value is relative to."""


def parse_override(text: str) -> Override:
    """An override as the command line has it.

    Raises:
        ConfigError: it is not `key=value`, or the value is not YAML.
    """
    key, equals, value = text.partition("=")
    where = f"command line: {_shortened(text)}"
    if not equals or not key:
        raise ConfigError(f"{where}: an override must be written key=value")
    if key.count(".") >= DEEPEST:
        raise ConfigError(f"{where}: the key is nested more than {DEEPEST} deep; no recipe has such a key")
    try:
        return Override(key, plain(load_yaml(value, where)))
    except (YAMLError, ValueError):
        raise ConfigError(f"{where}: the value is not YAML; quote it") from None


def check(file: YamlFile, model: type[Model], overrides: Sequence[str | Override] = ()) -> Model:
    """The values of a file with overrides, written `key=value` or parsed, laid over them in order.

    Raises:
        ConfigError: every problem found, if they are not too many, one `file:line:col: key: …` line each.
    """
    values = file.values()
    problems: list[str] = []
    laid: list[Override] = []
    for one in overrides:
        try:
            override = one if isinstance(one, Override) else parse_override(one)
        except ConfigError as error:
            problems.append(str(error))
            continue
        laid.append(override)
        problem = _set(values, override.key.split("."), override.value)
        if problem:
            problems.append(f"{override.where}{override.key}: {problem}")
    try:
        checked = model.model_validate(values)
    except ValidationError as error:
        problems += [_describe(problem, file, laid) for problem in _find_problems(error, model)]
        if (more := error.error_count() - _MOST_TOLD) > 0:
            problems.append(f"{file.path}: has {more} more; mend these first, or name another file")
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return checked


def say_what_is_wrong(error: Any) -> str:
    """One of pydantic's errors as the end of a sentence that began with the key."""
    found = _shortened(repr(error["input"]))
    if error["type"] == "missing":
        return "this key is needed"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return f"must be a section of keys, but is {found} instead"
    if error["type"] == "tuple_type":
        return f"must be a name or a list of names, but is {found} instead"
    text: str = error["msg"]
    text = text[0].lower() + text[1:]
    return f"{text.replace('input should be', 'must be')}, but is {found} instead"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _set(values: dict[str, Any], keys: list[str], value: Any) -> str | None:
    for depth, key in enumerate(keys[:-1]):
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            return f"`{'.'.join(keys[: depth + 1])}` is a value, not a section"
        values = inner
    values[keys[-1]] = value
    return None


class _Problem(NamedTuple):
    """One thing that a schema found wrong."""

    keys: list[str]
    """Path of the key, places in a list included."""
    key: str
    """The same as people write it: dotted, without places in a list."""
    message: str
    is_unknown: bool
    """The schema has no such key."""


def _find_problems(error: ValidationError, model: type[BaseModel]) -> list[_Problem]:
    """What pydantic found, in words.

    A check across keys names its key first ("num_heads: …"); the nearest name of `model` is suggested for a
    key that it does not have.
    """
    problems = []
    for item in error.errors()[:_MOST_TOLD]:
        keys = [str(part) for part in item["loc"]]
        message = say_what_is_wrong(item)
        if keys[-1:] == ["literal['auto']"]:
            continue  # "auto or a number": what is wrong with the number says it for both
        if keys[-1:] == ["constrained-int"]:
            keys.pop()
            message = message.replace("must be", "must be auto or", 1)
        if item["type"] == "value_error":
            named, _, message = message.partition(": ")
            keys += named.split(".")
        is_unknown = item["type"] == "extra_forbidden"
        if is_unknown:
            message = "no such key" + _suggest(keys, model)
        key = ".".join(
            key for key, part in zip_longest(keys, item["loc"][: len(keys)]) if not isinstance(part, int)
        )
        problems.append(_Problem(keys, key, message, is_unknown))
    return problems


def _describe(problem: _Problem, file: YamlFile, overrides: Sequence[Override]) -> str:
    """One line, with the place of the last override that is to blame, or of the key in the file."""
    found = problem.key
    for override in reversed(overrides):
        key = override.key
        if (
            found == key
            or found.startswith(key + ".")
            or (problem.is_unknown and key.startswith(found + "."))
        ):
            return f"{override.where}{found}: {problem.message}"
    return f"{file.place(problem.keys)}: {found}: {problem.message}"


def _sections(model: type[BaseModel], prefix: str = "") -> dict[str, list[str]]:
    """Dotted section name -> the keys it takes ("" is the top)."""
    found: dict[str, list[str]] = {prefix: []}
    for name, field in model.model_fields.items():
        key = field.alias or name
        found[prefix].append(key)
        for inner, kind in _inner_sections(f"{prefix}.{key}" if prefix else key, field.annotation):
            found |= _sections(kind, inner)
    return found


def _inner_sections(path: str, kind: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The sections that a value of this kind is, may be, or holds by name or place."""
    if get_origin(kind) in (dict, list):
        yield from _inner_sections(f"{path}.{_ANY_NAME}", get_args(kind)[-1])
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield path, kind
    else:
        for one in get_args(kind):
            yield from _inner_sections(path, one)


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
