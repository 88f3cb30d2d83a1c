"""A study file -> trials: one checked recipe for each variant and seed, before anything is trained.

A variant is laid over its recipe in this order: overrides of the study, of the variant, of the command line;
then the seed and a run directory of its own. Knows neither how trials are trained nor what came out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transformer_mt.config import Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.recipe import load_recipe
from transformer_mt.studies.measures import check
from transformer_mt.studies.study_file import Overrides, QuickSection, StudySection, read_section
from transformer_mt.yaml_file import Override, YamlFile, parse_override, say_what_is_wrong

# Keys that the command line sets in the study itself; all others go to the recipes.
_OWN_KEYS = ("run_dir", "seeds", "compare")


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
    section: StudySection
    """What the file says, of the quick size where that was asked for."""
    trials: tuple[Trial, ...]
    """Variant by variant, in the order of the file; within each, seed by seed."""
    quick: bool = False
    """Whether this is the small size, whose numbers say nothing about the claims."""
    given: tuple[str, ...] = ()
    """What the command line laid over it, `key=value`."""

    @property
    def run_dir(self) -> Path:
        """Where everything goes."""
        return Path(self.section.run_dir)


def load_study(path: str | Path, overrides: Sequence[str] = (), *, quick: bool = False) -> Study:
    """Read a study and resolve the recipes of all its trials.

    Args:
        path: of the file.
        overrides: `key=value` as the command line has them: run_dir, seeds and compare are the study's, all
            other keys are laid over every recipe.
        quick: the small size of it, in a directory of its own.

    Raises:
        ConfigError: every problem found, one `file:line:col: key: …` line each.
    """
    file = YamlFile(path, "study")
    own = [text for text in overrides if text.partition("=")[0] in _OWN_KEYS]
    section, problems = read_section(file, own)
    if quick and section is not None:
        if section.quick is None:
            raise ConfigError(f"{file.path}: has no quick size; write one (`quick`), or leave --quick out")
        section = _quick_size(file, section, section.quick, own)
    given: list[Override] = []
    for text in overrides:
        if text not in own:
            with _noting(problems):
                given.append(parse_override(text))
    trials: list[Trial] = []
    if section is not None:
        found: dict[str, list[str]] = {}
        for name in section.variants:
            of_variant: list[str] = []
            with _noting(of_variant):
                trials += _trials(file, section, name, given, quick=quick)
            for line in of_variant:
                found.setdefault(line, []).append(name)
        problems += _with_variants(found, list(section.variants))
        if not problems:
            problems += _compared(file, section, trials)
    if section is None or problems:
        raise ConfigError("\n".join(problems))
    return Study(file.path, section, tuple(trials), quick, tuple(overrides))


def _quick_size(
    file: YamlFile, section: StudySection, quick: QuickSection, own: Sequence[str]
) -> StudySection:
    """The study as its small size has it; own: what the command line says about the study itself.

    Raises:
        ConfigError: that is no study.
    """
    given = {text.partition("=")[0] for text in own}
    variants = {
        name: own or section.variants[name] for name, own in (quick.variants or section.variants).items()
    }
    changes: dict[str, Any] = {
        "run_dir": section.run_dir if "run_dir" in given else f"{section.run_dir}_quick",
        "recipe": quick.recipe or section.recipe,
        "seeds": section.seeds if "seeds" in given else quick.seeds,
        "variants": variants,
        "measure": quick.measure or section.measure,
        "compare": section.compare if "compare" in given else quick.compare,
        "claims": [one for one in section.claims if {one.variant, one.against} <= {*variants, None}],
    }
    try:
        return StudySection.model_validate({**dict(section), **changes})
    except ValidationError as error:
        where = f"{file.place(['quick'])}: quick: "
        raise ConfigError("\n".join(where + say_what_is_wrong(one) for one in error.errors())) from None


@contextmanager
def _noting(problems: list[str]) -> Iterator[None]:
    """Take down what is wrong and go on, so that all mistakes are told at once."""
    try:
        yield
    except ConfigError as error:
        problems += str(error).split("\n")


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


def _trials(
    file: YamlFile, section: StudySection, name: str, given: Sequence[Override], *, quick: bool
) -> Iterator[Trial]:
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
        *(_written(file, ["quick", "overrides"], section.quick.overrides) if quick and section.quick else ()),
        *given,
    ]
    problems = list(_forbidden(laid, section.seeds))
    try:
        check(load_recipe(path, laid), section.measure)
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


def _compared(file: YamlFile, section: StudySection, trials: Sequence[Trial]) -> Iterator[str]:
    """Variants that cannot be told apart or compared."""
    seen: dict[str, str] = {}
    first: tuple[object, str] | None = None
    for trial in trials:
        place = f"{file.place(['variants', trial.variant])}: variants.{trial.variant}"
        system = repr(trial.recipe.model_copy(update={"run_dir": ""}))
        if (other := seen.setdefault(system, trial.variant)) != trial.variant:
            yield f"{place}: is the same system as {other}; give it an override, or remove it"
        data = trial.recipe.data
        alike = (data.test, data.src_lang, data.tgt_lang)
        if not section.compare:
            continue
        if not data.test:
            yield f"{place}: has no data.test to compare on; name one, or set compare to false"
            continue
        first = first or (alike, trial.variant)
        if alike != first[0]:
            yield (
                f"{place}: has another data.test or other languages than {first[1]}; use the same for all, "
                "or set compare to false"
            )


def _shown(path: Path) -> str:
    """The path from the current folder, where it lies below it."""
    path = path.resolve()
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
