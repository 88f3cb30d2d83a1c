"""A comparison -> report.html: one page that needs no other file, no network and no script.

The template is `templates/report.html.j2`. Everything that comes from outside is escaped, and a policy in the
page forbids scripts and requests besides. The same comparison gives the same page. Knows no models, and no
texts but those in the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from transformer_mt.evaluation import charts, report_rows
from transformer_mt.evaluation import findings as found
from transformer_mt.evaluation.comparison import Bucket, Comparison, CurvePoint, ExampleGroup
from transformer_mt.evaluation.differences import differences
from transformer_mt.json_file import write_text

# HTML knows no control characters but tab and ends of line: their pictures stand for them (U+2400 and on).
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# A unit of time for drawings is used from two of it on.
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


def render_report(comparison: Comparison) -> str:
    """The text of the page.

    Args:
        comparison: what to show, as it comes from `compare` or from report.json.
    """
    page = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.globals |= {
        "attention_svg": lambda attention, key: Markup(charts.attention_svg(attention, key)),
        "buckets_svg": lambda buckets, key: Markup(charts.buckets_svg(buckets, key)),
        "chart_facts": _bucket_facts,
        "differences": differences,
        "lang": _lang,
        "marks": charts.MARKS,
        "rows": report_rows,
        "shown": _shown,
        "style_of": charts.system_style,
        "text": found,
    }
    text = page.get_template("report.html.j2").render(
        comparison=comparison,
        curves=list(_training_curves(comparison)),
        findings=found.findings(comparison),
        names=[system.name for system in comparison.systems],
    )
    return text.translate(_PICTURES)


def write_report(comparison: Comparison, path: Path) -> None:
    """Write the page.

    Args:
        comparison: what to show.
        path: the file, replaced where it exists.
    """
    # File names need not be UTF-8; the bytes that are not become question marks.
    write_text(path, render_report(comparison).encode("utf-8", "replace").decode())


def _lang(language: str) -> Markup:
    """The attribute that chooses the fonts of a language: zh_CN -> lang="zh-CN"."""
    return Markup(' lang="{}"').format(language.replace("_", "-")) if language else Markup("")


def _shown(comparison: Comparison, group: ExampleGroup) -> list[int]:
    """The systems whose words a group of examples shows: the two it is about, or all."""
    names = [system.name for system in comparison.systems]
    return sorted(names.index(name) for name in group.against) or list(range(len(names)))


def _bucket_facts(comparison: Comparison, buckets: Iterable[Bucket]) -> str:
    """What a drawing of buckets shows, for those who hear it."""
    parts = []
    for bucket in buckets:
        scores = [
            f"{system.name} {bleu:.1f}" for system, bleu in zip(comparison.systems, bucket.bleu, strict=True)
        ]
        parts.append(f"{bucket.label}: {', '.join(scores)}")
    return "; ".join(parts)


def _training_curves(comparison: Comparison) -> Iterable[tuple[str, str, Markup]]:
    """Title, what is seen, and drawing of every pair of axes for which some run has points."""
    seconds = [
        p.seconds for s in comparison.systems for seed in s.curve for p in seed if p.seconds is not None
    ]
    unit, unit_name = next(
        ((u, n) for u, n in _UNITS if max(seconds, default=0.0) >= 2 * u), (1.0, "seconds")
    )
    for quantity, name in (("bleu", "validation BLEU"), ("nll", "validation nats per token")):
        for axis, scale, axis_name in (
            ("step", 1.0, "updates"),
            ("seconds", unit, f"wall time, {unit_name}"),
        ):
            curves = [[_points(seed, axis, scale, quantity) for seed in s.curve] for s in comparison.systems]
            facts = [
                f"{system.name}: {seed[-1][1]:.3g} at {seed[-1][0]:.3g}"
                for system, seeds in zip(comparison.systems, curves, strict=True)
                for seed in seeds
                if seed
            ]
            if facts:
                drawing = charts.curves_svg(curves, axis_name, name, f"curve-{quantity}-{axis}")
                title = f"{name} over {axis_name}"
                yield title, f"{title}; last points: {'; '.join(facts)}", Markup(drawing)


def _points(curve: Iterable[CurvePoint], axis: str, scale: float, quantity: str) -> list[tuple[float, float]]:
    pairs = [(getattr(point, axis), getattr(point, quantity)) for point in curve]
    return [(x / scale, y) for x, y in pairs if x is not None and y is not None]
