"""Any text and any search: what holds of translations whatever is asked of a model that knows nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_run import MODELS, random_run

from transformer_mt.checkpoint import LoadedRun, load_run
from transformer_mt.cli.main import main
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.translator import Translator
from transformer_mt.text.lines import is_blank

TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20),
        st.text("ab el ▁<>/&s\t\r\u2028\u3000\u200b", max_size=30),
    ),
    max_size=5,
)
SLOW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module", params=list(MODELS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one", model=MODELS[request.param])


@pytest.fixture(scope="module")
def loaded(run: Path) -> LoadedRun:
    return load_run(run)


@SLOW
@given(
    texts=TEXTS,
    beam_size=st.integers(1, 4),
    nbest=st.integers(1, 3),
    length=st.integers(1, 5),
    ngram=st.integers(0, 2),
    penalty=st.sampled_from([1.0, 1.5]),
    alpha=st.sampled_from([0.0, 1.0, 2.0]),
    temperature=st.sampled_from([0.0, 0.0, 1.0]),
)
def test_any_search_keeps_its_promises(
    loaded: LoadedRun,
    *,
    texts: list[str],
    beam_size: int,
    nbest: int,
    length: int,
    ngram: int,
    penalty: float,
    alpha: float,
    temperature: float,
) -> None:
    """As many translations as lines, blank where they are; within the limit, without what is forbidden, all
    different, best first; and each the same without the others."""
    decoding = DecodingConfig(
        beam_size=max(beam_size, nbest),
        nbest=nbest,
        max_len_a=0.0,
        max_len_b=length,
        no_repeat_ngram=ngram,
        repetition_penalty=penalty,
        length_penalty=alpha,
        temperature=temperature,
    )
    translator = Translator([loaded.model], loaded.tokenizers, decoding)
    found = translator.translate(texts)
    assert [item.text == "" for item in found] == list(map(is_blank, texts))
    for number, (text, item) in enumerate(zip(texts, found, strict=True), start=1):
        assert translator.translate([text], number) == [item]
        assert len({one.text for one in item.nbest}) == len(item.nbest) <= nbest
        scores = [one.score for one in item.nbest]
        assert temperature or scores == sorted(scores, reverse=True)
        for one in item.nbest:
            assert len(one.ids) <= length
            assert not {"\n", "\r"} & set(one.text)
            grams = [tuple(one.ids[place : place + ngram]) for place in range(len(one.ids) - ngram + 1)]
            assert ngram == 0 or len(set(grams)) == len(grams)


@SLOW
@given(texts=TEXTS, last=st.booleans(), nbest=st.integers(1, 2), as_json=st.booleans())
def test_any_text_through_the_command(
    run: Path, tmp_path: Path, *, texts: list[str], last: bool, nbest: int, as_json: bool
) -> None:
    """Lines out are lines in, in order, in files of text and of JSON, whatever the lines are."""
    source, output = tmp_path / "in", tmp_path / "out"
    rows = (
        [json.dumps({"src": text, "id": number}) for number, text in enumerate(texts)] if as_json else texts
    )
    end = "\n" if last or (rows and not rows[-1]) else ""
    source.write_bytes(("\n".join(rows) + (end if rows else "")).encode())
    words = ["translate", str(run), str(source), "--output", str(output), "--device", "cpu", "--workers", "1"]
    words += ["--quiet", "--format", "jsonl", "--nbest", str(nbest), "--max-len-a", "0", "--max-len-b", "2"]
    assert main([*words, "--input-format", "jsonl"] if as_json else words) == 0
    found = [json.loads(line) for line in io.BytesIO(output.read_bytes())]
    output.unlink()
    if as_json:
        assert [(one["src"], one["id"]) for one in found] == list(zip(texts, range(len(texts)), strict=True))
    else:
        # A mark at the start of a file and a carriage return at the end of a line are no text.
        expected = [text.removesuffix("\r") for text in "\n".join(texts).removeprefix("\ufeff").split("\n")]
        assert [one["source"] for one in found] == (
            expected if source.read_bytes().strip(b"\xef\xbb\xbf") else []
        )
    assert all((one["translation"] == "") == is_blank(one.get("src", one.get("source"))) for one in found)
