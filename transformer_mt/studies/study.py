"""A study file -> trials: one checked recipe for each variant and seed, before anything is trained.

A variant is laid over its recipe in this order: overrides of the study, of the variant, of the command line;
then the seed and a run directory of its own. Knows neither how trials are trained nor what came out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from transformer_mt.config import CountOrZero, PathText, Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.recipe import load_recipe
from transformer_mt.yaml_file import Override, YamlFile, check, parse_override

# Keys that the command line sets in the study itself; all others go to the recipes.
_OWN_KEYS = ("run_dir", "seeds", "compare")
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


@dataclass(frozen=True)
class Trial:
    """One run of a study."""

    variant: str
    seed: int | None
    """None where the study names no seeds."""
    recipe_path: str
    overrides: tuple[Override, ...]
    """All that is laid over the recipe, the seed and the run directory included; each key once."""
    special: Mapping[str, Any]
    """What the file says about this variant alone: dotted key -> value."""
    recipe: Recipe
    """The result."""

    @property
    def name(self) -> str:
        """The folder of this trial in the study's directory."""
        return _trial_name(self.variant, self.seed)

    @property
    def run_dir(self) -> Path:
        """Where it is trained."""
        return Path(self.recipe.run_dir)

    @property
    def words(self) -> list[str]:
        """What follows `train` or `prepare` on the command line that makes this trial."""
        return [self.recipe_path, *(f"{one.key}={value_text(one.value)}" for one in self.overrides)]


@dataclass(frozen=True)
class Study:
    """A study file, resolved."""

    path: Path
    run_dir: Path
    compare: bool
    trials: tuple[Trial, ...]
    """Variant by variant, in the order of the file; within each, seed by seed."""


def load_study(path: str | Path, overrides: Sequence[str] = ()) -> Study:
    """Read a study and resolve the recipes of all its trials.

    Args:
        overrides: `key=value` as the command line has them: run_dir, seeds and compare are the study's, all
            other keys are laid over every recipe.

    Raises:
        ConfigError: every problem found, one `file:line:col: key: …` line each.
    """
    file = YamlFile(path, "study")
    file.check_names("variants")
    own = [text for text in overrides if text.partition("=")[0] in _OWN_KEYS]
    section = check(file, StudySection, own)
    given = [parse_override(text) for text in overrides if text not in own]
    problems: dict[str, list[str]] = {}
    trials: list[Trial] = []
    for name in section.variants:
        try:
            trials += _trials(file, section, name, given)
        except ConfigError as error:
            for line in str(error).split("\n"):
                problems.setdefault(line, []).append(name)
    if problems:
        raise ConfigError("\n".join(_with_variants(problems, list(section.variants))))
    _check_together(file, section, trials)
    return Study(file.path, Path(section.run_dir), section.compare, tuple(trials))


def value_text(value: Any) -> str:
    """A value as `key=value` has it on the command line."""
    if isinstance(value, str) and _reads_back(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _reads_back(text: str) -> bool:
    try:
        return bool(parse_override(f"key={text}").value == text)
    except ConfigError:
        return False


def _trial_name(variant: str, seed: int | None) -> str:
    return variant if seed is None else f"{variant}_seed{seed}"


def _trials(file: YamlFile, section: StudySection, name: str, given: Sequence[Override]) -> Iterator[Trial]:
    """The trials of one variant.

    Raises:
        ConfigError: every problem of the variant.
    """
    variant = section.variants[name]
    folder = file.path.resolve().parent
    named = variant.recipe or section.recipe
    assert named is not None, "the schema has checked it"
    path = _shown(folder / named)
    laid = [
        *_written(file, ["overrides"], section.overrides),
        *_written(file, ["variants", name, "overrides"], variant.overrides),
        *given,
    ]
    problems = list(_forbidden(laid, section.seeds))
    try:
        load_recipe(path, laid)
    except ConfigError as error:
        problems += str(error).split("\n")
    if problems:
        raise ConfigError("\n".join(problems))
    special = {**({"recipe": variant.recipe} if variant.recipe else {}), **variant.overrides}
    seeds: list[int] | list[None] = section.seeds or [None]
    for seed in seeds:
        run_dir = Path(section.run_dir) / _trial_name(name, seed)
        last = [Override("run_dir", str(run_dir))]
        if seed is not None:
            last.insert(0, Override("training.seed", seed))
        # A key that several layers set stands once, with its last value.
        overrides = tuple({one.key: one for one in [*laid, *last]}.values())
        yield Trial(name, seed, path, overrides, special, load_recipe(path, overrides))


def _written(file: YamlFile, keys: list[str], values: Overrides) -> Iterator[Override]:
    """The overrides that stand in the file under this path."""
    folder = file.path.resolve().parent
    for key, value in values.items():
        where = f"{file.place([*keys, key])}: {'.'.join(keys)}."
        is_root = key == "data.root" and isinstance(value, str)
        yield Override(key, _shown(folder / os.path.expanduser(value)) if is_root else value, where)


def _forbidden(overrides: Sequence[Override], seeds: list[int] | None) -> Iterator[str]:
    """What may be changed in a recipe, but not by a study."""
    for one in overrides:
        if isinstance(one.value, dict):
            first = next(iter(one.value), "KEY")
            yield f"{one.where}{one.key}: must be written with dotted keys, such as {one.key}.{first}"
        elif one.key == "run_dir":
            yield f"{one.where}run_dir: every trial has its own in the run_dir of the study; leave it out"
        elif one.key == "training.seed" and seeds:
            yield f"{one.where}training.seed: is set by seeds {seeds}; leave one of the two out"


def _with_variants(problems: Mapping[str, list[str]], variants: list[str]) -> Iterator[str]:
    """The problems, with the variants that have them where the line does not tell."""
    for line, names in problems.items():
        tells = names == variants or any(f": variants.{name}." in line for name in names)
        plural = "s" if len(names) > 1 else ""
        yield line if tells else f"{line} (variant{plural} {', '.join(names)})"


def _check_together(file: YamlFile, section: StudySection, trials: Sequence[Trial]) -> None:
    """Find variants that cannot be told apart or compared.

    Raises:
        ConfigError: two variants are one system, or their test sets differ.
    """
    seen: dict[str, str] = {}
    sets: dict[tuple[object, ...], str] = {}
    for trial in trials:
        place = f"{file.place(['variants', trial.variant])}: variants.{trial.variant}"
        system = trial.recipe.model_copy(update={"run_dir": ""}).model_dump_json()
        if (other := seen.setdefault(system, trial.variant)) != trial.variant:
            raise ConfigError(f"{place}: is the same system as {other}; give it an override, or remove it")
        data = trial.recipe.data
        sets.setdefault((data.test, data.src_lang, data.tgt_lang), trial.variant)
        if section.compare and not data.test:
            raise ConfigError(f"{place}: has no data.test to compare on; name one, or set compare to false")
        if section.compare and len(sets) > 1:
            raise ConfigError(
                f"{place}: has another data.test or other languages than {next(iter(sets.values()))}; "
                "use the same for all, or set compare to false"
            )


def _shown(path: Path) -> str:
    """The path from the current folder, where it lies below it."""
    path = path.resolve()
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
