"""Lines in, lines out: blank lines, order, limits, precision, ensembles."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from random_run import made_up_lines, random_run
from torch import Tensor

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import CheckpointError, ConfigError, DataError
from transformer_mt.model.protocol import EncoderOutput
from transformer_mt.runtime.device import int8_features
from transformer_mt.text.lines import is_blank
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.text.trained_on import TrainedOn
from transformer_mt.text.words import needs_no_space, unit_spans


def _translator(loaded: LoadedRun, *, trained_on: TrainedOn | None = None, **options: object) -> Translator:
    decoding = DecodingConfig.model_validate({**loaded.recipe.decoding.model_dump(), **options})
    return Translator([loaded.model], loaded.tokenizers, decoding, trained_on=trained_on)


BLANKS = ["", " ", "\t ", "\u00a0", "\u3000\u3000", "\u200b\u2060", "\ufeff", "\x0b\x0c", "\u2028", "\x85"]


def test_blank_lines_stay_blank_and_the_rest_in_place(loaded: LoadedRun) -> None:
    """B006, B013, B014, B016: blank lines of every kind, alone, in a row and among others."""
    lines = made_up_lines(7, seed=4)
    translator = _translator(loaded)
    alone = [translator.translate([line])[0] for line in lines]
    mixed = [*BLANKS, lines[0], "", "", *lines[1:], "\u00a0"]
    found = translator.translate(mixed)
    assert [item.text == "" for item in found] == [is_blank(line) for line in mixed]
    full = [item for line, item in zip(mixed, found, strict=True) if not is_blank(line)]
    assert [(item.text, item.score) for item in full] == [(item.text, item.score) for item in alone]
    assert [item.text for item in translator.translate(BLANKS)] == [""] * len(BLANKS)
    assert translator.translate([]) == []
    assert found[0].num_src_tokens == 0
    assert full[0].num_src_tokens == len(loaded.tokenizers.src.encode(lines[0]))


def test_the_model_never_sees_blank_lines(loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model shown nothing but eos invents text."""

    def refuse(src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        raise AssertionError("the model was called")

    monkeypatch.setattr(loaded.model, "encode", refuse)
    assert [item.text for item in _translator(loaded).translate(BLANKS)] == [""] * len(BLANKS)


@pytest.mark.parametrize(
    ("text", "blank"), [("", True), ("\u200d\u00ad", True), ("\x00", True), ("a\u200b", False), ("。", False)]
)
def test_blank_means_nothing_to_see(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


@pytest.mark.parametrize("beam_size", [1, 3])
def test_odd_input_gets_one_visible_line_within_its_limit(loaded: LoadedRun, beam_size: int) -> None:
    """B059, B061, B026, B036: no crash, no empty line, no special token, no line break, no more tokens than
    allowed. The model is random: whatever it says, these hold."""
    lines = [
        "ok",
        "!!!!!",
        "http://a.b/c",
        "ААА",
        "😀",
        "</s> <pad>",
        "a\u2028b",
        "x\x00y",
        "\u2581",
        "wort " * 60,
    ]
    translator = _translator(loaded, beam_size=beam_size, max_len_a=0.5, max_len_b=2)
    for line, item in zip(lines, translator.translate(lines), strict=True):
        assert not is_blank(item.text)
        assert "\n" not in item.text
        assert "\r" not in item.text
        assert "⁇" not in item.text
        assert 1 <= len(item.ids) <= max(int(0.5 * len(loaded.tokenizers.src.encode(line))) + 2, 1)
        assert min(item.ids) >= 4
        assert item.at_limit == (len(item.ids) == int(0.5 * item.num_src_tokens) + 2)


def test_scores_are_log_probabilities_over_length(loaded: LoadedRun) -> None:
    """B067, B071: the score of every hypothesis, from the teacher-forced model, eos counted. Beams whose
    cache did not follow them would differ."""
    lines = made_up_lines(6, seed=8)
    for line, item in zip(
        lines, _translator(loaded, nbest=3, length_penalty=0.8).translate(lines), strict=True
    ):
        src_ids = torch.tensor([[*loaded.tokenizers.src.encode(line), 3]])
        for candidate in item.nbest:
            inputs = torch.tensor([[2, *candidate.ids]])
            mask = torch.ones(1, 1, 1, src_ids.size(1), dtype=torch.bool)
            with torch.no_grad():
                hidden = loaded.model.hidden(src_ids, mask, inputs)
                log_probs = loaded.model.project(hidden)[0].log_softmax(-1)
            total = log_probs.gather(1, torch.tensor([*candidate.ids, 3])[:, None]).sum()
            length = len(candidate.ids) + 1
            assert candidate.score == pytest.approx(float(total) / length**0.8, abs=1e-4)


def test_a_line_too_long_for_learned_positions_is_split_or_named(tmp_path: Path) -> None:
    """B052: it comes out in parts, between neighbours as they are alone; where nothing may be split it is
    named before anything is translated. No translation runs past the positions."""
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 48, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = {**sizes, "positions": "learned", "max_positions": 12}
    data = {"train": "t", "valid": "v", "src_lang": "de", "tgt_lang": "en", "max_length": 12}
    run = random_run(tmp_path / "learned", model=model, data=data)
    translator = Translator.load(run, device="cpu", max_len_b=50)
    lines = ["abd", "wort " * 30, "eik", "x" * 2000]
    found = translator.translate(lines)
    assert [item.num_parts > 1 for item in found] == [False, True, False, True]
    assert [found[place].text for place in (0, 2)] == [
        translator.translate([lines[p]])[0].text for p in (0, 2)
    ]
    assert all(len(item.ids) < 12 * item.num_parts for item in found)
    whole = Translator.load(run, device="cpu", split_long=False)
    with pytest.raises(DataError, match=r"line 12: has \d+ tokens with eos, .* end at 12; split the line"):
        whole.translate(lines, first_line=11)


def test_long_lines_are_translated_whole_with_sinusoidal_positions(loaded: LoadedRun) -> None:
    """B009, B054: a line of over 1,100 tokens between short ones takes no neighbour with it."""
    lines = ["abd eik", "wort " * 300, "lm nor"]
    translator = _translator(loaded, beam_size=2, max_len_a=0.01, max_len_b=3)
    found = translator.translate(lines)
    assert found[1].num_src_tokens > 600
    assert [item.text for item in found[::2]] == [translator.translate([line])[0].text for line in lines[::2]]


def test_a_batch_that_does_not_fit_into_memory_is_halved(
    loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B055: every line comes out as if there had been room; one that does not fit alone is left empty."""
    lines = made_up_lines(16, seed=2)
    expected = [item.text for item in _translator(loaded).translate(lines)]
    encode = loaded.model.encode
    room = 16 * 4

    def tight(src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        if src_ids.numel() > room:
            raise torch.OutOfMemoryError("no room")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(loaded.model, "encode", tight)
    assert [item.text for item in _translator(loaded, batch_size=16).translate(lines)] == expected
    room = 0
    found = _translator(loaded).translate(["", "", "abd"])[2]
    assert (found.text, found.flags, found.retried) == ("", ("memory",), False)


def test_the_model_is_left_in_the_mode_it_was_in(loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """B128: dropout off while translating, and afterwards as before, also when translating fails."""
    modes = []
    encode = loaded.model.encode

    def watched(src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        modes.append(loaded.model.training)
        if len(modes) == 2:
            raise KeyboardInterrupt
        return encode(src_ids, src_mask)

    monkeypatch.setattr(loaded.model, "encode", watched)
    loaded.model.train()
    translator = _translator(loaded, retry=False)
    translator.translate(["abd"])
    assert loaded.model.training
    with pytest.raises(KeyboardInterrupt):
        translator.translate(["abd"])
    assert loaded.model.training
    assert modes == [False, False]


NARROW = [
    "bf16",
    pytest.param("int8", marks=pytest.mark.skipif(not int8_features(), reason="this processor has no int8")),
]


@pytest.mark.parametrize("precision", NARROW)
def test_another_precision_follows_the_weights_of_a_model_in_training(
    loaded: LoadedRun, precision: str
) -> None:
    """A copy made once would validate the weights of the first step for ever."""
    lines = made_up_lines(5, seed=6)
    translator = _translator(loaded, precision=precision)
    before = [item.text for item in translator.translate(lines)]
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.copy_(weight.flip(0))
    after = [item.text for item in translator.translate(lines)]
    assert after != before
    assert after == [item.text for item in _translator(loaded, precision=precision).translate(lines)]
    assert all(weight.dtype == torch.float32 for weight in loaded.model.parameters())


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("tied", ["three_way", "none"])
def test_narrow_numbers_translate_mostly_like_fp32(tmp_path: Path, precision: str, tied: str) -> None:
    """The fast lanes load and run; random weights leave texts alone comparable by their scores."""
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 48, "num_encoder_layers": 1, "num_decoder_layers": 1}
    run = random_run(tmp_path / "run", model={**sizes, "tied_embeddings": tied})
    lines = made_up_lines(6, seed=6)
    plain = Translator.load(run, device="cpu").translate(lines)
    fast = Translator.load(run, device="cpu", precision=precision).translate(lines)
    together = Translator.load(run, run, device="cpu", precision=precision).translate(lines)
    for one, *others in zip(plain, fast, together, strict=True):
        for other in others:
            assert one.score == pytest.approx(other.score, rel=0.05)
    assert [item.score for item in fast] != [item.score for item in plain]


@pytest.mark.skipif(not int8_features(), reason="this processor has no int8")
@pytest.mark.parametrize("beam_size", [1, 4])
def test_int8_texts_do_not_depend_on_neighbours(loaded: LoadedRun, beam_size: int) -> None:
    """Every row has a scale of its own, and sums of integers are exact: as in fp32, bit for bit."""
    lines = made_up_lines(30, seed=7)
    outcomes = []
    for batch_size, texts in [(64, lines), (1, lines), (7, lines), (64, lines[::-1])]:
        translator = _translator(loaded, precision="int8", beam_size=beam_size, batch_size=batch_size)
        found = translator.translate(texts)
        outcomes.append([(item.text, item.score) for item in (found if texts is lines else found[::-1])])
    assert outcomes[0] == outcomes[1] == outcomes[2] == outcomes[3]


def test_n_best_texts_differ_though_their_tokens_spell_the_same(loaded: LoadedRun) -> None:
    """B069: two segmentations of one text are one entry, the better."""
    translator = _translator(loaded, beam_size=6, nbest=6, max_len_a=0.0, max_len_b=2)
    for item in translator.translate(made_up_lines(8, seed=3)):
        texts = [candidate.text for candidate in item.nbest]
        assert len(set(texts)) == len(texts) > 1
        assert [c.score for c in item.nbest] == sorted((c.score for c in item.nbest), reverse=True)
        assert item.text == texts[0]


def test_an_ensemble_of_a_model_with_itself_is_that_model(run: Path) -> None:
    """And one of two models is neither; runs with different tokenizers are refused."""
    lines = made_up_lines(6, seed=1)

    def texts(*runs: Path) -> Sequence[tuple[str, float]]:
        return [(item.text, item.score) for item in Translator.load(*runs, device="cpu").translate(lines)]

    other = random_run(run.parent / "other", seed=9)
    alone, twice = texts(run), texts(run, run)
    assert [text for text, _ in twice] == [text for text, _ in alone]
    assert [score for _, score in twice] == pytest.approx([score for _, score in alone], abs=1e-5)
    assert texts(run, other) not in (texts(run), texts(other))
    stranger = random_run(run.parent / "stranger", tokenizer_seed=2)
    with pytest.raises(
        CheckpointError, match="stranger: has another tokenizer than .*one; only runs with equal"
    ):
        Translator.load(run, stranger, device="cpu")


def test_wrong_arguments_are_refused(run: Path, loaded: LoadedRun) -> None:
    """One str is a sequence of characters: it would come back as one line per character."""
    with pytest.raises(TypeError, match="takes a list of lines, but was given one str"):
        _translator(loaded).translate("abd")
    with pytest.raises(ConfigError, match="--beam-size: .*greater than or equal to 1"):
        Translator.load(run, device="cpu", beam_size=0)
    with pytest.raises(ConfigError, match="--nbest: .*must not exceed `beam_size`"):
        Translator.load(run, device="cpu", nbest=9)


def test_a_line_that_exceeds_the_memory_is_left_empty(
    loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B055: named in a warning; the CPU's allocator has no error class of its own, and other errors of torch
    are faults of ours. A line with one part too many has no translation either."""
    encode = loaded.model.encode

    def fail(src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        if src_ids.size(1) > 8:
            raise RuntimeError(problem)
        return encode(src_ids, src_mask)

    monkeypatch.setattr(loaded.model, "encode", fail)
    problem = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
    long = "abdeik" * 8
    facts = TrainedOn(99, sentences=1)
    found = _translator(loaded, trained_on=facts, retry=False).translate(["", "a", long, f"b. {long}. c"])
    assert [item.text == "" for item in found] == [True, False, True, True]
    assert [item.flags for item in found[2:]] == [("memory",)] * 2
    assert found[3].num_parts == 2
    assert re.search(r"line 3: its \d+ tokens do not fit into the memory of the device", caplog.text)
    keeping = Translator([loaded.model], loaded.tokenizers, loaded.recipe.decoding, protect=[r"%\d"])
    assert keeping.translate([f"{long} %1"])[0].text == ""
    problem = "shapes differ"
    with pytest.raises(RuntimeError, match="shapes differ"):
        _translator(loaded).translate([long])


@pytest.mark.parametrize("wanted", [{"token_scores": True}, {"alignment": "mean"}, {"protect": [r"%\d"]}])
def test_a_line_that_exceeds_the_memory_of_a_second_pass_is_left_empty(
    loaded: LoadedRun,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    wanted: dict[str, Any],
) -> None:
    """B055: all positions at once take more than the search did; the line is flagged, its neighbours stay.
    One that did not fit in the search is no matter of the second pass."""
    model, long = loaded.model, "abdeik " * 9 + "%1"
    decoding = loaded.recipe.decoding.model_copy(update={"nbest": 2, "beam_size": 2})
    translator = Translator([model], loaded.tokenizers, decoding, **wanted)
    before = translator.translate(["a %1", "b"])
    for name, most in (("encode", 200), ("hidden", 16), ("cross_attention", 16)):
        whole = getattr(model, name)

        def fail(src_ids: Tensor, *rest: Any, whole: Any = whole, most: int = most) -> Any:
            if src_ids.size(1) > most:
                raise torch.OutOfMemoryError
            return whole(src_ids, *rest)

        monkeypatch.setattr(model, name, fail)
    found = translator.translate(["a %1", long * 9, long, "b"])
    assert [found[0], found[3]] == before
    assert [(one.text, one.flags, len(one.nbest)) for one in found[1:3]] == [("", ("memory",), 1)] * 2
    assert re.search(r"line 2: its \d+ tokens do not fit", caplog.text)
    assert re.search(r"line 3: a second pass over its \d+ source tokens does not fit", caplog.text)
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("beam_size", [1, 3])
def test_weights_that_are_not_finite_are_an_error_of_the_checkpoint(
    loaded: LoadedRun, beam_size: int
) -> None:
    """Pins an IndexError, and a greedy search without end, on a model that diverged: nothing is probable."""
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.fill_(float("nan"))
    translator = _translator(loaded, beam_size=beam_size)
    with pytest.raises(CheckpointError, match="gives no finite probabilities in fp32"):
        translator.translate(["some text"])


FACTS = TrainedOn(12, sentences=1)


def test_a_long_line_is_its_parts(loaded: LoadedRun) -> None:
    """B054: sentences of a line are what they are alone, joined; parts that show nothing are left out.
    What is not long, or may not be split, stays whole."""
    translator = _translator(loaded, trained_on=FACTS)
    alone = [item.text for item in translator.translate(["Abd eik.", "Ist lm?", "Nor!"])]
    line, blanks, short = translator.translate(
        ["Abd eik. Ist lm?  Nor!", "Abd eik. " + "\u200b " * 40 + "Nor!", "Abd eik."]
    )
    assert line.text == " ".join(alone)
    assert (line.num_parts, short.num_parts) == (3, 1)
    assert 2 <= blanks.num_parts <= 4
    assert line.num_src_tokens == sum(
        len(loaded.tokenizers.src.encode(t)) for t in ("Abd eik.", "Ist lm?", "Nor!")
    )
    whole = _translator(loaded, trained_on=FACTS, split_long=False).translate(["Abd eik. Ist lm?  Nor!"])[0]
    assert (whole.num_parts, whole.text) != (3, line.text)
    assert whole.num_parts == 1


def test_candidates_of_a_long_line(loaded: LoadedRun) -> None:
    """The i-th ones of the parts together; eos between the ids; the score is that of all tokens, and their
    scores add up to it."""
    decoding = DecodingConfig(beam_size=4, nbest=3, length_penalty=0.7, max_len_a=0.5, retry=False)
    translator = Translator([loaded.model], loaded.tokenizers, decoding, trained_on=FACTS, token_scores=True)
    first, second, line = translator.translate(["Abd eik.", "Ist lm?", "Abd eik. Ist lm?"])
    assert [one.text for one in line.nbest] == [
        f"{a.text} {b.text}" for a, b in zip(first.nbest, second.nbest, strict=True)
    ]
    for one, a, b in zip(line.nbest, first.nbest, second.nbest, strict=True):
        assert one.ids == [*a.ids, 3, *b.ids]
        assert one.token_scores is not None
        assert len(one.token_scores) == len(one.ids) + 1
        assert one.score == pytest.approx(sum(one.token_scores) / (len(one.ids) + 1) ** 0.7, abs=1e-5)


def test_equal_parts_of_a_line_are_drawn_apart(loaded: LoadedRun) -> None:
    """Four equal sentences of one line: each draws for itself, the same in any batch and company."""
    line, other = "Abd eik. " * 4, "Ist lm? Nor!"
    translator = _translator(loaded, trained_on=FACTS, temperature=1.3, max_len_b=6, retry=False)
    (alone,) = translator.translate([line], first_line=2)
    eos = [-1, *(place for place, token in enumerate(alone.ids) if token == EOS_ID), len(alone.ids)]
    drawn = {tuple(alone.ids[start + 1 : end]) for start, end in itertools.pairwise(eos)}
    assert len(drawn) == alone.num_parts == 4
    single = _translator(loaded, trained_on=FACTS, temperature=1.3, max_len_b=6, retry=False, batch_size=1)
    assert translator.translate([other, line])[1] == single.translate([other, line])[1] == alone


def test_alignments_of_a_long_line_count_its_words(loaded: LoadedRun) -> None:
    """The links of the parts, the second one's moved behind the first one's words."""
    decoding = DecodingConfig(beam_size=2, max_len_a=0.5, retry=False)
    translator = Translator([loaded.model], loaded.tokenizers, decoding, trained_on=FACTS, alignment="mean")
    first, second, line = (
        one.nbest[0] for one in translator.translate(["Abd eik.", "Ist lm?", "Abd eik. Ist lm?"])
    )
    assert first.alignment
    assert second.alignment
    assert line.alignment is not None
    words = len(unit_spans(first.text))
    assert set(line.alignment) >= set(first.alignment)
    if not needs_no_space(first.text[-1]) and not needs_no_space(second.text[0]):
        moved = [(src + 2, tgt + words) for src, tgt in second.alignment]
        assert line.alignment == [*first.alignment, *moved]


def test_prefixes_begin_translations(loaded: LoadedRun) -> None:
    """Of a line in parts the first one's; a blank line stays blank; no prefix is the plain search."""
    translator = _translator(loaded, trained_on=FACTS, retry=False)
    lines = ["Abd eik.", "Abd eik. Ist lm?", " ", "Nor!"]
    found = translator.translate(lines, prefixes=["kom da", "kom da", "kom da", ""])
    assert [item.text.startswith("kom da") for item in found] == [True, True, False, False]
    assert found[2].text == ""
    plain = translator.translate(["Ist lm?", "Nor!"])
    assert found[1].text == f"{found[0].text} {plain[0].text}"
    assert found[3].text == plain[1].text
    assert translator.translate(["Abd"], prefixes=["\u2581kom \u2581 da\u2581"])[0].text.startswith(
        "\u2581kom \u2581 da\u2581"
    )


def test_entities_are_characters_to_the_model(loaded: LoadedRun) -> None:
    """With tags the line is that of the characters, found in the same way, and written as markup."""
    read = _translator(loaded).translate(["abd & eik"], prefixes=["a & b"])[0]
    decoding = DecodingConfig.model_validate(_translator(loaded).decoding.model_dump())
    translator = Translator([loaded.model], loaded.tokenizers, decoding, tags=True)
    found = translator.translate(["abd &amp; eik"], prefixes=["a & b"])[0]
    assert (found.nbest[0].ids, found.nbest[0].score) == (read.nbest[0].ids, read.nbest[0].score)
    rest = read.text.removeprefix("a & b").replace("&", "&amp;").replace("<", "&lt;")
    assert found.text == f"a & b{rest}"


def test_what_must_stay_is_put_back(loaded: LoadedRun) -> None:
    """Placeholders and tags of a random model's lines, also of one in parts and of n-best lists; a line of
    nothing else is not translated."""
    decoding = DecodingConfig(beam_size=3, nbest=2, max_len_a=0.5)
    translator = Translator(
        [loaded.model], loaded.tokenizers, decoding, trained_on=FACTS, protect=[r"%\d"], tags=True
    )
    lines = ["Abd %1 <b>eik</b>.", "Abd %1. Ist <i>lm</i> %2?", "<p>%1</p>", "<b> </b>"]
    found = translator.translate(lines)
    for one in (one for item in found[:2] for one in item.nbest):
        assert "%1" in one.text
    assert all("<b>" in one.text and "</b>" in one.text for one in found[0].nbest)
    assert all("%2" in one.text and "<i>" in one.text for one in found[1].nbest)
    assert [item.text for item in found[2:]] == lines[2:]
    assert found[0].nbest[0].alignment is None
