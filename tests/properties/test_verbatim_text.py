"""Protected strings and tags survive every translation and every alignment, in any script."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable

from hypothesis import assume, given
from hypothesis import strategies as st

from transformer_mt.text.markup import take_out
from transformer_mt.text.protection import compile_patterns, guard, lacks_protected, protected_spans
from transformer_mt.text.tag_layout import put_back
from transformer_mt.text.verbatim import Verbatim
from transformer_mt.text.words import unit_spans

WORDS = [
    "Hund",
    "dog.",
    "你",
    "好，",
    "世界。",
    "ここ",
    "กี่",
    "저는",
    "дом",
    "ש",
    "(x)",
    '"a"',
    "5-jährig",
    "<3",
    "a<b",
]
WORDS += [",", "…", "e\u0301", "&amp;", "x", "15", "5km", "<", ">", "'", "\u00a0", "a{", "}"]
NO_TAG = [word for word in WORDS if word != ">"]
"""Words that make no tag by chance, however they meet."""
PROTECTED = [
    "{name}",
    "%s",
    "{}",
    "5",
    "1,000",
    "1.000",
    "https://a.b/c?d=e",
    "https://a.b",
    "北京",
    "$1",
    "[x](y)",
    "%",
]
PATTERNS = compile_patterns(
    [r"\{\w*\}", r"%s|%", r"\d+(?:[.,]\d+)*", r"https://\S+", "北京", r"\$\d", r"\[x\]\(y\)", r"{n.*?e}"]
)
TAGS = [
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<br/>",
    "<br>",
    '<a href="x > y">',
    "</a>",
    "<!-- c -->",
    "<0/>",
]
TAGS += ['<x id="1"/>', "<p>", "</p>", "<?xml ?>"]
ENTITIES = [
    "&amp;",
    "&lt;",
    "&#39;",
    "&quot;",
    "&nbsp;",
    "&copy;",
    "&uuml;",
    "&",
    "ü",
    "'",
    "&x;",
    "&#10",
    "&fjlig;",
]
Alignment = list[tuple[int, int]]
Pairs = st.SearchStrategy[Alignment]
SPACES = st.sampled_from(["", " ", " ", "  ", "\u3000"])


def lines(*pieces: list[str]) -> st.SearchStrategy[str]:
    """Lines of these pieces, with and without spaces between them."""
    piece = st.sampled_from([one for group in pieces for one in group])
    return st.lists(st.tuples(piece, SPACES).map("".join), max_size=12).map("".join)


def alignments(draw: Callable[[Pairs], Alignment], source: str, target: str) -> Alignment:
    """None, some or all pairs, in any order."""
    numbers = len(unit_spans(source)), len(unit_spans(target))
    if not all(numbers):
        return []
    pair = st.tuples(*(st.integers(0, number - 1) for number in numbers))
    return draw(st.lists(pair, max_size=15))


@st.composite
def protected_cases(draw: st.DrawFn) -> tuple[str, str, Alignment]:
    """Source, translation, alignment."""
    source, target = draw(lines(WORDS, PROTECTED)), draw(lines(WORDS, PROTECTED))
    return source, target, alignments(draw, source, target)


@st.composite
def trees(draw: st.DrawFn) -> str:
    """A line whose tags are nested well."""
    nested = st.recursive(
        lines(NO_TAG),
        lambda inner: st.tuples(
            st.sampled_from(
                ["<b>{}</b>", "<i> {}</i>", '<a href=">">{} </a> ', "<p>{}</p>", "{}<br/>", "x {} y"]
            ),
            st.lists(inner, max_size=3).map(" ".join),
        ).map(lambda pair: pair[0].format(pair[1])),
        max_leaves=6,
    )
    return draw(nested)


def nesting(line: str) -> Counter[str] | None:
    """Of each tag, what it stands in, if all are nested well. Checked apart from the code: by names alone."""
    names = ""
    found: Counter[str] = Counter()
    for tag in re.findall(r"</?(?:[bip]|a|br/)(?: href=\">\")?>", line):
        if not tag.startswith("</"):
            found[names + tag] += 1
            names += "" if tag == "<br/>" else tag[1]
        elif names[-1:] == tag[2]:
            names = names[:-1]
        else:
            return None
    return None if names else found


def closed_up(text: str) -> str:
    return "".join(text.split())


@given(protected_cases())
def test_every_protected_string_survives(case: tuple[str, str, Alignment]) -> None:
    """Each is in the result as often as in the source or more, at places of its own that the result names."""
    source, translation, alignment = case
    spans = protected_spans(source, PATTERNS)
    result = guard(source, spans, translation, alignment, PATTERNS)
    wanted = Counter(source[start:end] for start, end in spans)
    for text, number in wanted.items():
        assert result.text.count(text) >= number, (text, result.text)
    ends = [end for _, end in result.spans]
    assert all(end <= start for end, (start, _) in zip(ends, result.spans[1:], strict=False))
    kept = "\0".join(result.text[start:end] for start, end in result.spans)
    assert all(kept.count(text) >= number for text, number in wanted.items())
    number = len(unit_spans(result.text))
    assert all(0 <= target < number for _, target in result.alignment)
    if not lacks_protected(source, spans, translation, PATTERNS):
        assert result.text == translation


@given(st.data(), lines(WORDS, TAGS), lines(WORDS))
def test_every_tag_survives_once(data: st.DataObject, source: str, translation: str) -> None:
    """Whatever the nesting: the same tags, and without them the translation, up to white space."""
    stripped = take_out(source)
    assume(not take_out(translation).tags and {tag.text for tag in stripped.tags} <= set(TAGS))
    alignment = alignments(data.draw, stripped.text, translation)
    result = put_back(translation, stripped, alignment)
    assert Counter(tag.text for tag in take_out(result).tags) == Counter(tag.text for tag in stripped.tags)
    assert closed_up(take_out(result).text) == closed_up(translation)
    assert closed_up(stripped.text) == closed_up(re.sub("|".join(map(re.escape, TAGS)), "", source))


@given(st.data(), trees(), lines(NO_TAG))
def test_what_is_nested_well_stays_so(data: st.DataObject, source: str, translation: str) -> None:
    """Each tag in the pairs it stood in and in no other, whatever the alignment crosses."""
    assert nesting(source) is not None
    stripped = take_out(source)
    result = put_back(translation, stripped, alignments(data.draw, stripped.text, translation))
    assert nesting(result) == nesting(source), result


@given(st.data(), lines(WORDS, PROTECTED, TAGS), lines(WORDS, PROTECTED))
def test_no_tag_breaks_a_protected_string(data: st.DataObject, source: str, translation: str) -> None:
    """Both together: protected strings first, then tags around them."""
    stripped = take_out(source)
    spans = protected_spans(stripped.text, PATTERNS)
    alignment = alignments(data.draw, stripped.text, translation)
    guarded = guard(stripped.text, spans, translation, alignment, PATTERNS)
    assume(not take_out(guarded.text).tags)
    result = put_back(guarded.text, stripped, guarded.alignment, guarded.spans)
    assert Counter(tag.text for tag in take_out(result).tags) == Counter(tag.text for tag in stripped.tags)
    for text, number in Counter(stripped.text[start:end] for start, end in spans).items():
        assert result.count(text) >= number, (text, result)


@given(lines(WORDS, TAGS, PROTECTED))
def test_a_line_translated_into_itself_is_itself(source: str) -> None:
    """Word by word, with every word aligned with itself, nothing moves: only white space may differ."""
    stripped = take_out(source)
    own = [(unit, unit) for unit in range(len(unit_spans(stripped.text)))]
    spans = protected_spans(stripped.text, PATTERNS)
    guarded = guard(stripped.text, spans, stripped.text, own, PATTERNS)
    assert guarded.text == stripped.text
    assert sorted(guarded.spans) == spans


@given(lines(WORDS, ENTITIES, PROTECTED))
def test_entities_of_a_line_translated_into_itself_are_the_same(source: str) -> None:
    """To the letter, bare ones among them; and a reader sees the same as everywhere."""
    verbatim = Verbatim([pattern.pattern for pattern in PATTERNS], tags=True)
    read = verbatim.source(source)
    assume(not read.stripped.tags)
    own = [(unit, unit) for unit in range(len(unit_spans(read.text)))]
    assert verbatim.finish(read, read.text, own)[0] == source


@given(st.data(), lines(WORDS, ENTITIES, PROTECTED, TAGS), lines(NO_TAG))
def test_a_line_of_markup_stays_one(data: st.DataObject, source: str, translation: str) -> None:
    """Where no sign of its own stands for itself, none does in the translation; and nothing is lost."""
    source = re.sub("&(?![a-z#][a-z0-9]*;)|<(?![/a-z!?0][^<]*>)", "", source)
    verbatim = Verbatim([], tags=True)
    read = verbatim.source(source)
    assume(read.stripped.tags or read.readable.has_entities)
    assume(all(form not in ("<", "&") for form in read.readable.written))
    found = verbatim.finish(read, translation, alignments(data.draw, read.text, translation))[0]
    without = take_out(found).text
    assert not re.search("&(?![a-zA-Z#][a-zA-Z0-9]*;)|<", without), found
    assert closed_up(html.unescape(without)) == closed_up(translation)
