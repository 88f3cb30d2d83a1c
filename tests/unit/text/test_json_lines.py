"""Records of JSON Lines and the text in them; `test_corpus.py` reads them as pairs."""

from __future__ import annotations

import pytest

from transformer_mt.errors import DataError
from transformer_mt.text.json_lines import columns_of, parse_json, text_of


def test_fields_may_stand_inside_a_translation() -> None:
    """As corpora of the Hub have it; a translation that is text is a field like any other."""
    nested = parse_json('{"id": 1, "translation": {"de": "x"}}', "f:1")
    assert columns_of(nested, "f:1") == {"de": "x"}
    plain = parse_json('{"translation": "x"}', "f:1")
    assert columns_of(plain, "f:1") == {"translation": "x"}


def test_a_text_is_one_line() -> None:
    """B001: a line end inside JSON must not become one of a file."""
    assert text_of("a\nb\rc\u2028d", "f:1", "src") == "a b c\u2028d"


def test_a_number_may_be_long() -> None:
    """Python alone refuses to read an integer of more than 4,300 digits."""
    assert columns_of(parse_json('{"src": "x", "id": %s}' % ("9" * 5000), "f:1"), "f:1")["src"] == "x"


def test_what_is_no_record_is_told_with_its_place() -> None:
    """File and line, and what is there instead."""
    with pytest.raises(DataError, match=r"f:7: is not JSON \(.*\); write one object a line"):
        parse_json("{", "f:7")
    with pytest.raises(DataError, match=r"f:7: is not JSON \(it knows no -Infinity, only null\); write one"):
        parse_json('{"src": "x", "other": [-Infinity]}', "f:7")
    with pytest.raises(DataError, match="f:7: is nested too deeply to be read; write one flat object a line"):
        parse_json("[" * 100_000, "f:7")
    with pytest.raises(DataError, match="f:7: must be an object, but is an array; write one object a line"):
        columns_of([1], "f:7")
    with pytest.raises(DataError, match="f:7: `src` must be text, but is a number; mend it"):
        text_of(1, "f:7", "src")
    with pytest.raises(DataError, match="f:7: `src` holds half of a surrogate pair"):
        text_of("\ud800", "f:7", "src")
