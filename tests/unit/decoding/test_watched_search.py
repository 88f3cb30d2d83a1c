"""What looks wrong is searched for again, and the better of the two is kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from random_run import made_up_lines

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.beam_search import NO_ROOM, Hypothesis
from transformer_mt.decoding.parts import Part
from transformer_mt.decoding.searcher import Sentence
from transformer_mt.decoding.translation import Candidate, Translation
from transformer_mt.decoding.translator import Translator
from transformer_mt.decoding.watched_search import WatchedSearch, better
from transformer_mt.text.proportion import Proportion
from transformer_mt.text.tokenizer import Tokenizers
from transformer_mt.text.trained_on import TrainedOn


class Scripted:
    """A searcher that says for every number of a line what it was told to, at first and when loop-safe."""

    def __init__(self, said: dict[int, tuple[Hypothesis, Hypothesis]], **decoding: object) -> None:
        self.said = said
        self.decoding = DecodingConfig.model_validate(decoding)
        self.asked: list[tuple[bool, list[int]]] = []

    def search(self, sentences: Sequence[Sentence], *, loop_safe: bool = False) -> list[list[Hypothesis]]:
        self.asked.append((loop_safe, [one.number for one in sentences]))
        return [[self.said[one.number][loop_safe]] for one in sentences]


def _search(
    tokenizers: Tokenizers, said: dict[int, tuple[str, str]], **decoding: object
) -> tuple[list[Translation], Scripted]:
    def hypothesis(text: str, score: float) -> Hypothesis:
        return NO_ROOM if text == "no room" else Hypothesis(tokenizers.tgt.encode(text), score, False)

    told = {
        number: (hypothesis(first, -1.0), hypothesis(second, -2.0))
        for number, (first, second) in said.items()
    }
    searcher = Scripted(told, **decoding)
    parts = [Part("ab de", 0, "ab de", Sentence([5, 6, 3], number)) for number in told]
    return WatchedSearch(searcher, tokenizers, None).search(parts), searcher  # type: ignore[arg-type]


LOOP, FINE = "no no no no", "fine"


def test_only_what_looks_wrong_is_searched_for_twice(loaded: LoadedRun) -> None:
    """B059: a loop is replaced; what still loops keeps the first, better score; nothing else is touched."""
    said = {1: (FINE, "x"), 2: (LOOP, FINE), 3: (LOOP, LOOP), 4: ("no room", "x"), 5: (LOOP, "no room")}
    found, searcher = _search(loaded.tokenizers, said)
    assert [one.text for one in found] == [FINE, FINE, LOOP, "", LOOP]
    assert [one.flags for one in found] == [(), (), ("loop",), ("memory",), ("loop",)]
    assert [one.retried for one in found] == [False, True, True, False, True]
    assert found[2].score == -1.0
    assert searcher.asked == [(False, [1, 2, 3, 4, 5]), (True, [2, 3, 5])]


@pytest.mark.parametrize("off", [{"retry": False}, {"no_repeat_ngram": 3}, {"no_repeat_ngram": 1}])
def test_no_second_search_where_none_is_wanted_or_it_would_be_the_same(
    loaded: LoadedRun, off: dict[str, object]
) -> None:
    """Flagged all the same."""
    found, searcher = _search(loaded.tokenizers, {1: (LOOP, FINE)}, **off)
    assert (found[0].text, found[0].flags, found[0].retried) == (LOOP, ("loop",), False)
    assert len(searcher.asked) == 1
    assert len(_search(loaded.tokenizers, {1: (LOOP, FINE)}, no_repeat_ngram=4)[1].asked) == 2


def test_the_length_limit_is_a_sign_too(loaded: LoadedRun) -> None:
    """A translation that the limit ended lacks its end."""
    decoding = DecodingConfig(beam_size=2, max_len_a=0.0, max_len_b=2)
    translator = Translator([loaded.model], loaded.tokenizers, decoding)
    for one in translator.translate(made_up_lines(5, seed=1)):
        assert ("limit" in one.flags) == one.at_limit
        assert one.retried == bool(one.flags)


def test_a_line_whose_parts_all_say_the_same_loops(
    loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B059: no part looks wrong, but their line does, unless its sentences are the same too. Its length is
    judged in parts alone: as one sentence it would be too short by these proportions."""
    steep = TrainedOn(20, 1, Proportion(-6.0, 3.0, short=-2.0, unfinished=-2.0, long=2.0))
    said = [Hypothesis(loaded.tokenizers.tgt.encode("abd eik lm nor stu."), -1.0, False)]
    translator = Translator([loaded.model], loaded.tokenizers, DecodingConfig(), trained_on=steep)
    monkeypatch.setattr(translator._searcher, "search", lambda parts, *, loop_safe=False: [said] * len(parts))
    sentences = ["Kim dal ist auf.", "Ab nur sie kam.", "Wo mein Rad ist.", "Er lobt das eis.", "Nie so tun."]
    found = translator.translate([*sentences, " ".join(sentences), " ".join(sentences[:1] * 5)])
    assert [one.flags for one in found] == [()] * 5 + [("loop",), ()]
    assert (found[5].num_parts, found[5].retried) == (5, False)
    usual = Translator(
        [loaded.model], loaded.tokenizers, DecodingConfig(), trained_on=TrainedOn(20, 1, usual=("loop",))
    )
    monkeypatch.setattr(usual._searcher, "search", lambda parts, *, loop_safe=False: [said] * len(parts))
    assert usual.translate([" ".join(sentences)])[0].flags == ()


def test_fewer_flags_are_better_and_then_the_score() -> None:
    def made(score: float, *flags: str) -> Translation:
        return Translation([Candidate("x", score, [5], False)], 1, flags=flags)

    bad, worse, good = made(-1.0, "loop"), made(-0.5, "loop", "long"), made(-9.0)
    assert better(worse, bad) is bad
    assert better(bad, good) is good
    assert better(bad, made(-0.9, "copy")).flags == ("copy",)
    assert better(bad, made(-1.0, "copy")) is bad
    assert better(worse, made(0.0, "memory")) is worse
