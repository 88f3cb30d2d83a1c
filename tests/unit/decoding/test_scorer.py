"""Scores of given translations: those of the search, whatever batch they are in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from random_run import made_up_lines, random_run
from small_models import small_config

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding import scorer as scorer_module
from transformer_mt.decoding import teacher_forcing
from transformer_mt.decoding.scorer import Scorer, token_scores
from transformer_mt.decoding.searcher import Searcher, Sentence
from transformer_mt.decoding.teacher_forcing import Pair
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import CheckpointError, DataError
from transformer_mt.model.build import Model, build_model
from transformer_mt.model.masks import padding_mask
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID

CPU = torch.device("cpu")
LINES = [*made_up_lines(12, seed=8), "日本 abe"]


def _decoding(**options: object) -> DecodingConfig:
    return DecodingConfig.model_validate({"max_len_a": 0.5, "max_len_b": 4, "retry": False, **options})


def _second(loaded: LoadedRun) -> Model:
    """Another model of the same architecture and vocabulary."""
    torch.manual_seed(11)
    return build_model(loaded.recipe.model, 340, 340).eval()


@pytest.mark.parametrize(
    ("beam_size", "alpha", "ensemble"), [(1, 1.0, False), (4, 0.6, False), (3, 1.0, True)]
)
def test_ids_of_a_search_get_the_score_of_the_search(
    loaded: LoadedRun, beam_size: int, alpha: float, ensemble: bool
) -> None:
    """To 1e-5, for all candidates (B067, B071): a state that does not follow its beams, a length without eos
    or probabilities averaged in another way show at once."""
    models = [loaded.model, *[_second(loaded)] * ensemble]
    decoding = _decoding(beam_size=beam_size, length_penalty=alpha, nbest=min(beam_size, 3))
    translations = Translator(models, loaded.tokenizers, decoding).translate(LINES)
    pairs, expected = [], []
    for line, translation in zip(LINES, translations, strict=True):
        for candidate in translation.nbest:
            pairs.append(Pair([*loaded.tokenizers.src.encode(line), EOS_ID], candidate.ids))
            expected.append(candidate.score)
    scores = token_scores(models, pairs, device=CPU, batch_size=8)
    assert [len(one) for one in scores] == [len(pair.tgt_ids) + 1 for pair in pairs]
    found = [sum(one) / len(one) ** alpha for one in scores]
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_texts_get_the_score_of_a_search_that_spells_them_alike(loaded: LoadedRun, beam_size: int) -> None:
    """As searches do of which all but the last token is forced; a text of other tokens is cut anew."""
    decoding = _decoding(beam_size=beam_size, length_penalty=0.8, max_len_a=0.0, max_len_b=1)
    src_ids, prefixes = [[*row, EOS_ID] for row in loaded.tokenizers.src.encode_batch(LINES)], LINES[::-1]
    sentences = [
        Sentence(row, 1, tuple(loaded.tokenizers.tgt.encode(prefix)))
        for row, prefix in zip(src_ids, prefixes, strict=True)
    ]
    searcher = Searcher([loaded.model], decoding, CPU, invisible=[])
    found = [row[0] for row in searcher.search(sentences)]
    texts = [loaded.tokenizers.tgt.decode(one.token_ids) for one in found]
    scorer = Scorer([loaded.model], loaded.tokenizers, decoding)
    same = 0
    for one, text, scored in zip(
        found, texts, scorer.score(list(zip(LINES, texts, strict=True))), strict=True
    ):
        assert scored.ids == [*loaded.tokenizers.tgt.encode(text), EOS_ID]
        assert scored.log_prob == pytest.approx(sum(scored.token_scores))
        assert scored.score == pytest.approx(scored.log_prob / len(scored.ids) ** 0.8)
        if scored.ids == [*one.token_ids, EOS_ID]:
            same += 1
            assert scored.score == pytest.approx(one.score, abs=1e-5)
    assert same >= 4


def test_one_pair_by_hand() -> None:
    """Log-softmax of the logits of every position, without batches or padding; two models: the mean of their
    probabilities."""
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        models.append(build_model(small_config("lstm"), 31, 31).eval())
    src, tgt = torch.tensor([[5, 6, 7, EOS_ID]]), [9, 8]
    probs = []
    for model in models:
        hidden = model.hidden(src, padding_mask(src, 0), torch.tensor([[BOS_ID, *tgt]]))
        probs.append(model.project(hidden)[0].softmax(-1))  # (3, V)
    expected = ((probs[0] + probs[1]) / 2).log()[torch.arange(3), torch.tensor([*tgt, EOS_ID])]
    found = token_scores(models, [Pair(src[0].tolist(), tgt)], device=CPU, batch_size=4)
    torch.testing.assert_close(torch.tensor(found[0]), expected.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"architecture": "transformer", "positions": "rotary"},
        {"architecture": "lstm"},
        {"architecture": "lstm", "attention": "additive", "input_feeding": True},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_batch_size_and_neighbours_do_not_matter(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit (B074), whether the logits fit at once or not, and for pairs too long to have company."""
    torch.manual_seed(3)
    sizes = {"d_model": 96, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = build_model(small_config(**{**sizes, **options}), 340, 340).eval()
    monkeypatch.setattr(teacher_forcing, "_ALONE_FROM", 33)
    draw = random.Random(4)

    def ids(most: int) -> list[int]:
        return [draw.randrange(4, 340) for _ in range(draw.randrange(most))]

    pairs = [Pair([*ids(most), EOS_ID], ids(most)) for most in [12] * 20 + [24] * 8 + [50] * 4]

    def scores(batch_size: int, of: list[Pair]) -> list[list[float]]:
        return token_scores([model], of, device=CPU, batch_size=batch_size)

    expected = scores(64, pairs)
    assert scores(1, pairs) == expected
    assert scores(3, pairs[::-1]) == expected[::-1]
    monkeypatch.setattr(scorer_module, "_MOST_LOGITS", 340 * 40)
    assert scores(64, pairs) == expected


def test_blank_texts_count_as_empty(loaded: LoadedRun) -> None:
    """Blank for blank is what `translate` gives, with score 0; a blank translation is eos; a blank source is
    shown as an empty one."""
    scorer = Scorer([loaded.model], loaded.tokenizers, _decoding())
    pairs = [("abe", "\u3000"), ("\ufeff", " "), ("abe", ""), ("\u00a0", "bel"), ("", "bel"), ("abe", "bel")]
    found = scorer.score(pairs)
    assert (found[1].ids, found[1].token_scores, found[1].log_prob, found[1].score) == ([], [], 0.0, 0.0)
    assert found[0] == found[2] and found[2].ids == [EOS_ID]
    assert found[3] == found[4] and found[4].log_prob != found[5].log_prob
    assert scorer.score([]) == []
    assert scorer.score(pairs[1:2]) == [found[1]]


def test_errors_name_the_line(loaded: LoadedRun) -> None:
    """Lines are numbered from `first_line`, blank ones too."""
    seen: list[int] = []

    def watched(models: object, pairs: list[Pair], **options: object) -> list[list[float]]:
        seen.extend(pair.number for pair in pairs)
        return [[0.0] * (len(pair.tgt_ids) + 1) for pair in pairs]

    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(scorer_module, "token_scores", watched)
        Scorer([loaded.model], loaded.tokenizers, _decoding()).score([("", ""), ("a", "b")], 40)
    assert seen == [41]


def test_half_precision_scores_are_close(loaded: LoadedRun) -> None:
    """Its products are rounded, its output layer is not."""
    pairs = [(line, line[::-1]) for line in LINES]
    exact, rough = (
        Scorer([loaded.model], loaded.tokenizers, _decoding(precision=precision)).score(pairs)
        for precision in ("fp32", "bf16")
    )
    for one, other in zip(exact, rough, strict=True):
        assert one.score != other.score
        assert one.score == pytest.approx(other.score, abs=0.1)


def test_a_broken_model_is_no_score(loaded: LoadedRun) -> None:
    with torch.no_grad():
        loaded.model.output_weight.fill_(float("nan"))
    scorer = Scorer([loaded.model], loaded.tokenizers, _decoding())
    with pytest.raises(CheckpointError, match="no finite probabilities in fp32; use another checkpoint"):
        scorer.score([("abe", "bel")])


def test_a_pair_that_exceeds_the_memory_is_named(loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """B055: with its line, also among others that fit."""
    hidden = loaded.model.hidden

    def fail(src_ids: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        if src_ids.size(1) > 16:
            raise torch.OutOfMemoryError
        return hidden(src_ids, *rest)

    monkeypatch.setattr(loaded.model, "hidden", fail)
    scorer = Scorer([loaded.model], loaded.tokenizers, _decoding())
    with pytest.raises(
        DataError, match=r"line 6: its \d+ source and 1 target tokens do not fit into the memory"
    ):
        scorer.score([("abd", "eik"), ("abdeik " * 9, "a")], first_line=5)


def test_loaded_from_runs(run: Path, tmp_path: Path) -> None:
    """The recipe says how, arguments come before it; an ensemble needs equal tokenizers."""
    scorer = Scorer.load(run, run, device="cpu", length_penalty=0.0)
    assert (scorer.decoding.length_penalty, scorer.decoding.beam_size) == (0.0, 3)
    both, one = scorer.score([("abe", "bel")])[0], Scorer.load(run, device="cpu").score([("abe", "bel")])[0]
    assert both.score == both.log_prob == pytest.approx(one.log_prob, abs=1e-5)
    stranger = random_run(tmp_path / "stranger", tokenizer_seed=5)
    with pytest.raises(CheckpointError, match="stranger: has another tokenizer than .*one; only runs with"):
        Scorer.load(run, stranger, device="cpu")
