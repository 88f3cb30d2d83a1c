"""One line of JSON Lines -> a record, and the text that a field of it holds."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from transformer_mt.errors import DataError
from transformer_mt.text.lines import one_line

_JSON_NAMES = {dict: "an object", list: "an array", str: "text", bool: "true or false", type(None): "null"}


def parse_json(line: str, where: str) -> Any:
    """The value that a line spells.

    Args:
        line: text.
        where: file:line, for the message.

    Raises:
        DataError: it is not JSON.
    """
    try:
        # Numbers are not looked at, and a float may have any number of digits.
        return json.loads(line, parse_constant=_refuse, parse_int=float)
    except RecursionError:
        raise DataError(f"{where}: is nested too deeply to be read; write one flat object a line") from None
    except ValueError as error:
        raise DataError(f"{where}: is not JSON ({error}); write one object a line") from None


def _refuse(name: str) -> NoReturn:
    """Python reads NaN and Infinity, which no other reader would take from us."""
    raise ValueError(f"it knows no {name}, only null")


def columns_of(record: Any, where: str) -> dict[str, Any]:
    """The fields that may hold text: those of a `translation` inside the record, or of the record itself.

    Raises:
        DataError: the record is not an object.
    """
    columns = record
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        columns = record["translation"]
    if not isinstance(columns, dict):
        raise DataError(f"{where}: must be an object, but is {_json_name(columns)}; write one object a line")
    return columns


def text_of(value: Any, where: str, field: str) -> str:
    """The text of a field, as one line: inside JSON a text may hold line ends, but one line is one sentence.

    Raises:
        DataError: it is not text, or text that cannot be encoded.
    """
    if not isinstance(value, str):
        raise DataError(
            f"{where}: `{field}` must be text, but is {_json_name(value)}; mend it, or name another field"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{where}: `{field}` holds half of a surrogate pair; mend the text") from None
    return one_line(value)


def _json_name(value: Any) -> str:
    return _JSON_NAMES.get(type(value), "a number")
