"""Faults of searches that users of other toolkits met, tried through the commands and the Translator.

The models have random weights, of both architectures: whatever they say, these hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from random_run import MODELS, made_up_lines, random_run
from torch import Tensor

from transformer_mt.checkpoint import load_run
from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator
from transformer_mt.model.lstm import AttentionalLstm
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.lines import is_blank
from transformer_mt.text.oddities import loops
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID, NUM_BYTES, NUM_SPECIAL

FIRST_PIECE = NUM_SPECIAL + NUM_BYTES

Translate = Callable[..., list[str]]


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one", model=MODELS[request.param])


@pytest.fixture
def translate(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Translate:
    """translate(lines, *flags) -> the lines that come out of the command, which ends with `code`."""

    def lines(texts: list[str], *flags: object, code: int = 0) -> list[str]:
        source = tmp_path / "in.txt"
        source.write_bytes("".join(text + "\n" for text in texts).encode())
        assert main(["translate", str(run), str(source), "--device", "cpu", *map(str, flags)]) == code
        return capfd.readouterr().out.split("\n")[:-1]

    return lines


def _say_eos(monkeypatch: pytest.MonkeyPatch, more: float) -> None:
    """Every model gives eos a logit that is higher by so much, and never spells bytes."""
    for model in (Transformer, AttentionalLstm):
        project = model.project

        def changed(
            self: object, hidden: Tensor, vocabulary: Tensor | None = None, project: object = project
        ) -> Tensor:
            logits = project(self, hidden, vocabulary).clone()  # type: ignore[operator]
            ids = torch.arange(logits.size(-1)) if vocabulary is None else vocabulary
            return logits + more * (ids == EOS_ID) - 1e5 * ((ids > EOS_ID) & (ids < FIRST_PIECE))

        monkeypatch.setattr(model, "project", changed)


def test_more_beams_than_words(run: Path, translate: Translate) -> None:
    """B063: 400 beams over 340 tokens, and the best of one-token translations is the best of all."""
    flags = ("--beam-size", 400, "--nbest", 400, "--max-len-a", 0, "--max-len-b", 1)
    rows = translate(["abd eik"], *flags)
    loaded = load_run(run)
    src_ids = torch.tensor([[*loaded.tokenizers.src.encode("abd eik"), EOS_ID]])
    tokens = torch.arange(4, 340)
    src_ids = src_ids.expand(len(tokens), -1)
    inputs = torch.stack((torch.full_like(tokens, BOS_ID), tokens), 1)
    with torch.no_grad():
        hidden = loaded.model.hidden(
            src_ids, torch.ones_like(src_ids, dtype=torch.bool)[:, None, None], inputs
        )
        log_probs = loaded.model.project(hidden).log_softmax(-1)  # (N, 2, V)
    rows_of = torch.arange(len(tokens))
    totals = log_probs[rows_of, 0, tokens] + log_probs[:, 1, EOS_ID]
    scores = dict(zip(tokens.tolist(), totals.tolist(), strict=True))
    texts = {token: loaded.tokenizers.tgt.decode([token]) for token in scores}
    best = max((token for token in scores if not is_blank(texts[token])), key=lambda token: scores[token])
    assert rows[0].split("\t")[-1] == texts[best]
    assert len(rows) == len({text for text in texts.values() if not is_blank(text)})


def test_no_translation_is_in_its_list_twice(run: Path, translate: Translate) -> None:
    """B069: 20 lines with 8 translations each: neither ids nor texts come twice, and scores fall."""
    lines = made_up_lines(20, seed=4)
    rows = [row.split("\t") for row in translate(lines, "--beam-size", 8, "--nbest", 8)]
    for number in range(1, 21):
        texts = [row[-1] for row in rows if row[0] == str(number)]
        assert len(texts) == len(set(texts)) > 1
    for item in Translator.load(run, device="cpu", beam_size=8, nbest=8).translate(lines):
        assert len({tuple(candidate.ids) for candidate in item.nbest}) == len(item.nbest)
        scores = [candidate.score for candidate in item.nbest]
        assert scores == sorted(scores, reverse=True)


def test_a_model_that_never_ends_is_cut_and_kept(
    run: Path, translate: Translate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B072: eos is all but impossible: five tokens a line, said to be cut off, and n-best lists are full.

    Bytes are left out: several that are no character spell one text, of which a list holds the best.
    """
    _say_eos(monkeypatch, -1e4)
    lines = made_up_lines(4, seed=5)
    for beam, nbest in ((1, 1), (4, 3)):
        translator = Translator.load(
            run, device="cpu", beam_size=beam, nbest=nbest, max_len_a=0.0, max_len_b=5
        )
        for item in translator.translate(lines):
            assert len(item.nbest) == nbest
            assert all(len(candidate.ids) == 5 and candidate.at_limit for candidate in item.nbest)
        flags = ("--beam-size", beam, "--nbest", nbest, "--max-len-a", 0, "--max-len-b", 5)
        texts = [row.split("\t")[-1] for row in translate(lines, *flags)]
        assert len(texts) == 4 * nbest
        assert not any(map(is_blank, texts))


