"""A study file: its schema, and as much of it as can be read although something in it is wrong.

Knows no recipes: an override is a dotted key and any value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator

from transformer_mt.config import CountOrZero, PathText, Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.studies.measures import MeasureSection
from transformer_mt.yaml_file import Override, YamlFile, check

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+=-]*")
# What stands beside the trials in the directory of a study.
_TAKEN = ("prepared", "measured", "trials.tsv", "study.json", "report.json", "report.html", "index.html")

Overrides = dict[str, Any]
"""Dotted key of a recipe -> value, as on the command line."""


def _of_numbers_and_texts(at: dict[str, Any]) -> dict[str, Any]:
    for key, value in at.items():
        if not isinstance(value, int | float | str):
            raise ValueError(f"{key}: must be a number or a text, but is {value!r} instead")
    return at


Places = Annotated[dict[str, Any], AfterValidator(_of_numbers_and_texts)]
"""Where numbers were taken: key -> number or text."""


class VariantSection(BaseModel):
    """One system of a study."""

    model_config = Recipe.model_config

    recipe: PathText | None = None
    """Recipe of this variant (default: that of the study), relative to the study file."""
    overrides: Overrides = {}
    """What is different about this variant."""


class PictureSection(BaseModel):
    """A drawing: one metric, a line or a bar for every variant."""

    model_config = Recipe.model_config

    metric: str
    """What is drawn."""
    over: str | None = None
    """The axis: `length`, `step`, …; without it every variant is a bar."""
    at: Places = {}
    """Only what was taken there; over all else that is left, the mean is drawn."""
    log: bool = False
    """Both axes are logarithmic, that of names apart."""

    @model_validator(mode="after")
    def _check_axis(self) -> PictureSection:
        if self.log and self.over is None:
            raise ValueError("log: bars begin at 0, which no logarithm has; name the axis (`over`)")
        return self


class ClaimSection(BaseModel):
    """A claim, and the rule that says whether it was seen."""

    model_config = Recipe.model_config

    claim: str
    """The claim in one sentence."""
    metric: str
    """What is judged."""
    at: Places = {}
    """Only what was taken there; over all else that is left, the mean is judged."""
    variant: str
    """Whose value it is."""
    against: str | None = None
    """The variant it is held against (default: none, the value itself is judged)."""
    by: Literal["difference", "ratio"] | None = None
    """variant - against, or variant / against."""
    at_most: float | None = None
    """The claim holds up to here."""
    at_least: float | None = None
    """The claim holds from here on."""

    @model_validator(mode="after")
    def _check_rule(self) -> ClaimSection:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("at_most: give this or at_least, the threshold of the claim, and not both")
        if (self.against is None) != (self.by is None):
            raise ValueError("by: difference or ratio must be said where `against` is, and only there")
        return self


class QuickSection(BaseModel):
    """What a small size of the study has instead: enough to see that all of it works, and nothing more."""

    model_config = Recipe.model_config

    recipe: PathText | None = None
    """Recipe of all variants that name none (default: that of the study)."""
    overrides: Overrides = {}
    """What all variants change besides; they come last."""
    seeds: Annotated[list[CountOrZero] | None, Field(min_length=1)] = None
    """Seeds (default: none, each variant once)."""
    variants: Annotated[dict[str, VariantSection | None], Field(min_length=1)] = {}
    """The variants that remain, by name, and other ones (default: all)."""
    measure: MeasureSection | None = None
    """What is measured (default: the same)."""
    compare: bool = False
    """Translate the test sets and compare the variants."""

    @field_validator("variants", mode="before")
    @classmethod
    def _named(cls, variants: Any) -> Any:
        """A list of names is one of variants that remain."""
        names = isinstance(variants, list) and all(isinstance(one, str) for one in variants)
        return dict.fromkeys(variants) if names else variants


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
    train: bool = True
    """Train the variants; false where they are measured as they begin."""
    measure: MeasureSection = MeasureSection()
    """What is measured of every variant, beyond what training and comparison tell."""
    pictures: list[PictureSection] = []
    """What the page of the study shows."""
    claims: list[ClaimSection] = []
    """What the study judges."""
    quick: QuickSection | None = None
    """A small size of the study, for `--quick`."""

    @model_validator(mode="after")
    def _check_variants(self) -> StudySection:
        known = [*self.variants, *(self.quick.variants if self.quick else ())]
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
        for name, own in self.quick.variants.items() if self.quick else ():
            if own is None and name not in self.variants:
                raise ValueError(f"quick.variants: there is no variant {name}; {_among(self.variants)}")
        for number, claim in enumerate(self.claims, start=1):
            for meant in (claim.variant, claim.against):
                if meant is not None and meant not in known:
                    raise ValueError(f"claims: claim {number} is about {meant}, but {_among(self.variants)}")
        if not self.train and self.compare:
            raise ValueError("compare: nothing is trained, so nothing can be compared; set it to false")
        if not self.train and not self.measure.names:
            raise ValueError("measure: nothing is trained, so something must be measured; name a measure")
        if self.compare and len(self.variants) == 1:
            raise ValueError("compare: there is one variant only; add another, or set compare to false")
        return self


def _among(names: Iterable[str]) -> str:
    return f"the variants are {', '.join(names)}"


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
