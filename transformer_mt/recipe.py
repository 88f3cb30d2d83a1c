"""Recipe files: YAML and `key=value` overrides -> a checked `Recipe`, and back.

A recipe is YAML 1.2 holding only what differs from the defaults of `config.py`. All its problems are found
at once and each is reported as `file:line:col: key: what is wrong; did you mean …?`. What a continued run
may change is decided here too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from transformer_mt.config import DecodingConfig, Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.yaml_file import Override, YamlFile, check, say_what_is_wrong

# What may differ between a run and the recipe that continues it; data are compared by fingerprint.
CHANGEABLE = frozenset(
    {
        "run_dir",
        "data.root",
        "data.prepared_dir",
        "training.max_steps",
        "training.patience",
        "training.compile",
        # What a run whose memory was too small is told to change.
        "training.max_tokens",
        "training.update_freq",
        "training.gradient_checkpointing",
        "training.learning_rate",
        "training.min_learning_rate",
        "training.save_every",
        "training.validate_every",
        "training.log_every",
        "training.probe_every",
        "training.keep_last",
        "training.keep_every",
        "training.workers",
        "training.max_rollbacks",
        "training.process_timeout",
    }
)


def load_recipe(path: str | Path, overrides: Sequence[str | Override] = ()) -> Recipe:
    """Read a recipe and lay overrides over it, those of the command line (`key=value`) or any others.

    `data.root` comes out absolute: a relative one is taken from the recipe's folder when the recipe names
    it, from the current folder when the command line does.

    Raises:
        ConfigError: every problem found, one `file:line:col: key: …` line each.
    """
    file = YamlFile(path, "recipe")
    recipe = check(file, Recipe, overrides)
    base = file.path.resolve().parent
    for one in overrides:
        key, folder = (one.key, one.folder) if isinstance(one, Override) else (one.partition("=")[0], ".")
        if key == "data.root":
            base = Path(folder)
    root = base / (recipe.data.root or ".")
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"root": str(root.resolve())})})


def parse_section(values: dict[str, Any], base: DecodingConfig) -> DecodingConfig:
    """The decoding section `base` with the given flags laid over it, through the same checks."""
    try:
        section = DecodingConfig.model_validate({**base.model_dump(), **values})
    except ValidationError as error:
        lines = []
        for item in error.errors():
            message = say_what_is_wrong(item)
            if item["loc"]:
                key = str(item["loc"][0])
            else:  # a check across keys names its key first: "nbest: …"
                key, _, message = message.partition(": ")
            lines.append(f"command line: --{key.replace('_', '-')}: {message}")
        raise ConfigError("\n".join(lines)) from None
    if "seed" in values and not section.temperature:  # a recipe may name one for when something is drawn
        raise ConfigError(
            f"command line: --seed: {section.seed} is that of what is drawn, but nothing is drawn; set "
            "`temperature` above 0"
        )
    return section


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
        if value == before.get(key) or value == "auto":
            continue
        free = key in CHANGEABLE or key.startswith(("decoding.", "evaluation."))
        (allowed if free else refused)[key] = (before.get(key), value)
    return allowed, refused


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
