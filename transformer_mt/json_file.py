"""Small files of a run: JSON that every reader takes, and files that are replaced as a whole.

JSON knows neither infinity nor NaN, though Python writes them: `json_text` writes null instead. Knows nothing
of what the files say.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_mt.errors import CheckpointError


def json_text(value: Any, *, indent: int | None = None, ensure_ascii: bool = False) -> str:
    """A value as JSON, null for each number that is not finite."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a small JSON file as a whole."""
    write_text(path, json_file_text(value))


def json_file_text(value: Mapping[str, Any]) -> str:
    """What `write_json` writes."""
    # Escapes: the command line that a run notes need not be UTF-8.
    return json_text(value, indent=1, ensure_ascii=True) + "\n"


def read_json(path: Path, remedy: str = "delete it to go on without it") -> dict[str, Any] | None:
    """A small JSON file, or None where it is missing.

    Args:
        path: of the file.
        remedy: what to do about a damaged one.

    Raises:
        CheckpointError: it is there but damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}; {remedy}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: holds no JSON object; {remedy}")
    return value


def write_text(path: Path, text: str) -> None:
    """Replace a small text file as a whole: on a full disk the old one stays."""
    temporary = path.with_name(f".writing-{path.name}")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # the system names no file when the disk is full
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
