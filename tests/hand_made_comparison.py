"""A small comparison with numbers chosen by hand, for tests of what is made from one."""

from __future__ import annotations

from transformer_mt.evaluation.comparison import (
    AttentionExample,
    AttentionMap,
    Bucket,
    Comparison,
    Cost,
    CurvePoint,
    Example,
    ExampleGroup,
    MetricResult,
    System,
    SystemResult,
    TestSet,
    TimeToBleu,
)

NAMES = ("lstm", "transformer")


def metric(name: str, value: float, p: float | None = None, sd: float | None = None) -> MetricResult:
    """A score with an interval of 1.5 points on both sides, and the same p by both tests."""
    return MetricResult(name, value, sd, (value,), value, 1.5, f"nrefs:1|name:{name}", p, p, name == "ter")


def result(name: str, bleu: float, p: float | None = None) -> SystemResult:
    """BLEU as given and TER 60 below 100; wins, ties and losses where there is a p."""
    wins, ties, losses = (600, 250, 150) if p is not None else (None, None, None)
    scores = (metric("bleu", bleu, p), metric("ter", 100 - bleu, p))
    return SystemResult(name, scores, 0.4, 0.98, 2, None, 5, 1, 31.5, wins, ties, losses)


def cost(seconds: float) -> Cost:
    """Of a small run that took so long."""
    return Cost(
        True, 11_200_000, 4000, 7_300_000, seconds, 4100.0, 2.25, "bf16", "a machine", 2, "2.13.0", 4000
    )


def curve(slowness: float) -> tuple[CurvePoint, ...]:
    """Two validations."""
    return (
        CurvePoint(500, 300 * slowness, 900_000, 21.0, 3.0),
        CurvePoint(1000, 600 * slowness, 1_800_000, 35.5, 2.2),
    )


def test_set(
    name: str = "test2016",
    names: tuple[str, ...] = NAMES,
    bleu: tuple[float, ...] = (36.5, 40.7),
    p: float | None = 0.001,
    hypotheses: tuple[str, ...] = ("A cat sat.", "The dog sat here."),
) -> TestSet:
    """One set with two buckets and one example."""
    results = (
        result(names[0], bleu[0]),
        *(result(n, b, p) for n, b in zip(names[1:], bleu[1:], strict=True)),
    )
    example = Example(7, "Der Hund saß.", "The dog sat.", hypotheses, tuple(40.0 for _ in names))
    buckets = (Bucket("1-10", 600, bleu), Bucket("11-20", 400, tuple(b - 5 for b in bleu)))
    group = ExampleGroup("at random", (), (example,))
    return TestSet(name, 1000, "", results, "source words", buckets, "no training text", (), (group,))


test_set.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test


def comparison(*sets: TestSet, names: tuple[str, ...] = NAMES, warnings: tuple[str, ...] = ()) -> Comparison:
    """Two runs, or runs and texts where there are more names."""
    runs = tuple(
        System(name, "run", (f"runs/{name}",), (cost(3000.0 - 1200 * i),), (curve(2.0 - i),))
        for i, name in enumerate(names[:2])
    )
    texts = tuple(System(name, "text", (f"{name}.txt",)) for name in names[2:])
    attention = tuple(
        AttentionMap(name, ("▁Der", "▁Hund", "</s>"), ("▁dog", "</s>"), ((0.1, 0.7, 0.2), (0.0, 0.1, 0.9)))
        for name in names[:2]
    )
    levels = (
        TimeToBleu(20.0, (600.0, 300.0, *(None for _ in texts))),
        TimeToBleu(40.0, (None, 900.0, *(None for _ in texts))),
    )
    return Comparison(
        "de",
        "en",
        runs + texts,
        sets or (test_set(),),
        "By a thousand resamples.",
        warnings,
        levels,
        (AttentionExample("test2016", 7, "Der Hund saß.", attention),),
    )
