"""Texts -> scores: BLEU, chrF2++ and TER by sacreBLEU on raw text, each with its signature.

What was compared with what is in the signature, so that two numbers with equal signatures may be compared.
Knows no models and no files.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric as Scorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from transformer_mt.config import Metric
from transformer_mt.errors import DataError

# Languages whose words sacreBLEU's default tokenizer cannot find: tokenizer, and the package it needs.
_TOKENIZERS = {"zh": ("zh", None), "ja": ("ja-mecab", "MeCab"), "ko": ("ko-mecab", "mecab_ko")}
_TOKENISED_ENDS = (" .", " 。")
_MANY_TOKENISED = 100  # as sacreBLEU has it; in shorter texts half of the lines
# What else these three are called: ISO 639-2 and 639-3 (so in FLORES), and in words.
_OTHER_CODES = {
    **dict.fromkeys(("zho", "chi", "cmn", "yue", "chinese", "mandarin", "cantonese"), "zh"),
    **dict.fromkeys(("jpn", "jp", "japanese"), "ja"),
    **dict.fromkeys(("kor", "kr", "korean"), "ko"),
}
_DEFAULT_TOKENIZER = "13a"
_FALLBACK_TOKENIZER = "char"
# TER counts words between spaces; in these languages sacreBLEU must first part the characters.
_UNSPACED = ("zh", "ja")


LABELS: dict[str, str] = {"bleu": "BLEU", "chrf": "chrF2++", "ter": "TER"}
"""Name of a score in a recipe -> the name that papers use."""


@dataclass(frozen=True)
class Score:
    """A value and how it was computed, under its name in recipes.

    Values run from 0 to 100, higher is better; TER may pass 100, and lower is better there.
    """

    name: str
    value: float
    signature: str


def bleu_tokenizer(tgt_lang: str) -> str:
    """sacreBLEU's tokenizer for a target language such as `de`, `zh`, `zh_CN` or `zho_Hans`.

    Japanese and Korean are cut into words by MeCab; where it is not installed (`pip install sacrebleu[ja]` or
    `[ko]`), characters are compared instead, and the signature says tok:char.
    """
    name, package = _TOKENIZERS.get(_language(tgt_lang), (_DEFAULT_TOKENIZER, None))
    if package is not None and importlib.util.find_spec(package) is None:
        return _FALLBACK_TOKENIZER
    return name


def _language(code: str) -> str:
    """zh_CN -> zh, and so zho_Hans."""
    first = code.replace("-", "_").split("_")[0].lower()
    return _OTHER_CODES.get(first, first)


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[Metric],
    tgt_lang: str,
) -> list[Score]:
    """Score a whole set of translations at once, never as a mean over its parts.

    Args:
        hypotheses: N texts as a reader sees them, not tokenised.
        references: one or several streams of N texts each, not one list per sentence.
        metrics: which scores, in this order.
        tgt_lang: language of the texts.

    Raises:
        DataError: no text, no references, or unequal numbers of texts.
    """
    check_texts(hypotheses, references)
    texts, streams = list(hypotheses), [list(stream) for stream in references]
    scores = []
    for metric in metrics:
        one = scorer(metric, tgt_lang)
        value = float(one.corpus_score(texts, streams).score)
        scores.append(Score(metric, value, str(one.get_signature())))
    return scores


def tokenizer_remark(tgt_lang: str) -> str:
    """What to know before BLEU of a language is computed here; "" for nothing."""
    if bleu_tokenizer(tgt_lang) != _FALLBACK_TOKENIZER:
        return ""
    code = _language(tgt_lang)
    return (
        f"MeCab is not installed, so BLEU compares characters of {code} (tok:{_FALLBACK_TOKENIZER}); "
        f"for words: pip install 'sacrebleu[{code}]'"
    )


def tokenised_remark(what: str, texts: Sequence[str]) -> str:
    """Whether texts end in full stops that stand alone, as tokenisers leave them; "" if they do not.

    Such scores compare with no others: sacreBLEU tokenises by itself.
    """
    count = sum(text.endswith(_TOKENISED_ENDS) for text in texts)
    if count < _MANY_TOKENISED and 2 * count < max(len(texts), 1):
        return ""
    return (
        f"{what} looks tokenised: {count} of {len(texts)} lines end in a full stop by itself; "
        "score text as people read it"
    )


def scorer(metric: Metric, tgt_lang: str, references: Sequence[Sequence[str]] | None = None) -> Scorer:
    """sacreBLEU's object for a score, with its settings of this project.

    Args:
        references: streams to be read once, for scoring several texts against them.
    """
    if metric == "bleu":
        # `force` only silences its own word about tokenised text: see `tokenised_remark`.
        return BLEU(tokenize=bleu_tokenizer(tgt_lang), references=references, force=True)
    if metric == "chrf":
        return CHRF(word_order=2, references=references)
    unspaced = _language(tgt_lang) in _UNSPACED
    return TER(normalized=unspaced, asian_support=unspaced, references=references)


def check_texts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse what `score` refuses."""
    if isinstance(hypotheses, str) or any(isinstance(stream, str) for stream in references):
        raise DataError(
            "score: takes a list of hypotheses and a list of reference streams, not a single text"
        )
    if not references:
        raise DataError("score: at least one stream of references is needed")
    if not hypotheses:
        raise DataError("score: there are no hypotheses to score")
    for number, stream in enumerate(references, start=1):
        if len(stream) != len(hypotheses):
            raise DataError(
                f"score: {len(hypotheses)} hypotheses but {len(stream)} references in stream {number}; "
                "both sides must have the same lines (several references are several streams)"
            )
