"""What one call of `translate` gave against what the case says it must give."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tools.fuzz_translate.inputs import Case
from transformer_mt.text.lines import is_blank

_UNESCAPED = {"\\\\": "\\", "\\t": "\t", "\\r": "\r", "\\n": "\n"}


@dataclass(frozen=True)
class Outcome:
    """Exit code, what was written to stdout and stderr, and the output file if there is one."""

    exit_code: int
    stdout: bytes
    stderr: str
    file: bytes | None


def problem(case: Case, outcome: Outcome) -> str | None:
    """What is wrong with the outcome, or None."""
    if outcome.exit_code != case.exit_code:
        return f"exit code {outcome.exit_code}, not {case.exit_code}"
    if "Traceback" in outcome.stderr:
        return "a traceback"
    if case.exit_code:
        return _problem_of_error(case, outcome)
    if case.to_file and (outcome.file is None or outcome.stdout):
        return "no output file" if outcome.file is None else "an output file, but something on stdout too"
    if "--quiet" in case.flags and outcome.stderr:
        return "--quiet is not quiet"
    written = outcome.file if case.to_file else outcome.stdout
    assert written is not None and case.lines is not None
    if written and not written.endswith(b"\n"):
        return "the last line has no end"
    try:
        rows = written.decode().split("\n")[:-1]
    except UnicodeDecodeError:
        return "the output is not UTF-8"
    return _problem_of_rows(case, case.lines, rows)


def _problem_of_error(case: Case, outcome: Outcome) -> str | None:
    lines = outcome.stderr.split("\n")[:-1]
    errors = [line for line in lines if "error: " in line]
    if len(errors) != 1:
        return f"{len(errors)} lines of error"
    if outcome.file is not None:
        return "an output file in spite of the error"
    if case.exit_code == 2 and outcome.stdout:
        return "something on stdout in spite of the error"
    # A stream has given the lines before the one that is broken.
    if case.exit_code == 3 and outcome.stdout.count(b"\n") > case.data.count(b"\n") * 3:
        return "more lines than were read"
    return None


def _problem_of_rows(case: Case, lines: list[str], rows: list[str]) -> str | None:
    if case.format in ("text", "jsonl"):
        if len(rows) != len(lines):
            return f"{len(rows)} lines for {len(lines)}"
        texts = rows if case.format == "text" else []
        for place, row in enumerate(rows if case.format == "jsonl" else []):
            one = json.loads(row)
            given = case.objects[place] if case.objects else {"source": lines[place]}
            if {key: one.get(key) for key in given} != given:
                return f"line {place + 1}: fields are lost"
            if case.nbest > 1 and not 1 <= len(one["nbest"]) <= case.nbest:
                return f"line {place + 1}: {len(one['nbest'])} translations"
            texts.append(one["translation"])
        return _problem_of_texts(case, lines, dict(enumerate(texts)))
    first = 1 if case.format == "tsv" else 0
    best: dict[int, str] = {}
    for row in rows:
        columns = row.split("\t") if case.format == "tsv" else row.split(" ||| ")
        if len(columns) != (6 if case.format == "tsv" else 4):
            return f"{len(columns)} columns: {row!r}"
        place = int(columns[0]) - first
        if not 0 <= place < len(lines):
            return f"number {columns[0]} for {len(lines)} lines"
        if case.format == "tsv" and _unescaped(columns[4]) != lines[place]:
            return f"line {place + 1}: the source has changed"
        best.setdefault(place, _unescaped(columns[5]) if case.format == "tsv" else columns[1])
    if list(best) != list(range(len(lines))):
        return f"numbers {list(best)} for {len(lines)} lines"
    return _problem_of_texts(case, lines, best)


def _problem_of_texts(case: Case, lines: list[str], texts: dict[int, str]) -> str | None:
    for place, line in enumerate(lines):
        if is_blank(line) and texts[place]:
            return f"line {place + 1}: is blank, but not its translation"
        if not is_blank(line) and is_blank(texts[place]) and "--min-length" not in case.flags:
            return f"line {place + 1}: is not blank, but its translation is"
    return None


def _unescaped(text: str) -> str:
    parts = text.split("\\\\")
    for short, character in list(_UNESCAPED.items())[1:]:
        parts = [part.replace(short, character) for part in parts]
    return "\\".join(parts)
