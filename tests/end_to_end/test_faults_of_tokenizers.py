"""Faults of tokenizers that users of other toolkits met, tried on both kinds of vocabulary and by commands.

What a user types is text, whatever it looks like; what goes in comes out; no output line holds a line end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from random_run import MODELS, VOCAB, made_up_lines, random_run
from table_model import TableModel

from transformer_mt.checkpoint import load_run
from transformer_mt.checkpoint_files import save_checkpoint
from transformer_mt.cli.main import main
from transformer_mt.config import DecodingConfig, Recipe
from transformer_mt.data.prepare import PreparedData, prepare
from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.searcher import Searcher
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import CheckpointError
from transformer_mt.text import vocabulary
from transformer_mt.text.lines import read_lines, write_lines
from transformer_mt.text.tokenizer import (
    EOS_ID,
    NUM_SPECIAL,
    UNK_ID,
    Tokenizer,
    Tokenizers,
    train_tokenizer,
)
from transformer_mt.training.stream import MicroBatches

CONTROL_WORDS = [
    *("<s>", "</s>", "<pad>", "<unk>", "<2de>", "<2fr> hello", "<doc>", "<0x0A>", "<0x00>", "▁", "[CLS]"),
    *("keep <s> this </s> and <pad> and <unk> text", "a</s>b", "<mask>", "⁇", "\\n"),
]
UNUSUAL = [
    *("½ … ㎏ （ＡＢＣ） ﬁ Å Å", "THE CAT sat", "한국어 text", "龘先生", "good morning 😀 see you later"),
    *(
        "foo@@ bar ##baz",
        "Tom & Jerry <3 &amp;quot; &#39;",
        "  two  spaces ",
        "\ttab",
        "👩‍👩‍👧 🇩🇪",
        "e\u0301é",
    ),
]
INVISIBLE = [
    "Donau\u00addampf\u00adschiff",
    "a\u0085b",
    "x\u200dy",
    "bell\x07ring",
    "q\u200bw",
    "\ufeffa",
    "n\x9fo",
]
LINES = made_up_lines(80, 4)

Make = Callable[..., PreparedData]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizers(kind: str) -> Tokenizers:
    """Learned from small letters, and from the words that look like control symbols themselves."""
    learned = train_tokenizer([*LINES, *CONTROL_WORDS * 20], type=kind, vocab_size=360)
    return Tokenizers(train_tokenizer(LINES, type=kind, vocab_size=330), learned)


@pytest.fixture
def made(tmp_path: Path, kind: str) -> Make:
    """made(pairs, **tokenizer) -> their prepared data, with the sides given as lists of lines."""

    def make(src: list[str], tgt: list[str], **options: object) -> PreparedData:
        for name in ("train", "valid"):
            for language, lines in (("de", src), ("en", tgt)):
                held = [f"{line} {name}" if name == "valid" else line for line in lines]
                (tmp_path / f"{name}.{language}").write_text("\n".join(held) + "\n", encoding="utf-8")
        recipe = {
            "run_dir": str(tmp_path / "run"),
            "data": {
                "root": str(tmp_path),
                "train": "train",
                "valid": "valid",
                "src_lang": "de",
                "tgt_lang": "en",
            },
            "tokenizer": {"type": kind, "vocab_size": 320, **options},
            "model": {"tied_embeddings": "decoder"},
        }
        return prepare(Recipe.model_validate(recipe), lambda _: None)

    return make


def test_what_stands_behind_an_emoji_is_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """B036: a model that copies gives every word, whatever stands between them."""
    run = random_run(tmp_path / "run")
    monkeypatch.setattr(
        Searcher,
        "search",
        lambda self, asked, **_: [[Hypothesis(one.src_ids[:-1], -1.0, False)] for one in asked],
    )
    lines = ["good morning 😀 see you later", "good morning see you later", "😀", "a 👩‍👩‍👧 b 🇩🇪 c"]
    (tmp_path / "in").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["translate", str(run), str(tmp_path / "in"), "--device", "cpu"]) == 0
    assert capfd.readouterr().out.split("\n")[:-1] == lines


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_draw_apart_and_again_the_same(made: Make, workers: int) -> None:
    """B147: ten sentences that differ in their last word, two epochs: where the words before it are cut is
    drawn for each of them, in each epoch, and the same when all is done again."""
    same = " ".join(LINES[:12])
    lines = [f"{same} {letter}" for letter in "abdeiklmno"]
    data = made(lines, lines, sampling=0.1, vocab_size=300)
    room = 2 * int(data.train.src_lengths.min()) - 1  # for one example, and for finer cuts of it

    def cuts() -> list[tuple[int, ...]]:
        batches = MicroBatches(
            data.train, max_tokens=room, seed=3, sampling=0.1, epoch=1, position=0, workers=workers
        )
        with closing(batches):
            drawn = [batch.src_ids[0].tolist() for batch in batches.take(20)]
        spans = map(data.tokenizers.src.spans, drawn)
        return [tuple(start for start, _ in one if start < len(same)) for one in spans]

    first = cuts()
    assert len(set(first)) == len(first) == 20
    assert cuts() == first


@pytest.mark.parametrize("text", CONTROL_WORDS)
def test_control_words_are_text(tokenizers: Tokenizers, text: str) -> None:
    """B026, B031: no id of a special token or of a byte that was only named, on either side, drawn or not."""
    named = [NUM_SPECIAL + byte for byte in (0x00, 0x0A)]
    for tokenizer in tokenizers:
        for ids in (tokenizer.encode(text), *(tokenizer.sample(text, 0.3, seed) for seed in range(5))):
            assert min(ids) >= NUM_SPECIAL
            assert not set(ids) & set(named)
            assert tokenizer.decode(ids) == text.replace("▁", " ")
    assert not {"<2de>", "<2fr>", text} - {"▁"} & set(tokenizers.src.pieces(tokenizers.src.encode(text)))
    flat, lengths = tokenizers.src.encode_flat([text.encode()])
    assert flat.tolist() == [*tokenizers.src.encode(text), EOS_ID]
    assert lengths.tolist() == [len(flat)]


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_control_words_in_training_text_end_no_sentence(made: Make, sampling: float) -> None:
    """B026: eos is the last token of every example and stands nowhere else: no sentence is cut."""
    src = [f"{a} </s> {b} <pad> <unk>" for a, b in zip(LINES, reversed(LINES), strict=True)]
    tgt = [f"<s> {b} </s> {a}" for a, b in zip(LINES, reversed(LINES), strict=True)]
    prepared = made(src, tgt, sampling=sampling)
    for index in range(len(prepared.train)):
        drawn = prepared.train.ids(index)
        if sampling:
            drawn = prepared.train.drawn_ids(
                index, rate=sampling, seed=1, epoch=1, max_length=500, noise=None
            )
        for ids, tokenizer, lines in zip(drawn, prepared.tokenizers, (src, tgt), strict=True):
            assert ids[-1] == EOS_ID
            assert min(ids[:-1]) >= NUM_SPECIAL
            assert tokenizer.decode(ids) == lines[index]


@pytest.mark.parametrize("text", UNUSUAL)
def test_nothing_is_rewritten_or_unknown(tokenizers: Tokenizers, text: str) -> None:
    """B028, B032, B033, B035, B036, B157: what no piece holds is spelled in bytes and comes back."""
    for tokenizer in tokenizers:
        for ids in (tokenizer.encode(text), tokenizer.sample(text, 0.3, 1)):
            assert UNK_ID not in ids
            assert tokenizer.decode(ids) == text
        # What stands around is there too: nothing swallows its neighbours.
        assert tokenizer.decode(tokenizer.encode(f"la {text} ti")) == f"la {text} ti"


@pytest.mark.parametrize("text", INVISIBLE)
def test_invisible_characters_are_text(tokenizers: Tokenizers, text: str) -> None:
    """B038: they split a word where they stand and come back there; no unk, and nothing is glued."""
    for tokenizer in tokenizers:
        ids = tokenizer.encode(text)
        assert UNK_ID not in ids
        assert tokenizer.decode(ids) == text
        clean = "".join(character for character in text if character.isprintable())
        assert tokenizer.decode(tokenizer.encode(clean)) == clean
        assert ids != tokenizer.encode(clean)


def test_each_side_is_read_and_shown_by_its_own_tokenizer(made: Make) -> None:
    """B029: alphabets that share no letter; the other side's tokenizer would show bytes."""
    cyrillic = [line.translate(str.maketrans("abdeiklmnorstu", "абдеиклмнорсту")) for line in LINES]
    prepared = made(LINES, cyrillic, shared=False, vocab_size=300)
    assert prepared.valid_pairs()[3] == (f"{LINES[3]} valid", f"{cyrillic[3]} valid")
    src, tgt = prepared.train.ids(3)
    assert prepared.tokenizers.src.decode(src) == LINES[3]
    assert prepared.tokenizers.tgt.decode(tgt) == cyrillic[3]
    assert prepared.report["tokenizer"]["src"]["byte_characters"] == 0
    assert prepared.report["tokenizer"]["tgt"]["byte_characters"] == 0
    model = TableModel(lambda _, history: _sure_of([*tgt[:-1].tolist(), EOS_ID][len(history)], 300))
    translator = Translator([model], prepared.tokenizers, DecodingConfig(beam_size=1), torch.device("cpu"))
    (item,) = translator.translate([LINES[3]])
    assert item.text == cyrillic[3]


