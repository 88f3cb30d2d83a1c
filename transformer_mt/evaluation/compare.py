"""What several systems made of one set of sentences -> all numbers and examples about it.

Systems are texts here: whether a model or a person wrote them is not known, nor where they are stored.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sacrebleu.metrics.bleu import BLEUScore

from transformer_mt.config import Metric
from transformer_mt.evaluation.buckets import TrainingWords, bucket_scores, by_length, by_rarity
from transformer_mt.evaluation.comparison import MetricResult, SystemResult, TestSet
from transformer_mt.evaluation.examples import example_groups, sentence_scores, wins_ties_losses
from transformer_mt.evaluation.outputs import count_outputs
from transformer_mt.evaluation.scores import check_texts, scorer, tokenised_remark, tokenizer_remark
from transformer_mt.evaluation.significance import (
    Significance,
    paired_segment_tests,
    paired_tests,
    remembering,
    why_untested,
)
from transformer_mt.text.words import counts_characters

METRICS: tuple[Metric, ...] = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class SetTexts:
    """One set: its name, N sources (None where not known), and streams of N references each."""

    name: str
    sources: Sequence[str] | None
    references: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Output:
    """What one system made of a set.

    Attributes:
        name: of the system.
        seeds: N texts from each seed; the first counts where one has to stand for all.
        nats_per_char: mean over seeds, where a model told it.
        sentences_per_second: speed of the first seed, where it was measured.
        segments: outside metric -> N scores of the first seed.
    """

    name: str
    seeds: Sequence[Sequence[str]]
    nats_per_char: float | None = None
    sentences_per_second: float | None = None
    segments: Mapping[str, Sequence[float]] = field(default_factory=dict)


def compare_set(
    texts: SetTexts,
    outputs: Sequence[Output],
    tgt_lang: str,
    training: TrainingWords | str,
    lower_is_better: Collection[str] = (),
) -> TestSet:
    """Compare systems on one set; each is measured against the first.

    Args:
        texts: with as many lines in every part.
        outputs: at least one, of as many lines each; all with segment scores of the same metrics, or none.
        tgt_lang: language of the outputs.
        training: what rare words are rare in, or why that is not known.
        lower_is_better: those of the outside metrics that are better the lower they are.

    Raises:
        DataError: no lines, or unequal numbers of them.
    """
    for output in outputs:
        for seed in output.seeds:
            check_texts(seed, texts.references)
    firsts = [output.seeds[0] for output in outputs]
    own = [_own_metric(metric, texts, outputs, tgt_lang) for metric in METRICS]
    outside = [
        _outside_metric(metric, outputs, lower=metric in lower_is_better) for metric in outputs[0].segments
    ]
    sentences = [sentence_scores(hypotheses, texts.references) for hypotheses in firsts]
    results = []
    for place, output in enumerate(outputs):
        metrics = tuple(column[place] for column in (*own, *outside))
        wins = wins_ties_losses(sentences[place], sentences[0]) if place else (None, None, None)
        results.append(_result(output, metrics, texts, tgt_lang, wins))
    measured, side = (
        (texts.references[0], "reference") if texts.sources is None else (texts.sources, "source")
    )
    rare = [] if isinstance(training, str) else by_rarity(texts.references[0], training)
    return TestSet(
        name=texts.name,
        sentences=len(firsts[0]),
        note="; ".join(filter(None, _notes(texts, outputs, tgt_lang))),
        results=tuple(results),
        length_of=f"{side} {'characters' if counts_characters(measured) else 'words'}",
        by_length=bucket_scores(by_length(measured), firsts, texts.references, tgt_lang),
        rarity_of=str(training),
        by_rarity=bucket_scores(rare, firsts, texts.references, tgt_lang),
        examples=example_groups(
            [output.name for output in outputs], firsts, sentences, texts.references[0], texts.sources
        ),
    )


def _notes(texts: SetTexts, outputs: Sequence[Output], tgt_lang: str) -> Iterator[str]:
    """What a reader should know before believing the numbers; "" for nothing."""
    yield why_untested(len(outputs[0].seeds[0]))
    yield _twins(outputs)
    yield tokenizer_remark(tgt_lang)
    for output in outputs:
        yield tokenised_remark(output.name, output.seeds[0])
    for number, stream in enumerate(texts.references, start=1):
        yield tokenised_remark(f"reference {number}", stream)


def _twins(outputs: Sequence[Output]) -> str:
    """Which outputs of several lines are equal: most likely one run under two names; "" if none are."""
    named: dict[tuple[str, ...], list[str]] = {}
    for output in outputs:
        for number, seed in enumerate(output.seeds, start=1):
            name = output.name if len(output.seeds) == 1 else f"seed {number} of {output.name}"
            named.setdefault(tuple(seed), []).append(name)
    told = [" and ".join(names) for texts, names in named.items() if len(names) > 1 and len(texts) > 1]
    return "; ".join(f"{names} are equal in every line: is it one system under two names?" for names in told)


def _own_metric(
    metric: Metric, texts: SetTexts, outputs: Sequence[Output], tgt_lang: str
) -> list[MetricResult]:
    """One of sacreBLEU's scores for every system."""
    once = remembering(scorer(metric, tgt_lang, texts.references))
    values = [[float(once.corpus_score(seed, None).score) for seed in output.seeds] for output in outputs]
    found = paired_tests([output.seeds[0] for output in outputs], once)
    signature = str(once.get_signature())
    rows = zip(values, found, strict=True)
    return [_metric(metric, *row, signature, lower=metric == "ter") for row in rows]


def _outside_metric(metric: str, outputs: Sequence[Output], *, lower: bool) -> list[MetricResult]:
    """The mean of segment scores for every system."""
    segments = [output.segments[metric] for output in outputs]
    rows = zip(segments, paired_segment_tests(segments), strict=True)
    return [_metric(metric, [statistics.fmean(scores)], found, "", lower=lower) for scores, found in rows]


def _metric(
    name: str, values: Sequence[float], found: Significance, signature: str, *, lower: bool
) -> MetricResult:
    return MetricResult(
        name=name,
        value=statistics.fmean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        values=tuple(values),
        interval_mean=found.mean,
        interval=found.interval,
        signature=signature,
        p_bootstrap=found.p_bootstrap,
        p_randomisation=found.p_randomisation,
        lower_is_better=lower,
    )


def _result(
    output: Output,
    scores: tuple[MetricResult, ...],
    texts: SetTexts,
    tgt_lang: str,
    wins: tuple[int, int, int] | tuple[None, None, None],
) -> SystemResult:
    hypotheses = output.seeds[0]
    counts = count_outputs(hypotheses, texts.references, texts.sources)
    return SystemResult(
        name=output.name,
        scores=scores,
        nats_per_char=output.nats_per_char,
        length_ratio=_length_ratio(hypotheses, texts.references, tgt_lang),
        empty=counts.empty,
        copied=counts.copied,
        repeated=counts.repeated,
        overlong=counts.overlong,
        sentences_per_second=output.sentences_per_second,
        wins=wins[0],
        ties=wins[1],
        losses=wins[2],
    )


def _length_ratio(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tgt_lang: str
) -> float | None:
    """Length of the texts over that of the references, as BLEU counts them; None for empty references."""
    bleu = scorer("bleu", tgt_lang).corpus_score(hypotheses, references)
    assert isinstance(bleu, BLEUScore)
    return bleu.sys_len / bleu.ref_len if bleu.ref_len else None
