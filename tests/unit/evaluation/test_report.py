"""report.html: the whole comparison is in it, nothing from outside is markup, equal input is equal text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests import hand_made_comparison as made
from transformer_mt.evaluation.comparison import Comparison, System, from_json, to_json
from transformer_mt.evaluation.report import render_report, write_report

VOID = {"meta", "link", "br"}
INLINE = {"b", "bdi", "del", "ins", "small", "span"}
EVIL = "<script>alert(1)</script>\"' onload=x"


class Page(HTMLParser):
    """Text, tags and ids of a page; fails where a tag is closed that is not the last one opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in INLINE:
            self.text += " "
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value or "" for key, value in self.attributes if key == name]


def words(page: str) -> str:
    return " ".join(Page(page).text.split())


@pytest.fixture(scope="module")
def page() -> str:
    return render_report(made.comparison(warnings=("different numbers of threads",)))


def test_every_part_is_shown(page: str) -> None:
    """Pins that no number of the comparison gets lost on its way to the page."""
    text = words(page)
    for part in (
        "transformer is 4.2 BLEU ahead of lstm on test2016 (p = 0.001).",
        "transformer reaches 20 validation BLEU after 5 min 00 s of training, lstm after 10 min 00 s (2.0 ",
        "Note: different numbers of threads",
        "transformer 40.7 39.2 to 42.2 4.2 better significant 0.001 / 0.001",
        "TER lower is better ● lstm 63.5 62.0 to 65.0",
        "better on 600, both are equal on 250, ● lstm is better on 150",
        "11-20 400 31.5 35.7",
        "BLEU by rarest word: no training text.",
        "training time 50 min 00 s 30 min 00 s × 0.60",
        "parameters 11.2 million 11.2 million × 1.00",
        "40 BLEU not reached 15 min 00 s",
        "empty 2 (0.2%) 2 (0.2%)",
        "copied from the source – –",
        "surprise at the references, nats per character 0.4000 0.4000",
        "reference The dog sat.",
        "Line 7 test2016 Der Hund saß.",
        "By a thousand resamples.",
        "runs/transformer",
        "nrefs:1|name:bleu",
    ):
        assert part in text, part


def test_differences_are_marked_by_more_than_colour(page: str) -> None:
    """Pins the elements that every reader of a page tells apart."""
    assert "<del>The dog</del><ins>A cat</ins> sat." in page
    assert "The dog sat <ins>here</ins>." in page