def _sure_of(token: int, size: int) -> torch.Tensor:
    logits = torch.full((size,), -20.0)
    logits[token] = 20.0
    return logits


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"a\nb\n", "a b "),
        (b"a\r", "a "),
        (b"\r\n", None),
        (b"a\xe2\x80", "a\ufffd\ufffd"),
        (b"\xff\x0a", "\ufffd "),
        ("a\u2028\x85b".encode(), "a\u2028\x85b"),
    ],
)
def test_bytes_that_a_model_writes_stay_in_their_line(
    tmp_path: Path, tokenizers: Tokenizers, written: bytes, expected: str | None
) -> None:
    """Byte pieces can spell a newline or half a character; out comes one line of UTF-8 all the same."""
    ids = [*(NUM_SPECIAL + byte for byte in written), EOS_ID]
    size = tokenizers.tgt.vocab_size
    model = TableModel(lambda _, history: _sure_of(ids[min(len(history), len(ids) - 1)], size))
    translator = Translator([model], tokenizers, DecodingConfig(beam_size=1), torch.device("cpu"))
    (item,) = translator.translate(["la ti"])
    write_lines(tmp_path / "out", [item.text])
    assert list(read_lines(tmp_path / "out")) == [item.text]
    assert not set("\n\r") & set(item.text)
    if expected is not None:
        assert item.text.startswith(expected.rstrip())


