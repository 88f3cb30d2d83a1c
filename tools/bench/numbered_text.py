"""As much parallel text as a measurement wants: the training pairs again and again, no two of them alike."""

from __future__ import annotations

from itertools import count, islice

from tools.bench.task import Job
from transformer_mt.recipe import load_recipe
from transformer_mt.text.corpus import read_pairs


def numbered_pairs(job: Job) -> list[tuple[str, str]]:
    """Pairs of the recipe's training text; those of each further round end in its number."""
    data = load_recipe(str(job.path("S.yaml")), []).data
    pairs = list(read_pairs(data.train[0], data.root or ".", data.src_lang, data.tgt_lang))
    rounds = ((f"{src} {number}", f"{tgt} {number}") for number in count(2) for src, tgt in pairs)
    wanted = job.effort.prepared_pairs
    return [*pairs[:wanted], *islice(rounds, max(wanted - len(pairs), 0))]
