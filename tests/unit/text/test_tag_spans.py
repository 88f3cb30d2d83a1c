"""tag_spans: what pairs enclose, nested as in the source."""

from __future__ import annotations

from transformer_mt.text.markup import take_out
from transformer_mt.text.placing import Placing
from transformer_mt.text.tag_spans import pair_spans


def test_spans_of_pairs() -> None:
    """By their opening tags: all of the line, siblings cut apart, none where nothing is left (`<i>`)."""
    stripped = take_out("<p>a <b>b <i>c</i></b> <u>d</u> <s>e</s></p>")
    links = [(0, 0), (1, 1), (2, 2), (3, 2), (3, 3), (4, 2)]
    spans = pair_spans(stripped.tags, Placing(stripped.text, "A B C D.", links), [])
    assert spans == {0: (0, 8), 1: (2, 3), 5: (6, 7), 7: (4, 5)}
    assert pair_spans(stripped.tags, Placing(stripped.text, "", []), []) == {}