def test_an_unknown_token_leaves_no_mark(tokenizers: Tokenizers) -> None:
    """B040: a model that wants to say <unk> is not let, and its ids show nothing."""
    size = tokenizers.tgt.vocab_size
    word = tokenizers.tgt.encode("lamo")
    wanted = [UNK_ID, *word, EOS_ID]

    def rule(_: int, history: tuple[int, ...]) -> torch.Tensor:
        logits = torch.zeros(size)
        logits[wanted[min(len(history), len(wanted) - 1)]] = 20.0
        logits[EOS_ID] += 5.0 * len(history)
        return logits

    translator = Translator([TableModel(rule)], tokenizers, DecodingConfig(beam_size=2), torch.device("cpu"))
    (item,) = translator.translate(["la ti"])
    assert UNK_ID not in item.ids
    assert "unk" not in tokenizers.tgt.decode([UNK_ID, *word])
    assert "⁇" not in tokenizers.tgt.decode([UNK_ID])


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path: Path) -> None:
    """B039: an id beyond the embedding would crash in the middle of a text; both sizes are named."""
    run = random_run(tmp_path / "run", model={**MODELS["transformer"], "tied_embeddings": "decoder"})
    loaded = load_run(run)
    larger = train_tokenizer(made_up_lines(90, 2), type="bpe", vocab_size=VOCAB + 10)
    for number, pair in enumerate(
        (Tokenizers(larger, loaded.tokenizers.tgt), Tokenizers(loaded.tokenizers.src, larger))
    ):
        other = tmp_path / f"other{number}"
        save_checkpoint(
            other,
            20,
            weights=dict(loaded.model.named_parameters()),
            state={},
            scalars={},
            recipe=loaded.recipe,
            tokenizers=pair,
        )
        with pytest.raises(CheckpointError, match=rf"\({VOCAB}, 32\), but \({VOCAB + 10}, 32\) is needed"):
            load_run(other)


