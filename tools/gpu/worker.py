"""The process that runs parts, one after the other, and tells all that they find at once."""

from __future__ import annotations

import contextlib
import gc
import os
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tools.gpu import parts_fast, parts_lstm, parts_right
from tools.gpu.setting import Setting

_FUNCTIONS = {
    function.__name__: function
    for function in (
        parts_right.machine,
        parts_right.kernels,
        parts_right.lanes,
        parts_right.repeats,
        parts_fast.speed_base,
        parts_fast.train,
        parts_fast.decode,
        parts_lstm.lstm,
        parts_fast.memory,
        parts_fast.profile,
        parts_fast.speed_big,
        parts_fast.compiled_base,
        parts_fast.compiled_big,
    )
}


def work(connection: Connection, device: str, quick: bool, ids: str) -> None:
    """Run each part whose name comes in. Messages out: ("found", facts) …, ("done", error text or None)."""

    # Without it torch refuses deterministic products; the size is the default of Hopper cards.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

    def report(**facts: Any) -> None:
        connection.send(("found", facts))

    setting = Setting(torch.device(device), quick, Path(ids), report)
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        error = None
        try:
            _FUNCTIONS[name](setting)
        except Exception:
            error = traceback.format_exc()
        gc.collect()
        if setting.device.type == "cuda":
            with contextlib.suppress(RuntimeError):
                torch.cuda.empty_cache()
        connection.send(("done", error))
