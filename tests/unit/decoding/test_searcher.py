"""The searcher with models of both architectures: prefixes, limits, draws, loop-safe searches, shortlists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_run import VOCAB, made_up_lines, random_run

from transformer_mt.checkpoint import LoadedRun, load_run
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding import shortlist as shortlist_module
from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.lexical_table import LINKS, LexicalTable
from transformer_mt.decoding.searcher import BANNED_IDS, Searcher, Sentence
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID

CPU = torch.device("cpu")


def _searcher(loaded: LoadedRun, shortlist: Shortlist | None = None, **options: Any) -> Searcher:
    values = {**loaded.recipe.decoding.model_dump(), "max_len_a": 0.5, "max_len_b": 6, **options}
    decoding = DecodingConfig.model_validate(values)
    return Searcher([loaded.model], decoding, CPU, invisible=(), shortlist=shortlist)


def _sentences(loaded: LoadedRun, count: int, prefix: tuple[int, ...] = ()) -> list[Sentence]:
    encoded = loaded.tokenizers.src.encode_batch(made_up_lines(count, seed=11))
    return [Sentence([*ids, EOS_ID], number, prefix) for number, ids in enumerate(encoded, start=1)]


def _token_log_probs(loaded: LoadedRun, sentence: Sentence, found: Hypothesis) -> list[float]:
    """Teacher-forced, of every token and eos."""
    src_ids = torch.tensor([sentence.src_ids])
    mask = torch.ones(1, 1, 1, src_ids.size(1), dtype=torch.bool)
    with torch.no_grad():
        hidden = loaded.model.hidden(src_ids, mask, torch.tensor([[BOS_ID, *found.token_ids]]))
        log_probs = loaded.model.project(hidden)[0].log_softmax(-1)
    labels = torch.tensor([*found.token_ids, EOS_ID])
    values: list[float] = log_probs.gather(1, labels[:, None])[:, 0].tolist()
    return values


def _repeats(ids: list[int], size: int) -> bool:
    ngrams = [tuple(ids[place : place + size]) for place in range(len(ids) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 4, "nbest": 4},
    {"beam_size": 1},
    {"temperature": 1.5, "nbest": 3},
]


@pytest.mark.parametrize("options", SEARCHES)
def test_every_hypothesis_begins_with_the_prefix(loaded: LoadedRun, options: dict[str, Any]) -> None:
    """Unlikely ids, and one twice: their log-probabilities count, and the number of hypotheses stays."""
    sentences = _sentences(loaded, 5, prefix=(300, 17, 17))
    for sentence, hypotheses in zip(sentences, _searcher(loaded, **options).search(sentences), strict=True):
        assert len(hypotheses) == options.get("nbest", 1)
        for found in hypotheses:
            assert found.token_ids[:3] == [300, 17, 17]
            values = _token_log_probs(loaded, sentence, found)
            assert found.score == pytest.approx(sum(values) / len(values), abs=1e-4)


def test_a_prefix_that_would_have_come_anyway_changes_nothing(loaded: LoadedRun) -> None:
    """Greedy search with the first half of its own translation: the same, bit for bit."""
    sentences = _sentences(loaded, 12)
    searcher = _searcher(loaded, beam_size=1)
    free = searcher.search(sentences)
    halves = [tuple(found[0].token_ids[: len(found[0].token_ids) // 2]) for found in free]
    forced = [Sentence(one.src_ids, one.number, half) for one, half in zip(sentences, halves, strict=True)]
    assert searcher.search(forced) == free
    assert len({len(half) for half in halves}) > 1


@pytest.mark.parametrize("options", SEARCHES)
def test_the_limit_leaves_room_behind_a_prefix(loaded: LoadedRun, options: dict[str, Any]) -> None:
    """A prefix counts in the length, and one token may follow it even where the limit is shorter."""
    for length, limit in ((1, 3), (3, 4), (9, 10)):
        searcher = _searcher(loaded, max_len_a=0, max_len_b=3, **options)
        lengths = set()
        for hypotheses in searcher.search(_sentences(loaded, 6, prefix=(40,) * length)):
            lengths |= {len(found.token_ids) for found in hypotheses}
            assert all(found.at_limit == (len(found.token_ids) == limit) for found in hypotheses)
        assert max(lengths) == limit


@pytest.mark.parametrize("token", [*BANNED_IDS, EOS_ID])
def test_a_prefix_of_special_tokens_is_refused(loaded: LoadedRun, token: int) -> None:
    """With the number of its line."""
    sentence = Sentence([9, EOS_ID], 7, (30, token))
    with pytest.raises(DataError, match=f"line 7: its prefix has the token {token}, which no translation"):
        _searcher(loaded).search([sentence])


def test_a_prefix_beyond_learned_positions_is_refused(tmp_path: Path) -> None:
    """bos before it and one token after it need places too."""
    model = {"preset": "tiny", "positions": "learned", "max_positions": 8}
    data = {"train": "a", "valid": "b", "src_lang": "de", "tgt_lang": "en", "max_length": 8}
    loaded = load_run(random_run(tmp_path / "short", model=model, data=data))
    searcher = _searcher(loaded)
    found = searcher.search([Sentence([9, EOS_ID], 1, (30,) * 6)])[0][0]
    assert len(found.token_ids) in (6, 7)
    with pytest.raises(DataError, match="line 4: its prefix has 7 tokens, .* positions end at 8; shorten"):
        searcher.search([Sentence([9, EOS_ID], 4, (30,) * 7)])
    assert (
        len(_searcher(loaded, min_length=7, max_len_b=9).search([Sentence([9, EOS_ID], 1)])[0][0].token_ids)
        == 7
    )
    with pytest.raises(ConfigError, match="min_length 8: .* positions end a translation at 7 tokens; lower"):
        _searcher(loaded, min_length=8)


@pytest.mark.parametrize("options", SEARCHES)
@pytest.mark.parametrize(("size", "safe_size"), [(0, 3), (2, 2), (5, 3)])
def test_a_loop_safe_search_repeats_no_three_tokens(
    loaded: LoadedRun, options: dict[str, Any], size: int, safe_size: int
) -> None:
    """B059: a model that loves two tokens says them for ever; with the stricter of 3 and what is set it does
    not, nor does it where the source does ("ha ha ha ha")."""
    with torch.no_grad():
        loaded.model.output_weight[[50, 51]] *= 6.0
    ha = loaded.tokenizers.src.encode("ha " * 12)
    sentences = [*_sentences(loaded, 4), Sentence([*ha, EOS_ID], 5)]
    searcher = _searcher(loaded, no_repeat_ngram=size, max_len_b=12, **options)
    plain, safe = searcher.search(sentences), searcher.search(sentences, loop_safe=True)
    for hypotheses, wanted in ((plain, size), (safe, safe_size)):
        assert not any(_repeats(found.token_ids, wanted) for beam in hypotheses for found in beam if wanted)
    if not size and not searcher.decoding.temperature:
        assert any(_repeats(found.token_ids, 3) for beam in plain for found in beam)
    assert searcher.search(sentences) == plain


def test_samples_are_in_the_order_in_which_they_are_drawn(loaded: LoadedRun) -> None:
    """The first of five samples is the only one of one; all five may differ, and none is better placed."""
    sentences = _sentences(loaded, 6)
    five = _searcher(loaded, temperature=1.3, nbest=5, beam_size=1).search(sentences)
    one = _searcher(loaded, temperature=1.3, nbest=1).search(sentences)
    assert [found[:1] for found in five] == one
    assert all(len(found) == 5 for found in five)
    assert any(found[0].score < found[1].score for found in five)
    other = _searcher(loaded, temperature=1.3, seed=2).search(sentences)
    assert other != one


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_draws_in_half_precision_are_scored_by_the_exact_output_matrix(
    loaded: LoadedRun, precision: str
) -> None:
    """The rough matrix proposes candidates of a search; what is drawn has its own log-probability."""
    sentences = _sentences(loaded, 4)
    searcher = _searcher(loaded, temperature=1.0, nbest=2, precision=precision)
    for sentence, (found, other) in zip(sentences, searcher.search(sentences), strict=True):
        values = _token_log_probs(loaded, sentence, found)
        assert found.score == pytest.approx(sum(values) / len(values), abs=0.03)
        assert found.token_ids != other.token_ids


def _shortlist() -> Shortlist:
    draw = np.random.default_rng(1)
    best = draw.integers(4, VOCAB, (VOCAB, LINKS), dtype=np.int32)
    table = LexicalTable(best, draw.permutation(VOCAB).astype(np.int32))
    return Shortlist(table, 3, shared=False, eos_id=EOS_ID, banned=BANNED_IDS, device=CPU)


@pytest.mark.parametrize("options", [*SEARCHES, {"precision": "bf16"}])
def test_a_shortlist_takes_the_prefix_in(
    loaded: LoadedRun, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids that are in no shortlist come where they are forced, and no n-gram twice and no penalty on others
    means that columns are told from ids; neighbours with other prefixes change no bit."""
    # So many that a prefix makes shortlists longer: a neighbour's must not.
    monkeypatch.setattr(shortlist_module, "FREQUENT", 30)
    shortlist = _shortlist()
    sentences = _sentences(loaded, 8)
    chosen = [shortlist.choose(torch.tensor([one.src_ids])) for one in sentences]
    outside = [set(range(4, VOCAB)) - set(one.ids[0].tolist()) for one in chosen if one is not None]
    assert len(outside) == len(sentences)
    prefixes = [tuple(sorted(ids)[: number % 4]) for number, ids in enumerate(outside)]
    forced = [
        Sentence(one.src_ids, one.number, prefix) for one, prefix in zip(sentences, prefixes, strict=True)
    ]
    given = {"no_repeat_ngram": 1, "repetition_penalty": 1.5, **options}
    searcher = _searcher(loaded, shortlist, **given)
    results = searcher.search(forced)
    for prefix, hypotheses in zip(prefixes, results, strict=True):
        for found in hypotheses:
            assert tuple(found.token_ids[: len(prefix)]) == prefix
            assert len(set(found.token_ids)) == len(found.token_ids)
    if options.get("precision") != "bf16":
        assert [searcher.search([one])[0] for one in forced] == results