def test_pieces_of_a_text_put_together_are_the_text(tokenizers: Tokenizers) -> None:
    """B042: decoded one by one they would lose their spaces; nothing here shows them so."""
    for tokenizer in tokenizers:
        ids = tokenizer.encode("la ti  moru")
        grown = [tokenizer.decode(ids[: end + 1]) for end in range(len(ids))]
        assert grown[-1] == "la ti  moru"
        assert all(longer.startswith(shorter) for shorter, longer in pairwise(grown))
        assert "".join(tokenizer.pieces(ids)).replace("▁", " ")[1:] == "la ti  moru"


def _recipe_file(folder: Path, **texts: list[str]) -> Path:
    folder.mkdir(parents=True)
    for name in ("train", "valid", "test"):
        for language in ("de", "en"):
            lines = texts.get(name, [f"{name} {line}" for line in LINES])
            (folder / f"{name}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        "run_dir: run\n"
        "data: {train: train, valid: valid, test: test, src_lang: de, tgt_lang: en}\n"
        "tokenizer: {type: bpe, vocab_size: 320}\n"
        "model: {d_model: 16, d_ff: 16, num_heads: 2, num_encoder_layers: 1, num_decoder_layers: 1}\n"
        "training: {max_steps: 2, save_every: 1, validate_every: 2, max_tokens: 512, precision: fp32}\n"
        "decoding: {beam_size: 1, max_len_a: 0.1, max_len_b: 3}\n",
        encoding="utf-8",
    )
    return recipe


FIVE_LINES = ["ein haus", "ein baum", "der hund", "die katze", "das rad"]
MANY_SIGNS = ["".join(map(chr, range(first, first + 30))) for first in range(0x4E00, 0x4E00 + 3000, 30)]


