"""What a comparison of systems consists of: the numbers, examples and facts behind table, JSON file and page.

Plain frozen data without arithmetic: str, int, float, bool, None and tuples of them, no infinity and no NaN,
so that JSON holds all of it. Knows neither how the numbers are made (`compare`) nor how they are shown
(`table`, `report`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from transformer_mt.errors import DataError
from transformer_mt.json_file import json_text

FORMAT = 2


@dataclass(frozen=True)
class Cost:
    """What one run has cost until its last update; None where the run does not tell.

    Attributes:
        finished: whether training has come to an end; if not, the numbers are those of the last validation.
        parameters: numbers that are trained.
        updates: optimizer steps made.
        target_tokens: target tokens seen in training, padding not counted.
        seconds: wall time of training, validation included.
        tokens_per_second: target tokens per second of training.
        peak_gib: most memory used, GiB.
        precision: arithmetic of training, such as "bf16".
        machine: processor or GPU.
        threads: processor threads of training.
        torch: version of torch.
        step: the checkpoint that translated.
    """

    finished: bool
    parameters: int | None
    updates: int | None
    target_tokens: int | None
    seconds: float | None
    tokens_per_second: float | None
    peak_gib: float | None
    precision: str | None
    machine: str | None
    threads: int | None
    torch: str | None
    step: int | None


@dataclass(frozen=True)
class CurvePoint:
    """One validation during training: after how much, and how good.

    Attributes:
        step: optimizer updates until then.
        seconds: wall time of training until then.
        target_tokens: target tokens seen until then.
        bleu: BLEU of the validation set, 0 to 100; None where it is not measured.
        nll: unsmoothed nats per target token of the validation set.
    """

    step: int
    seconds: float | None
    target_tokens: int | None
    bleu: float | None
    nll: float | None


@dataclass(frozen=True)
class System:
    """One side of the comparison; the first system of a comparison is what all others are measured against.

    Attributes:
        name: as given, or the folder or file it comes from.
        kind: "run" or "text".
        sources: run directories or files; several are several seeds of one system.
        cost: one for each seed; () for text.
        curve: one curve for each seed; () for text.
    """

    name: str
    kind: str
    sources: tuple[str, ...]
    cost: tuple[Cost, ...] = ()
    curve: tuple[tuple[CurvePoint, ...], ...] = ()


@dataclass(frozen=True)
class MetricResult:
    """A score of one system on one set, and how sure it is.

    Attributes:
        name: "bleu", "chrf" (chrF2++), "ter", or the name of an outside metric.
        value: mean over seeds of the score of the whole set.
        sd: sample standard deviation over seeds; None for one seed.
        values: the score of every seed.
        interval_mean: mean of the bootstrap resamples of the first seed; None where there are too few lines.
        interval: half the width of their central 95%.
        signature: how sacreBLEU computed it; "" for an outside metric.
        p_bootstrap: paired bootstrap p-value against the first system, first seeds; None for that system.
        p_randomisation: the same by paired approximate randomisation.
        lower_is_better: whether it counts faults.
    """

    name: str
    value: float
    sd: float | None
    values: tuple[float, ...]
    interval_mean: float | None
    interval: float | None
    signature: str
    p_bootstrap: float | None
    p_randomisation: float | None
    lower_is_better: bool


@dataclass(frozen=True)
class SystemResult:
    """What one system reached on one set. Counts and wins are those of the first seed.

    Attributes:
        name: of the system.
        scores: one for each metric.
        nats_per_char: -log probability of a reference per character, mean over seeds; None for text.
        length_ratio: length of the translations over that of the references, in BLEU's tokens.
        empty: translations without a visible character although the reference has one.
        copied: translations that equal the source although the reference does not; None without sources.
        repeated: translations that say the same again and again although the reference does not.
        overlong: translations far longer than their reference.
        sentences_per_second: speed of translating, first seed; None where it was not measured.
        wins: lines with a better sentence chrF2++ than the first system's; None for that system itself.
        ties: lines with an equal one.
        losses: lines with a worse one.
    """

    name: str
    scores: tuple[MetricResult, ...]
    nats_per_char: float | None
    length_ratio: float | None
    empty: int
    copied: int | None
    repeated: int
    overlong: int
    sentences_per_second: float | None
    wins: int | None
    ties: int | None
    losses: int | None


@dataclass(frozen=True)
class Bucket:
    """The lines of a set that have something in common, and BLEU of the first seeds on them.

    Attributes:
        label: such as "11-20".
        sentences: how many lines.
        bleu: corpus BLEU of these lines, one for each system.
    """

    label: str
    sentences: int
    bleu: tuple[float, ...]


@dataclass(frozen=True)
class Example:
    """One line in the words of all systems.

    Attributes:
        number: of the line, from 1.
        source: None where the sources are not known.
        reference: of the first stream.
        hypotheses: one for each system, first seed.
        scores: sentence chrF2++ of each, 0 to 100.
    """

    number: int
    source: str | None
    reference: str
    hypotheses: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True)
class ExampleGroup:
    """Examples chosen for one reason.

    Attributes:
        title: the reason.
        against: the names of the two systems it is about; () where it is about all.
        examples: the first is the clearest case.
    """

    title: str
    against: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class TestSet:
    """All results on one set of sentences.

    Attributes:
        name: of the set.
        sentences: how many lines.
        note: what a reader should know before believing the numbers; "" for nothing.
        results: one for each system, in their order.
        length_of: what the lengths of `by_length` are, such as "source words" or "reference characters".
        by_length: BLEU by length, shortest first; empty lengths are left out.
        rarity_of: what the frequencies of `by_rarity` are, or why there are none.
        by_rarity: BLEU by the training frequency of the rarest word of the reference, rarest first.
        examples: where systems differ most, and some at random.
    """

    __test__ = False  # pytest: not a test case

    name: str
    sentences: int
    note: str
    results: tuple[SystemResult, ...]
    length_of: str
    by_length: tuple[Bucket, ...]
    rarity_of: str
    by_rarity: tuple[Bucket, ...]
    examples: tuple[ExampleGroup, ...]


@dataclass(frozen=True)
class TimeToBleu:
    """When training first reached a validation BLEU.

    Attributes:
        bleu: the level.
        seconds: wall time of training, first seeds, one for each system; None where it was never reached.
    """

    bleu: float
    seconds: tuple[float | None, ...]


@dataclass(frozen=True)
class AttentionMap:
    """Where one system looked while it wrote its own translation (first seed).

    Attributes:
        system: its name.
        source: S pieces of the source, the end mark included.
        target: T pieces of the translation, the end mark included.
        weights: T rows of S weights, each row adds up to 1.
    """

    system: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class AttentionExample:
    """One sentence and the attention of every run to it.

    Attributes:
        test_set: name of the set it is from.
        number: of the line, from 1.
        source: the sentence.
        maps: one for each system that is a run.
    """

    test_set: str
    number: int
    source: str
    maps: tuple[AttentionMap, ...]


@dataclass(frozen=True)
class Comparison:
    """Systems, compared.

    Attributes:
        src_lang: language of the sources; "" where it is not known.
        tgt_lang: language of the translations.
        systems: the first is what the others are measured against.
        sets: results, one for each test set.
        significance: how intervals and p-values were computed, in words.
        warnings: what makes numbers less comparable than they look, one sentence each.
        time_to_bleu: wall time to given validation BLEU, lowest level first; () without training curves.
        attention: of the first moderately long sentences; () where no system is a run.
        format: version of this layout.
    """

    src_lang: str
    tgt_lang: str
    systems: tuple[System, ...]
    sets: tuple[TestSet, ...]
    significance: str
    warnings: tuple[str, ...] = ()
    time_to_bleu: tuple[TimeToBleu, ...] = ()
    attention: tuple[AttentionExample, ...] = ()
    format: int = FORMAT


def to_json(comparison: Comparison) -> str:
    """The text of report.json."""
    return json_text(asdict(comparison), indent=1)


def from_json(text: str | bytes, name: str) -> Comparison:
    """Read report.json back.

    Args:
        text: of the file.
        name: what error messages call it.

    Raises:
        DataError: it is none, or of another format.
    """
    try:
        comparison = TypeAdapter(Comparison).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{name}: is not a report.json of `compare`: {where}: {first['msg']}; make it anew"
        ) from None
    if comparison.format != FORMAT:
        raise DataError(
            f"{name}: has format {comparison.format}, this version reads format {FORMAT}; make it anew"
        )
    return comparison
