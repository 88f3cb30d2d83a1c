"""What the command does before its first update; all else is tested through the shell, in end_to_end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from transformer_mt import checkpoint
from transformer_mt.cli import train
from transformer_mt.errors import LostProcessError
from transformer_mt.runtime.distributed import Ranks

_RECIPE = Path(__file__).parents[3] / "recipes" / "zh_en_bundled" / "transformer.yaml"


class _Refused(Ranks):
    """The second of two processes; the first one has found that others train in the directory."""

    @contextlib.contextmanager
    def one_after_the_first(self) -> Iterator[None]:
        raise LostProcessError("process 0 of 2 ended: another process is training in it")
        yield


def test_only_the_holder_of_a_directory_looks_for_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking puts back what a kill had left; amid the save of another training that would harm it."""
    looked: list[Any] = []
    monkeypatch.setattr(checkpoint, "newest_valid", looked.append)
    recipe = train.load_recipe(_RECIPE, [f"run_dir={tmp_path / 'run'}"])
    args = SimpleNamespace(overwrite=False, init_from=None)
    with pytest.raises(LostProcessError, match="another process is training in it"):
        train._train(recipe, SimpleNamespace(fingerprint="x"), torch.device("cpu"), args, _Refused(1, 2))
    assert looked == []