@pytest.mark.parametrize(
    ("lines", "size", "said"),
    [(FIVE_LINES, 8000, "must be at most "), (MANY_SIGNS, 500, "must be at least ")],
)
def test_a_size_the_text_does_not_allow_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], size: int, said: str
) -> None:
    """B044, B045: one line with the size that works, code 2, and no folder that `train` would take."""
    recipe = _recipe_file(tmp_path / "data", train=lines)
    where = f"run_dir={tmp_path}/run"
    assert main(["prepare", str(recipe), where, f"tokenizer.vocab_size={size}"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    error = captured.err.strip().split("\n")[-1]
    assert "tokenizer.vocab_size: " in error
    assert said in error
    allowed = int(error.split(said)[1].split()[0])
    assert "Traceback" not in captured.err
    assert not list(tmp_path.glob("prepared/*"))
    assert main(["prepare", str(recipe), where, f"tokenizer.vocab_size={allowed}"]) == 0


def test_a_path_with_spaces_and_other_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B048: every verb, with every path inside; nothing appears beside the folder."""
    folder = tmp_path / "my data ü 中 %s 'x'"
    recipe = _recipe_file(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run = f"{folder}/mein Lauf"
    source = str(folder / "test.de")
    assert main(["prepare", str(recipe), f"run_dir={run}"]) == 0
    assert main(["train", str(recipe), f"run_dir={run}", "--device", "cpu"]) == 0
    assert main(["average", run, "--last", "2"]) == 0
    assert main(["translate", run, source, "--output", f"{folder}/aus gabe.en", "--device", "cpu"]) == 0
    assert main(["evaluate", run, "--device", "cpu"]) == 0
    assert main(["doctor", run]) == 0
    capsys.readouterr()
    assert len((folder / "aus gabe.en").read_text(encoding="utf-8").split("\n")) == len(LINES) + 1
    assert list(elsewhere.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "elsewhere"}


def test_a_script_that_comes_late_is_learned(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """B050: the last tenth is in another script; a sample of the head would spell it in bytes."""
    monkeypatch.setitem(vocabulary._MAX_TRAINING_LINES, kind, 300)
    lines = [f"{LINES[n % 80]} {n}" if n < 5400 else "один два три" for n in range(6000)]
    learned = train_tokenizer(iter(lines), type=kind, vocab_size=330)
    assert not any(learned.is_byte(token) for token in learned.encode("один два"))
    again = train_tokenizer(iter(lines), type=kind, vocab_size=330)
    assert again.fingerprint == learned.fingerprint


def test_lines_to_learn_from_are_drawn_in_bounded_memory() -> None:
    """B050: 20 MB of lines go by, the sample of 100 stays."""
    tracemalloc.start()
    try:
        drawn = vocabulary._draw((f"{number} " + "x" * 1000 for number in range(20_000)), 100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(drawn) == 100
    assert peak < 1_000_000


def test_the_order_of_hashes_decides_nothing(tmp_path: Path) -> None:
    """B145: vocabularies, ids, report: every file is the same under another hash seed, sampling included."""
    recipe = _recipe_file(tmp_path / "data")
    manifests = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "transformer_mt",
                    "prepare",
                    str(recipe),
                    f"run_dir={tmp_path}/{seed}/run",
                ),
                *("tokenizer.type=unigram", "data.noise.typos=0.5", "tokenizer.sampling=0.1"),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            cwd=tmp_path,
        )
        folder = Path(done.stdout.decode().strip().split("\n")[-1])
        manifests.append((folder / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]


def test_prepare_reports_what_looks_wrong_in_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B028, B157, B161: HTML entities, U+2581 and text that was cut into pieces are counted and kept."""
    odd = ["fish &amp;quot; chips", "it&#39;s", "&lt;b&gt;", "Tom & Jerry <3"]
    cut = ["▁" + line.replace(" ", " ▁") for line in LINES[:20]]
    recipe = _recipe_file(tmp_path / "data", train=[*LINES, *odd, *cut])
    monkeypatch.chdir(tmp_path / "data")
    assert main(["prepare", str(recipe)]) == 0
    captured = capsys.readouterr()
    table = captured.out
    assert "3  noted: HTML entity in the text" in table
    assert "20  noted: U+2581 in the text, becomes a space" in table
    assert "20  of 104 lines do not come back as they were (20 hold U+2581" in table
    assert 'warning: 20 of 104 source lines hold U+2581 or "@@ "' in captured.err


def test_translate_warns_of_text_cut_into_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """B161: pieces are tokenised once more and lose their meaning; raw text gives no warning."""
    run = random_run(tmp_path / "run")
    for text, warned in (("▁the ▁cat\n", True), ("the cat\n", False)):
        (tmp_path / "in").write_text(text, encoding="utf-8")
        assert main(["translate", str(run), str(tmp_path / "in"), "--device", "cpu"]) == 0
        assert ("warning: 1 of 1 lines hold U+2581" in capfd.readouterr().err) == warned


def test_a_written_file_holds_what_was_decoded(tmp_path: Path, tokenizers: Tokenizers) -> None:
    """Every single byte piece, alone and after a letter: as many lines as texts, all UTF-8."""
    tokenizer: Tokenizer = tokenizers.tgt
    texts = [tokenizer.decode([NUM_SPECIAL + byte]) for byte in range(256)]
    texts += [tokenizer.decode([*tokenizer.encode("a"), NUM_SPECIAL + byte]) for byte in range(256)]
    write_lines(tmp_path / "out", texts)
    content = (tmp_path / "out").read_bytes()
    assert content.count(b"\n") == 512
    assert b"\r" not in content
    assert len(content.decode("utf-8").split("\n")) == 513
