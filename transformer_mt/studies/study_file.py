"""A study file: its schema, and as much of it as can be read although something in it is wrong.

Knows no recipes: an override is a dotted key and any value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from transformer_mt.config import CountOrZero, PathText, Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.yaml_file import Override, YamlFile, check

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+=-]*")
# What stands beside the trials in the directory of a study.
_TAKEN = ("prepared", "trials.tsv", "study.json", "report.json", "report.html")

Overrides = dict[str, Any]
"""Dotted key of a recipe -> value, as on the command line."""


class VariantSection(BaseModel):
    """One system of a study."""

    model_config = Recipe.model_config

    recipe: PathText | None = None
    """Recipe of this variant (default: that of the study), relative to the study file."""
    overrides: Overrides = {}
    """What is different about this variant."""


class StudySection(BaseModel):
    """A study file."""

    model_config = Recipe.model_config

    run_dir: PathText
    """Where the runs of all variants go, relative to the current folder."""
    recipe: PathText | None = None
    """Recipe of all variants that name none, relative to the study file."""
    overrides: Overrides = {}
    """What all variants change in their recipes."""
    seeds: Annotated[list[CountOrZero] | None, Field(min_length=1)] = None
    """Every variant is trained with each of these seeds (default: once, with the seed of its recipe)."""
    compare: bool = True
    """Translate the test sets and compare the variants at the end; false where settings are being chosen."""
    variants: Annotated[dict[str, VariantSection], Field(min_length=1)]
    """The systems, by name; all others are compared with the first."""

    @model_validator(mode="after")
    def _check_variants(self) -> StudySection:
        for name, variant in self.variants.items():
            if not _NAME.fullmatch(name) or name in _TAKEN:
                raise ValueError(
                    f"variants: a name must consist of letters, digits and _ . + = -, begin with one of the "
                    f"first two, and be none of {', '.join(_TAKEN)}, but is {name!r} instead"
                )
            if variant.recipe is None and self.recipe is None:
                raise ValueError(f"variants.{name}: has no recipe; name one here, or one for all: recipe")
        if "," in self.run_dir:
            raise ValueError("run_dir: must hold no comma, which separates runs on the command line")
        if self.seeds and len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds: must differ, but are {self.seeds}")
        if self.compare and len(self.variants) == 1:
            raise ValueError("compare: there is one variant only; add another, or set compare to false")
        return self


def read_section(
    file: YamlFile, overrides: Sequence[str | Override]
) -> tuple[StudySection | None, list[str]]:
    """What a file says, with overrides laid over it, and all that is wrong with it, a line each.

    Where something is wrong, the section is what is left of the file without it, so that mistakes further
    down can be told as well; None where nothing can be made of that.
    """
    problems: list[str] = []
    try:
        file.check_names("variants")
    except ConfigError as error:
        problems += str(error).split("\n")
    try:
        return check(file, StudySection, overrides), problems
    except ConfigError as error:
        problems += str(error).split("\n")
    return _what_is_right(file.values()), problems


def _what_is_right(values: dict[str, Any]) -> StudySection | None:
    """The values without the keys that the schema blames."""
    while True:
        try:
            return StudySection.model_validate(values)
        except ValidationError as error:
            blamed = [item["loc"] for item in error.errors()]
        if not any(_dropped(values, keys) for keys in blamed):
            return None


def _dropped(values: Any, keys: Sequence[str | int]) -> bool:
    """Whether there was a value under these keys; now there is none."""
    for key in keys[:-1]:
        values = values.get(key) if isinstance(values, dict) else None
    if not keys or not isinstance(values, dict) or keys[-1] not in values:
        return False
    del values[keys[-1]]
    return True
