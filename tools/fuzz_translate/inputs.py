"""Random texts and flags, and what `translate` must make of them by rules of their own.

The rules are written apart from the package's reader: bytes are counted here, not lines read.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

_BLANKS = ["", " ", "\t", "\u00a0", "\u3000\u3000", "\u200b", "\u2028", "\x85", "\x0b\x0c", "\u2060\u00ad"]
_ODD = [
    "</s>",
    "<pad>",
    "<unk>",
    "<0x0A>",
    "\u2581",
    "\u2028",
    "\x85",
    "\x0c",
    "\x1c",
    "\x00",
    "\r",
    "\r\r",
    "\x1a",
    "\u202e",
    "\ufeff",
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "🇩🇪",
    "\U0010ffff",
    "\ufffe",
    "|||",
    "&amp;",
    '"',
    "\\n",
    "<b>",
    "</b>",
    "https://a.b/c?d=e",
    "%s",
    "{0}",
    "ha ha ha ha ha",
    "…",
    "我今天去学校。",
    "東京",
    "ไทย",
    "שלום",
    "ß",
]
_WORDS = ["abd", "eik", "lm", "nor", "stu", "a", "tie", "Ende.", "12,5", "(x)"]
# Bytes that are no UTF-8: cut short, stray, overlong, half a surrogate pair, beyond the last character.
_BROKEN = [b"\xff", b"\xc3", b"a\xe9b", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]

_DRAWN: list[list[str]] = [[], ["--seed", "7"], ["--top-k", "3"], ["--top-p", "0.5"]]
_FLAGS: list[Callable[[random.Random], list[str]]] = [
    lambda draw: draw.choice(
        [
            ["--beam-size", str(draw.randint(1, 4))],
            ["--coverage-penalty", "0.2", "--beam-size", "3"],
            ["--temperature", draw.choice(["0.7", "2"]), *draw.choice(_DRAWN)],
        ]
    ),
    lambda draw: ["--batch-size", str(draw.randint(1, 5))],
    lambda draw: ["--buffer-size", str(draw.randint(1, 5))],
    lambda draw: ["--length-penalty", draw.choice(["0", "0.6", "2"])],
    lambda draw: ["--max-len-a", draw.choice(["0", "0.2"])],
    lambda draw: ["--min-length", str(draw.randint(0, 3))],
    lambda draw: ["--quiet"],
    lambda draw: ["--no-split-long"],
    lambda draw: ["--no-retry"],
    lambda draw: ["--tags"],
    lambda draw: ["--protect", draw.choice([r"\d+", r"https?://\S+", r"\w", "<[^>]*>", "%s"])],
    lambda draw: ["--no-repeat-ngram", str(draw.randint(0, 3))],
    lambda draw: ["--repetition-penalty", draw.choice(["1.0", "1.3"])],
]
# Flags that are refused whatever is read.
_WRONG = [
    ["--beam-size", "0"],
    ["--beam-size", "x"],
    ["--nbest", "9", "--beam-size", "2"],
    ["--buffer-size", "0"],
    ["--format", "xml"],
    ["--precision", "fp99"],
    ["--max-len-b", "-1"],
    ["--length-penalty", "nan"],
    ["--beem-size", "3"],
    ["--workers", "0"],
    ["--nbest", "2", "--beam-size", "2", "--format", "text"],
    ["--temperature", "0", "--top-k", "3"],
    ["--temperature", "0", "--seed", "3"],
    ["--min-length", "9", "--max-len-a", "0", "--max-len-b", "5"],
    ["--protect", "("],
    ["--device", "abacus"],
]


@dataclass(frozen=True)
class Case:
    """Bytes to translate, the flags, and what must come of it.

    lines is None where the bytes or flags are refused with exit_code; whole says whether lines before the
    refused one may be written.
    """

    data: bytes
    flags: list[str]
    exit_code: int
    lines: list[str] | None
    nbest: int = 1
    format: str = "text"
    to_file: bool = False
    from_stdin: bool = False
    objects: list[dict[str, object]] = field(default_factory=list)


def make_case(draw: random.Random) -> Case:
    """One of endlessly many."""
    json_in = draw.random() < 0.15
    texts = [_line(draw) for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 5]))]
    objects = [_object(draw, text) for text in texts] if json_in else []
    rows = [json.dumps(one, ensure_ascii=draw.random() < 0.5) for one in objects] if json_in else texts
    data = _joined(draw, rows)
    flags = [word for flag in draw.sample(_FLAGS, draw.randint(0, 4)) for word in flag(draw)]
    style = draw.choice(["text", "tsv", "jsonl", "moses"]) if draw.random() < 0.4 else ""
    nbest = draw.randint(2, 3) if style not in ("", "text") and draw.random() < 0.4 else 1
    if nbest > 1:
        flags += ["--nbest", str(nbest), "--beam-size", "4"]
    if json_in:
        flags += ["--input-format", "jsonl"]
    if style:
        flags += ["--format", style]
    places = {"to_file": draw.random() < 0.3, "from_stdin": draw.random() < 0.4}
    chance = draw.random()
    if chance < 0.05:
        return Case(data, [*flags, *draw.choice(_WRONG)], 2, None, **places)
    if chance < 0.12 and not json_in:
        return Case(_broken(draw, data), flags, 3, None, **places)
    style = style or ("jsonl" if json_in else "text")
    # Ends of line inside a JSON string are white space: its translation is one line.
    lines = [text.replace("\r", " ") for text in texts] if json_in else lines_of(data)
    return Case(data, flags, 0, lines, nbest, style, objects=objects, **places)


def lines_of(data: bytes) -> list[str]:
    """The lines of UTF-8: only 0x0A ends one; a byte-order mark, and a CR before the end, are no text."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data:
        return []
    rows = data.split(b"\n")
    if data.endswith(b"\n"):
        del rows[-1]
    return [(row[:-1] if row.endswith(b"\r") else row).decode() for row in rows]


def _line(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.2:
        return draw.choice(_BLANKS)
    if kind < 0.3:
        return "".join(_character(draw) for _ in range(draw.randint(1, 12)))
    if kind < 0.31:
        return " ".join(draw.choices(_WORDS, k=draw.randint(40, 200)))
    words = draw.choices(_WORDS, k=draw.randint(1, 6)) + draw.choices(_ODD, k=draw.randint(0, 3))
    draw.shuffle(words)
    return draw.choice(["", " "]).join(words)


def _character(draw: random.Random) -> str:
    while True:
        code = int(draw.choice([0x80, 0x800, 0x10000, 0x110000]) * draw.random())
        if code != 0x0A and not 0xD800 <= code < 0xE000:
            return chr(code)


def _object(draw: random.Random, text: str) -> dict[str, object]:
    one: dict[str, object] = {"id": draw.randint(0, 99), "src": text}
    if draw.random() < 0.5:
        one["note"] = draw.choice([None, True, 1.5, [1, "x"], {"deep": "</s>"}, "\u2028"])
    return one


def _joined(draw: random.Random, rows: list[str]) -> bytes:
    end = draw.choice(["\n", "\n", "\n", "\r\n"])
    text = end.join(rows) + (end if rows and draw.random() < 0.7 else "")
    return draw.choice([b"", b"", b"", b"\xef\xbb\xbf"]) + text.encode()


def _broken(draw: random.Random, data: bytes) -> bytes:
    """The bytes with something that is not UTF-8 at the end of some line."""
    rows = data.split(b"\n")
    place = draw.randrange(len(rows))
    rows[place] += draw.choice(_BROKEN)
    return b"\n".join(rows)