def test_a_model_that_ends_at_once_still_says_something(
    translate: Translate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B061: eos is all but certain; the default minimum of one token holds in greedy and beam search, also
    where only invisible tokens are likelier, and scores stay finite; without it the line may be empty."""
    _say_eos(monkeypatch, 1e4)
    for beam in (1, 4):
        texts = translate(["abd eik", "ok", "!", "x " * 30], "--beam-size", beam)
        assert len(texts) == 4
        assert not any(map(is_blank, texts))
        assert translate(["abd"], "--beam-size", beam, "--min-length", 0) == [""]


@pytest.mark.parametrize("beam", [1, 3])
def test_odd_input_ends_by_its_limit(run: Path, beam: int) -> None:
    """B059: texts unlike the training text, whose translations may go round in circles: each ends by
    max_len_a * source tokens + max_len_b."""
    lines = ["ok", "!!!!!", "http://a.b/c", "ААА", "a " * 50, "?", "0"]
    translator = Translator.load(run, device="cpu", beam_size=beam, max_len_a=1.5, max_len_b=3)
    for item in translator.translate(lines):
        assert len(item.ids) <= int(1.5 * item.num_src_tokens) + 3
        assert item.at_limit == (len(item.ids) == int(1.5 * item.num_src_tokens) + 3)


def test_one_word_for_ever_is_searched_for_again_and_told(
    run: Path, translate: Translate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B059: to the model one word is always likeliest. What comes out goes round in circles no more; where no
    second search is wanted, it is marked."""
    tokenizer = load_run(run).tokenizers.tgt
    word = next(
        token for token in range(FIRST_PIECE, tokenizer.vocab_size) if len(tokenizer.decode([token])) > 1
    )
    for model in (Transformer, AttentionalLstm):

        def changed(
            self: object, hidden: Tensor, vocabulary: Tensor | None = None, project: object = model.project
        ) -> Tensor:
            logits = project(self, hidden, vocabulary).clone()  # type: ignore[operator]
            ids = torch.arange(logits.size(-1)) if vocabulary is None else vocabulary
            return logits + 1e3 * (ids == word) - 1e3 * (ids == EOS_ID) - 1e5 * (ids < FIRST_PIECE)

        monkeypatch.setattr(model, "project", changed)
    lines = ["ok", "!!!!!", "http://a.b/c", "ААА"]
    flags = ("--beam-size", 2, "--max-len-a", 0, "--max-len-b", 12, "--format", "tsv")
    for row in translate(lines, *flags, "--no-retry"):
        assert loops(row.split("\t")[5])
        assert "loop" in row.split("\t")[3].split(",")
    found = [row.split("\t") for row in translate(lines, *flags)]
    assert [row[4] for row in found] == lines
    assert not any(loops(row[5]) for row in found)


def test_what_does_not_fit_into_the_memory_costs_itself_alone(
    run: Path, translate: Translate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B055: more than 4 lines at a time find no room, and one line not even by itself: 17 lines of one batch
    come out, that one blank and named, all others as with room, and the command ends with code 3."""
    lines = [f"{word} u" for word in "abcdefghijklmnop"]
    lines.insert(6, "kein Platz " * 12)
    flags = ("--batch-size", 17, "--beam-size", 2, "--workers", 1, "--no-retry")
    expected = translate(lines, *flags)
    for model in (Transformer, AttentionalLstm):

        def tight(
            self: object, src_ids: Tensor, src_mask: Tensor, encode: Callable[..., object] = model.encode
        ) -> object:
            if src_ids.unique(dim=0).size(0) > 4 or src_ids.size(1) > 32:
                raise torch.OutOfMemoryError("no room")
            return encode(self, src_ids, src_mask)

        monkeypatch.setattr(model, "encode", tight)
    found = translate(lines, *flags, code=3)
    assert found == [*expected[:6], "", *expected[7:]]
    assert expected[6] != ""
    (said,) = [record.getMessage() for record in caplog.records if "do not fit" in record.getMessage()]
    assert re.search(r"warning: line 7: its \d+ tokens do not fit .* its translation is left empty", said)


def test_letter_case_and_other_scripts_cost_no_line(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """B035, B062: a model of small letters is given capitals and other scripts: every line comes out, none
    empty, and those whose characters it mostly does not know are counted in the summary and marked."""
    lines = ["the cat sat", "The Cat Sat", "THE CAT SAT.", "ААА", "한국어 rand", "a 猫", "ok 😀"]
    source = tmp_path / "in.txt"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["translate", str(run), str(source), "--device", "cpu", "--format", "tsv"]) == 0
    captured = capfd.readouterr()
    rows = [row.split("\t") for row in captured.out.split("\n")[:-1]]
    assert [row[4] for row in rows] == lines
    assert not any(is_blank(row[5]) for row in rows)
    # Of the second line four of nine characters are unknown, of the Korean one three of seven.
    unknown = [row[0] for row in rows if "unknown" in row[3].split(",")]
    assert unknown == ["3", "4"]
    assert re.search(r"translations look wrong \(.*unknown 2", captured.err)