def test_the_page_stands_alone(page: str) -> None:
    """Pins that nothing is fetched and nothing runs."""
    parsed = Page(page)
    assert parsed.tags["script"] == 0
    links = parsed.values("href") + parsed.values("src")
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\((?!#)", page)


def test_ids_are_unique_and_every_reference_has_its_target(page: str) -> None:
    """Pins that the drawings, each made apart, do not clip or mark one another in one page."""
    parsed = Page(page)
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    used = {link[1:] for link in parsed.values("href") if link.startswith("#")}
    used |= set(re.findall(r"url\(#([^)]+)\)", page)) | set(parsed.values("aria-labelledby"))
    assert used <= set(ids)


def test_drawings_follow_light_and_dark(page: str) -> None:
    """Pins that no drawing has a colour of its own but through the page's variables."""
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 1 + 4 + 2
    for drawing in drawings:
        assert not re.search(r"(fill|stroke): #", drawing)
    assert "var(--s1)" in drawings[0]
    assert page.count('role="img"') == len(drawings)


def test_nothing_from_outside_is_markup() -> None:
    """Pins escaping wherever a name, a path, a warning or a sentence goes."""
    names = (EVIL, f"transformer {EVIL}", f"text {EVIL}")
    one = made.test_set(f"set {EVIL}", names, (30.0, 31.0, 32.0), hypotheses=(EVIL, "", f"The {EVIL}"))
    one = replace(
        one,
        note=EVIL,
        length_of=EVIL,
        by_length=(replace(one.by_length[0], label=EVIL),),
        rarity_of=EVIL,
        examples=tuple(
            replace(
                group,
                title=EVIL,
                examples=tuple(replace(e, source=EVIL, reference=EVIL) for e in group.examples),
            )
            for group in one.examples
        ),
    )
    full = made.comparison(one, names=names, warnings=(EVIL,))
    maps = tuple(
        replace(m, source=(EVIL, "$a$", "\x00"), target=(EVIL, "</svg>")) for m in full.attention[0].maps
    )
    attention = (replace(full.attention[0], source=EVIL, test_set=EVIL, maps=maps),)
    full = replace(full, src_lang=EVIL, tgt_lang=EVIL, significance=EVIL, attention=attention)
    parsed = Page(render_report(full))
    assert parsed.tags["script"] == 0
    assert not parsed.values("onload")
    assert parsed.text.count("<script>alert(1)</script>") > 30


def test_the_same_comparison_gives_the_same_page(page: str) -> None:
    """Pins that neither time nor the way through report.json changes a byte."""
    full = made.comparison(warnings=("different numbers of threads",))
    assert render_report(from_json(to_json(full), "report.json")) == page


def test_texts_alone_have_no_cost_and_no_training() -> None:
    """Pins that what texts cannot tell leaves no empty section behind."""
    full = made.comparison()
    systems = tuple(System(name, "text", (f"{name}.txt",)) for name in made.NAMES)
    results = tuple(replace(r, sentences_per_second=None, nats_per_char=None) for r in full.sets[0].results)
    page = render_report(
        replace(
            full,
            systems=systems,
            sets=(replace(full.sets[0], results=results, examples=()),),
            time_to_bleu=(),
            attention=(),
        )
    )
    found = set(Page(page).values("id"))
    assert {"scores", "faults", "method"} <= found
    assert not {"cost", "training", "examples", "attention"} & found
    assert "nats per character" not in page


def lone(full: Comparison) -> Comparison:
    """One system, one line, no intervals."""
    one = full.sets[0]
    scores = tuple(replace(s, interval_mean=None, interval=None) for s in one.results[0].scores)
    one = replace(
        one,
        sentences=1,
        note="1 line: significance means nothing",
        results=(replace(one.results[0], scores=scores),),
        by_length=(),
        examples=(),
    )
    return replace(full, systems=full.systems[:1], sets=(one,), time_to_bleu=(), attention=())


def test_one_system_and_one_line() -> None:
    """Pins that the smallest comparison is shown, with its warning."""
    text = words(render_report(lone(made.comparison())))
    assert "lstm reaches 36.5 BLEU on test2016." in text
    assert "test2016 1 sentence Note: 1 line: significance means nothing" in text
    assert "better on" not in text


def test_six_systems_and_outside_metrics() -> None:
    """Pins a sign for each system, and that a metric that only some have is shown for those."""
    names = (*made.NAMES, "third", "fourth", "fifth", "sixth", "seventh")
    one = made.test_set(names=names, bleu=tuple(30.0 + i for i in range(7)), hypotheses=("x",) * 7)
    comet = made.metric("COMET", -0.25, 0.2)
    results = (
        one.results[0],
        replace(one.results[1], scores=(*one.results[1].scores, comet)),
        *one.results[2:],
    )
    text = words(render_report(made.comparison(replace(one, results=results), names=names)))
    assert "● lstm ■ transformer ▲ third ◆ fourth ▼ fifth ✚ sixth ● seventh" in text
    assert "seventh is 6.0 BLEU ahead of lstm" in text
    assert re.search(r"COMET ■ transformer -0\.250 -1\.750 to 1\.250 Sentence by sentence", text)


def test_seeds() -> None:
    """Pins the spread beside the mean, the number of seeds, and their mean cost."""
    full = made.comparison()
    costs = (made.cost(1000.0), made.cost(3000.0))
    first = replace(
        full.systems[0], sources=("runs/1", "runs/2"), cost=costs, curve=(made.curve(1), made.curve(2))
    )
    results = (
        replace(full.sets[0].results[0], scores=(made.metric("bleu", 36.5, sd=0.34),)),
        full.sets[0].results[1],
    )
    sets = (replace(full.sets[0], results=results),)
    text = words(render_report(replace(full, systems=(first, full.systems[1]), sets=sets)))
    assert "lstm 2 seeds" in text
    assert "lstm 36.5 ± 0.3 35.0 to 38.0" in text
    assert "training time 33 min 20 s 30 min 00 s × 0.90" in text


def test_only_the_two_systems_of_a_group_are_shown() -> None:
    """Pins that a duel of two is not drowned in the words of all others."""
    names = (*made.NAMES, "third")
    one = made.test_set(
        names=names, bleu=(30.0, 31.0, 32.0), hypotheses=("first words", "second words", "third words")
    )
    group = replace(one.examples[0], against=("third", "lstm"))
    text = words(render_report(made.comparison(replace(one, examples=(group,)), names=names)))
    assert "first words" in text
    assert "third words" in text
    assert "second words" not in text


def test_languages_and_directions() -> None:
    """Pins that sentences carry their language, for fonts, and find their direction themselves."""
    page = render_report(replace(made.comparison(), tgt_lang="zh_CN"))
    assert 'dir="auto" lang="de">Der Hund saß.' in page
    assert 'dir="auto" lang="zh-CN">The dog sat.' in page


def test_control_characters_are_shown_as_pictures() -> None:
    """Pins that what HTML forbids does not stand in the page: some readers stop at a NUL."""
    one = made.test_set(hypotheses=("a\x00b\x1b[1m\x7f", "c\x85d\te"))
    page = render_report(made.comparison(one))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", page)
    assert "a\u2400b\u241b[1m\u2421" in words(page)
    assert "c\ufffdd e" in words(page)


def test_write(tmp_path: Path) -> None:
    """Pins the file, its encoding, and that a path that is not UTF-8 does not stop it."""
    full = made.comparison()
    system = replace(full.systems[0], sources=("runs/\udcff",))
    path = tmp_path / "report.html"
    write_report(replace(full, systems=(system, full.systems[1])), path)
    text = path.read_bytes().decode("utf-8")
    assert "runs/?" in text
    assert text.startswith("<!DOCTYPE html>")
