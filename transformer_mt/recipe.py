"""Recipe files: YAML and `key=value` overrides -> a checked `Recipe`, and back.

A recipe is YAML 1.2 holding only what differs from the defaults of `config.py`. All its problems are found
at once and each is reported as `file:line:col: key: what is wrong; did you mean …?`. What a continued run
may change is decided here too.
"""

from __future__ import annotations

import difflib
import io
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from transformer_mt.config import DecodingConfig, Recipe
from transformer_mt.errors import ConfigError

# What may differ between a run and the recipe that continues it; data are compared by fingerprint.
CHANGEABLE = frozenset(
    {
        "run_dir",
        "data.root",
        "data.prepared_dir",
        "training.max_steps",
        "training.patience",
        "training.compile",
        "training.learning_rate",
        "training.min_learning_rate",
        "training.save_every",
        "training.validate_every",
        "training.log_every",
        "training.keep_last",
        "training.workers",
    }
)


def load_recipe(path: str | Path, overrides: tuple[str, ...] | list[str] = ()) -> Recipe:
    """Read a recipe and lay `key=value` overrides over it.

    `data.root` comes out absolute: a relative one is taken from the recipe's folder when the recipe names
    it, from the current folder when an override does.

    Raises:
        ConfigError: every problem found, one `file:line:col: key: …` line each.
    """
    path = Path(path)
    tree = _read_yaml(path)
    values = _plain(tree)
    base = path.resolve().parent
    problems: list[str] = []
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            problems.append(f"command line: {override}: an override must be written key=value")
            continue
        problem = _set(values, key.split("."), _parse_value(override, text))
        if problem:
            problems.append(f"command line: {key}: {problem}")
        if key == "data.root":
            base = Path.cwd()
    overridden = {override.partition("=")[0] for override in overrides}
    try:
        recipe = Recipe.model_validate(values)
    except ValidationError as error:
        problems += [_describe(item, tree, path, overridden) for item in error.errors()]
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    root = base / (recipe.data.root or ".")
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"root": str(root.resolve())})})


def parse_section(values: dict[str, Any], base: DecodingConfig) -> DecodingConfig:
    """The decoding section `base` with the given flags laid over it, through the same checks."""
    try:
        return DecodingConfig.model_validate({**base.model_dump(), **values})
    except ValidationError as error:
        lines = []
        for item in error.errors():
            message = _message(item)
            if item["loc"]:
                key = str(item["loc"][0])
            else:  # a check across keys names its key first: "nbest: …"
                key, _, message = message.partition(": ")
            lines.append(f"command line: --{key.replace('_', '-')}: {message}")
        raise ConfigError("\n".join(lines)) from None


def dump_recipe(recipe: Recipe) -> str:
    """YAML text of every key, defaults included; it reads back to an equal recipe."""
    yaml = YAML(pure=True)
    yaml.width = 10_000
    yaml.representer.add_representer(str, _represent_text)
    stream = io.StringIO()
    yaml.dump(_listed(recipe.model_dump(by_alias=True)), stream)
    return stream.getvalue()


