"""Records of a data set that the `datasets` library loads: from the Hugging Face Hub, its cache or a folder.

Knows nothing of languages or of which column is which.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformer_mt.errors import DataError

HUB_PREFIX = "hf:"
_BATCH_SIZE = 1000


def read_hub(source: str, root: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, record) of each row of `hf:NAME[/CONFIG][@SPLIT]`.

    `hf:./FOLDER[@SPLIT]` loads a local folder, relative to `root`. The library respects HF_HUB_OFFLINE.

    Raises:
        DataError: no such data set, configuration or split; no network.
    """
    name, _, split = source.removeprefix(HUB_PREFIX).partition("@")
    dataset = _choose_split(_load(source, name, Path(root)), split, source)
    number = 0
    for batch in dataset.iter(batch_size=_BATCH_SIZE):
        for values in zip(*batch.values(), strict=True):
            number += 1
            yield f"{source}:{number}", dict(zip(batch, values, strict=True))


def _load(source: str, name: str, root: Path) -> Any:
    """All splits. `a/b` is owner and name first, name and configuration second."""
    import datasets

    parts = name.split("/")
    attempts: list[tuple[str, str | None]] = []
    if name.startswith((".", "/")):
        folder = root / name
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; check data.root and the source `{source}`")
        attempts = [(str(folder), None)]
    elif len(parts) <= 2:
        attempts = [(name, None), *([(parts[0], parts[1])] if len(parts) == 2 else [])]
    elif len(parts) == 3:
        attempts = [("/".join(parts[:2]), parts[2])]
    problem: Exception | str = "must be hf:NAME[/CONFIG][@SPLIT]"
    for path, config in attempts:
        try:
            return datasets.load_dataset(path, config, streaming=False)
        except datasets.exceptions.DatasetNotFoundError as error:
            problem = error
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            problem = error
            break
    reason = " ".join(str(problem).split())[:300].rstrip(". ")
    raise DataError(
        f"{source}: cannot be loaded: {reason}; check the name and the network, or download the data "
        "and name local files"
    )


def _choose_split(splits: Any, split: str, source: str) -> Any:
    names = list(splits)
    if not split and len(names) == 1:
        split = names[0]
    if split not in names:
        found = f"no split `{split}`" if split else "several splits"
        raise DataError(f"{source}: has {found}; write @SPLIT after the name, one of {', '.join(names)}")
    return splits[split]
