"""All that the lines of `translate` depend on besides their source: an output of the same is the same.

Told from the flags and the recipe; no model is loaded for it.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import Any

import torch

from transformer_mt import __version__
from transformer_mt.checkpoint import find_checkpoint
from transformer_mt.checkpoint_files import MANIFEST
from transformer_mt.cli.translate_flags import LINES_PER_WORKER, MOST_SHARES
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.workers import pick_workers
from transformer_mt.runtime.device import pick_device, set_up_process


def translator_options(args: argparse.Namespace) -> dict[str, Any]:
    """What `Translator.load` takes besides model and search; all of it changes what is written."""
    return {
        "token_scores": args.token_scores,
        "alignment": args.alignment,
        "protect": args.protect,
        "tags": args.tags,
    }


def buffer_size(args: argparse.Namespace) -> int:
    """Lines that this process translates together, if so many are there."""
    set_up_process()  # it limits the threads, and so the workers
    workers = pick_workers(args.workers, pick_device(args.device))
    return LINES_PER_WORKER * min(workers, MOST_SHARES)


def settings_of(
    args: argparse.Namespace, decoding: DecodingConfig, style: str, size: int, processes: int = 1
) -> dict[str, Any]:
    """All that the written lines depend on besides the source; the same lines come of the same settings."""
    search = decoding.model_dump()
    if decoding.precision in ("fp32", "int8"):
        del search["batch_size"]  # batches and buffers change nothing then
    else:
        search |= {"buffer_size": size, "processes": processes}
    # What says which weights are used: one file a run.
    runs = [find_checkpoint(run, args.checkpoint) / MANIFEST for run in (args.run_dir, *args.ensemble)]
    return {
        "transformer_mt": __version__,
        "torch": torch.__version__,
        "device": pick_device(args.device).type,
        "checkpoint": [hashlib.sha256(path.read_bytes()).hexdigest() for path in runs],
        "shortlist": args.shortlist,
        "format": style,
        "added_prefix": args.added_prefix,
        "input_format": args.input_format,
        "source_field": args.source_field,
        "prefix": args.prefix is not None,
        "prefix_field": args.prefix_field,
        **translator_options(args),
        **search,
    }