def _represent_text(representer: Any, text: str) -> Any:
    """Text as YAML likes it; with a line break of Unicode in it, in double quotes, which escape it."""
    style = '"' if any(sign in text for sign in "\n\r\x85\u2028\u2029") else None
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def flatten(recipe: Recipe) -> dict[str, Any]:
    """Dotted key -> value of every leaf."""

    def walk(prefix: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            return {prefix: value}
        leaves: dict[str, Any] = {}
        for key, item in value.items():
            leaves |= walk(f"{prefix}.{key}" if prefix else key, item)
        return leaves

    return walk("", recipe.model_dump(by_alias=True))


def differences(old: Recipe, new: Recipe) -> tuple[dict[str, tuple[Any, Any]], dict[str, tuple[Any, Any]]]:
    """(changes that a continued run allows, changes it refuses): dotted key -> (old, new).

    `auto` in the new recipe agrees with whatever the old run resolved it to.
    """
    before, after = flatten(old), flatten(new)
    allowed: dict[str, tuple[Any, Any]] = {}
    refused: dict[str, tuple[Any, Any]] = {}
    for key, value in after.items():
        if value == before[key] or value == "auto":
            continue
        free = key in CHANGEABLE or key.startswith(("decoding.", "evaluation."))
        (allowed if free else refused)[key] = (before[key], value)
    return allowed, refused


def _read_yaml(path: Path) -> CommentedMap:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such recipe; name a YAML file") from None
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
        raise ConfigError(f"{path}:1:1: a recipe must be a mapping of keys to values, but it {found}")
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


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _parse_value(override: str, text: str) -> Any:
    try:
        return _plain(YAML(typ="rt", pure=True).load(text))
    except (YAMLError, ValueError, RecursionError):
        raise ConfigError(f"command line: {override}: the value is not YAML; quote it") from None


def _set(values: dict[str, Any], keys: list[str], value: Any) -> str | None:
    for depth, key in enumerate(keys[:-1]):
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            return f"`{'.'.join(keys[: depth + 1])}` is a value, not a section"
        values = inner
    values[keys[-1]] = value
    return None


def _describe(error: Any, tree: CommentedMap, path: Path, overridden: set[str]) -> str:
    keys = [str(part) for part in error["loc"]]
    message = _message(error)
    if error["type"] == "value_error":
        # A check across keys names its key first: "num_heads: …".
        named, _, message = message.partition(": ")
        keys += named.split(".")
    if error["type"] == "extra_forbidden":
        message = "no such key" + _suggest(keys)
    dotted = ".".join(key for key, part in zip_longest(keys, error["loc"]) if not isinstance(part, int))
    unknown = error["type"] == "extra_forbidden"
    if any(
        dotted == key or dotted.startswith(key + ".") or (unknown and key.startswith(dotted + "."))
        for key in overridden
    ):
        return f"command line: {dotted}: {message}"
    line, column = _position(tree, keys)
    return f"{path}:{line}:{column}: {dotted}: {message}"


def _message(error: Any) -> str:
    if error["type"] == "missing":
        return "this key is needed"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("model_type", "model_attributes_type"):
        return f"must be a section of keys, but is {error['input']!r} instead"
    if error["type"] == "tuple_type":
        return f"must be a name or a list of names, but is {error['input']!r} instead"
    text: str = error["msg"]
    text = text[0].lower() + text[1:]
    return f"{text.replace('input should be', 'must be')}, but is {error['input']!r} instead"


def _sections(model: type[BaseModel], prefix: str = "") -> dict[str, list[str]]:
    """Dotted section name -> the keys it takes ("" is the top)."""
    found: dict[str, list[str]] = {prefix: []}
    for name, field in model.model_fields.items():
        key = field.alias or name
        found[prefix].append(key)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= _sections(field.annotation, f"{prefix}.{key}" if prefix else key)
    return found


def _suggest(keys: list[str]) -> str:
    sections = _sections(Recipe)
    here, wrong = ".".join(keys[:-1]), keys[-1]
    near = difflib.get_close_matches(wrong, sections.get(here, []), 1, 0.6)
    if near:
        return f"; did you mean {near[0]}?"
    elsewhere = {name: section for section, names in sections.items() for name in names}
    near = difflib.get_close_matches(wrong, elsewhere, 1, 0.75)
    if near:
        section = elsewhere[near[0]]
        return f"; did you mean {section + '.' if section else ''}{near[0]}?"
    return f"; this section takes {', '.join(sections.get(here, []))}"


def _position(tree: CommentedMap, keys: list[str]) -> tuple[int, int]:
    """1-based line and column of the deepest key of the path that the file holds."""
    node: Any = tree
    position = (1, 1)
    for key in keys:
        if isinstance(node, CommentedMap) and key in node:
            line, column = node.lc.key(key)
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            line, column = node.lc.item(int(key))  # type: ignore[attr-defined]
        else:
            break
        position = (line + 1, column + 1)
        node = node[int(key)] if isinstance(node, list) else node[key]
    return position
