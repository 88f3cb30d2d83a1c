"""Prepared data: whole or not there, never stale, never made twice."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from transformer_mt.config import Recipe
from transformer_mt.data import prepare as prepare_module
from transformer_mt.data import prepared_files
from transformer_mt.data.prepare import PreparedData, data_fingerprint, prepare
from transformer_mt.data.prepared_files import MANIFEST
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.recipe import dump_recipe
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.text.trained_on import TrainedOn

if TYPE_CHECKING:
    from conftest import Make


# Prints the error that `prepare` raises; nothing else may come out.
_PREPARE = """
import sys
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import DataError
from transformer_mt.recipe import load_recipe
try:
    prepare(load_recipe(sys.argv[1]), lambda message: None)
except DataError as error:
    print(error)
"""


def _quiet(message: str) -> None:
    """A log that nobody reads."""


def _prepare(recipe: Recipe) -> PreparedData:
    return prepare(recipe, _quiet)


def _append(recipe: Recipe, name: str, src: str, tgt: str) -> None:
    for lang, text in (("de", src), ("en", tgt)):
        with (Path(recipe.data.root or "") / f"{name}.{lang}").open("ab") as stream:
            stream.write(f"{text}\n".encode())


def test_what_a_run_remembers_is_that_of_the_text(make_recipe: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same from the ids as from the text itself; of a larger text a sample is read."""
    recipe = make_recipe({"max_length_ratio": 100.0})
    prepared = _prepare(recipe)
    root = Path(recipe.data.root or "")
    src, tgt = ((root / f"train.{lang}").read_text().splitlines() for lang in ("de", "en"))
    pairs = list(dict.fromkeys(zip(src, tgt, strict=True)))
    assert len(pairs) == len(prepared.train)
    assert prepared.trained_on() == TrainedOn.learn(prepared.train.src_lengths, pairs)
    monkeypatch.setattr(prepare_module, "SAMPLE", 100)
    step = -(-len(pairs) // 100)
    assert prepared.trained_on() == TrainedOn.learn(prepared.train.src_lengths, pairs[::step])


def test_ids_are_those_of_the_text(make_recipe: Make) -> None:
    """Every kept pair is there in its order, as the tokenizer encodes it, with eos."""
    recipe = make_recipe()
    prepared = _prepare(recipe)
    root = Path(recipe.data.root or "")
    sides = [(root / f"train.{lang}").read_bytes().decode().split("\n")[:-1] for lang in ("de", "en")]
    assert len(prepared.train) == 300
    for index in (0, 150, 299):
        for ids, lines, tokenizer in zip(prepared.train.ids(index), sides, prepared.tokenizers, strict=True):
            assert ids.tolist() == [*tokenizer.encode(lines[index]), EOS_ID]
    assert [len(prepared.train.ids(i)[1]) for i in range(300)] == prepared.train.tgt_lengths.tolist()
    assert prepared.folder == Path(recipe.run_dir).parent / "prepared" / prepared.fingerprint[:16]


def test_the_second_time_costs_nothing(make_recipe: Make) -> None:
    """Nothing is written again, and the same is read."""
    first = _prepare(make_recipe())
    stamps = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    second = _prepare(make_recipe())
    assert (first.is_new, second.is_new) == (True, False)
    assert {path: path.stat().st_mtime_ns for path in second.folder.iterdir()} == stamps
    assert second.report == first.report


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_changed_text_is_prepared_anew(make_recipe: Make, name: str) -> None:
    """B153: any of the texts, for a test set decides which training pairs are leaks."""
    recipe = make_recipe()
    first = _prepare(recipe)
    _append(recipe, name, "neu", "new")
    second = _prepare(recipe)
    assert second.is_new
    assert second.folder != first.folder


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"max_length": 20}},
        {"data": {"max_length_ratio": 2.0}},
        {"data": {"src_lang": "en", "tgt_lang": "de"}},
        {"data": {"test": ()}},
        {"tokenizer": {"type": "unigram"}},
        {"tokenizer": {"vocab_size": 320}},
        {"tokenizer": {"shared": False}},
        {"tokenizer": {"sampling": 0.1}},
    ],
)
def test_every_option_that_shapes_the_data_is_in_the_fingerprint(
    make_recipe: Make, change: dict[str, dict[str, Any]]
) -> None:
    """B153: no stale data after a changed option."""
    first, second = make_recipe(), make_recipe(**change)
    assert data_fingerprint(first.data, first.tokenizer) != data_fingerprint(second.data, second.tokenizer)


def test_where_the_text_lies_is_not_in_the_fingerprint(make_recipe: Make, tmp_path: Path) -> None:
    """Moved text is the same text."""
    recipe = make_recipe()
    moved = shutil.copytree(recipe.data.root or "", tmp_path / "moved")
    other = make_recipe(data={"root": str(moved), "prepared_dir": "elsewhere"})
    assert data_fingerprint(recipe.data, recipe.tokenizer) == data_fingerprint(other.data, other.tokenizer)
    assert _prepare(other).folder == moved / "elsewhere"


def test_what_is_dropped_and_what_is_kept(make_recipe: Make) -> None:
    """B019, B057, B149: reasons with counts and first lines; nothing is dropped from valid."""
    recipe = make_recipe(data={"max_length": 120, "max_length_ratio": 3.0})
    valid = (Path(recipe.data.root or "") / "valid.de").read_bytes().decode().split("\n")[0]
    _append(recipe, "train", "", "not empty")
    _append(recipe, "train", "\u3000", "blank")
    _append(recipe, "train", valid, "leak")
    _append(recipe, "train", "same\u2581", "same\0")
    _append(recipe, "train", "same\u2581", "same\0")
    _append(recipe, "train", "abcd " * 200, "dcba " * 200)
    _append(recipe, "train", "abcdefgh" * 10, "a")
    _append(recipe, "valid", "", "blank")
    _append(recipe, "valid", "jihg " * 200, "long")
    prepared = _prepare(recipe)
    report = prepared.report
    root = recipe.data.root
    assert {
        reason: (found["count"], found["first"]) for reason, found in report["train"]["dropped"].items()
    } == {
        "empty side": (2, f"{root}/train.de:301"),
        "source or target also in valid or test": (1, f"{root}/train.de:303"),
        "exact duplicate": (1, f"{root}/train.de:305"),
        "longer than max_length": (1, f"{root}/train.de:306"),
        "lengths out of proportion": (1, f"{root}/train.de:307"),
    }
    assert (report["train"]["read"], report["train"]["kept"], len(prepared.train)) == (307, 301, 301)
    assert report["train"]["noted"]["NUL in the text"] == {"count": 2, "first": f"{root}/train.de:304"}
    assert report["valid"]["noted"]["empty side"] == {"count": 1, "first": f"{root}/valid.de:21"}
    assert (report["valid"]["kept"], len(prepared.valid)) == (22, 22)
    assert prepared.valid_pairs()[20:] == [("", "blank"), ("jihg " * 200, "long")]
    assert prepared.valid.ids(20)[0].tolist() == [EOS_ID]
    assert report["test"]["test"]["read"] == 10
    assert report["train"]["tgt"]["tokens"] == int(prepared.train.tgt_lengths.sum())
    assert report["train"]["src"]["longest"] == int(prepared.train.src_lengths.max())


def test_several_sources_are_joined(make_recipe: Make) -> None:
    """Findings name the source they are in."""
    recipe = make_recipe(data={"train": ("test", "train"), "test": ()})
    _append(recipe, "train", "", "x")
    prepared = _prepare(recipe)
    assert prepared.report["train"]["read"] == 311
    assert prepared.report["train"]["dropped"]["empty side"]["first"].endswith("train.de:301")


def test_text_longer_than_a_chunk(make_recipe: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and writing in pieces changes nothing."""
    whole = _prepare(make_recipe())
    monkeypatch.setattr("transformer_mt.data.build._CHUNK", 7)
    pieces = _prepare(make_recipe(data={"prepared_dir": "pieces"}))
    assert pieces.report == whole.report
    for index in range(300):
        for left, right in zip(pieces.train.ids(index), whole.train.ids(index), strict=True):
            assert np.array_equal(left, right)


def test_separate_vocabularies(make_recipe: Make) -> None:
    """B029: each side is encoded by its own."""
    prepared = _prepare(make_recipe(tokenizer={"shared": False, "vocab_size": 290}))
    assert not prepared.tokenizers.shared
    assert prepared.tokenizers.src.decode(prepared.train.ids(0)[0]) != ""
    _, target = prepared.train.ids(0)
    assert prepared.tokenizers.tgt.decode(target).endswith(".")


def test_a_tokenizer_is_reused(make_recipe: Make) -> None:
    """From a folder or a file; the fingerprint follows the model, not the path."""
    first = _prepare(make_recipe())
    for source in (first.folder, first.folder / "tokenizer.model"):
        prepared = _prepare(make_recipe(tokenizer={"from": str(source)}))
        assert prepared.tokenizers.src.fingerprint == first.tokenizers.src.fingerprint
    assert prepared.folder != first.folder


def test_two_vocabularies_are_not_taken_for_one(make_recipe: Make) -> None:
    """B163: joint embeddings need a joint vocabulary."""
    first = _prepare(make_recipe(tokenizer={"shared": False, "vocab_size": 290}))
    with pytest.raises(ConfigError, match=r"tokenizer.shared: is true, but .* holds one vocabulary a side"):
        _prepare(make_recipe(tokenizer={"from": str(first.folder)}))


def test_a_vocabulary_of_other_text_is_warned_of(make_recipe: Make) -> None:
    """B163: a vocabulary that has no letter of the target language."""
    recipe = make_recipe()
    first = _prepare(recipe)
    for _ in range(30):
        _append(recipe, "train", "abcd " * 20, "один два три четыре " + os.urandom(8).hex())
    said: list[str] = []
    prepare(make_recipe(tokenizer={"from": str(first.folder)}), said.append)
    assert any(
        "of the target tokens spell single bytes; the vocabulary does not fit" in line for line in said
    )


def test_subword_sampling_keeps_the_text(make_recipe: Make) -> None:
    """Without it the training text is not stored a second time."""
    assert not _prepare(make_recipe()).train.has_text
    prepared = _prepare(make_recipe(tokenizer={"sampling": 0.5}))
    assert prepared.train.has_text
    assert prepared.tokenizers.src.decode(prepared.train.ids(5)[0]) == prepared.train.text(5)[0]


def test_noise_shapes_the_prepared_data_through_the_vocabulary_alone(make_recipe: Make) -> None:
    """B062, B153: capitals get pieces; rates of 0 and a vocabulary made before leave the data as they are."""
    noisy = {"noise": {"upper": 0.3}}
    clean, noised = _prepare(make_recipe()), _prepare(make_recipe(noisy))
    shouted = " ".join(text for text, _ in noised.valid_pairs()).upper()
    pieces = [len(one.tokenizers.src.encode(shouted)) for one in (clean, noised)]
    assert pieces[1] < 0.95 * pieces[0]
    assert noised.train.has_text
    assert _prepare(make_recipe(noisy)).tokenizers.src.fingerprint == noised.tokenizers.src.fingerprint
    prints = [
        data_fingerprint(recipe.data, recipe.tokenizer)
        for rates in ({"upper": 0.0}, {"upper": 0.3}, {"upper": 0.4}, {"typos": 0.3})
        for recipe in (make_recipe({"noise": rates}),)
    ]
    assert prints[:2] == [clean.fingerprint, noised.fingerprint]
    assert len(set(prints)) == 4
    given = {"from": str(clean.folder)}
    fixed = [make_recipe({"noise": {"upper": share}}, given) for share in (0.1, 0.2)]
    assert len({data_fingerprint(one.data, one.tokenizer) for one in fixed}) == 1
    assert _prepare(fixed[0]).train.has_text


def test_an_interruption_leaves_nothing(make_recipe: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half-made data that pass as done nor temporary files."""
    recipe = make_recipe()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare_module, "write_manifest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _prepare(recipe)
    assert list((Path(recipe.run_dir).parent / "prepared").iterdir()) == []
    monkeypatch.undo()
    assert _prepare(recipe).is_new


def test_what_a_killed_attempt_left_is_removed(make_recipe: Make) -> None:
    """A kill cannot clean up; the next attempt does, once nobody can be at work there."""
    recipe = make_recipe()
    folder = prepare_module.prepared_folder(recipe, data_fingerprint(recipe.data, recipe.tokenizer))
    old, young = (folder.parent / f".{folder.name}.{age}.tmp" for age in ("old", "young"))
    for leftover in (old, young):
        leftover.mkdir(parents=True)
        (leftover / "raw.arrow").touch()
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    _prepare(recipe)
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.parametrize("name", ["train.arrow", "valid.src_lengths.npy", "tokenizer.model", "report.json"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_damage_is_noticed_and_mended(make_recipe: Make, name: str, damage: str) -> None:
    """A flipped byte must not train silently; the same command goes on from good data."""
    first = _prepare(make_recipe())
    path = first.folder / name
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:middle])
    else:
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    said: list[str] = []
    second = prepare(make_recipe(), said.append)
    assert f"{path}: is damaged; the data are prepared again" in said
    assert second.is_new
    assert path.read_bytes() == content


def test_other_folders_are_not_written_over(make_recipe: Make, tmp_path: Path) -> None:
    """A folder with anything else in it, data of another recipe, a broken manifest: refused."""
    other = tmp_path / "text" / "other"
    other.mkdir()
    recipe = make_recipe(data={"prepared_dir": "other"})
    prepared = _prepare(recipe)
    with pytest.raises(DataError, match="other: was prepared from other text or options; remove it or name"):
        _prepare(make_recipe(data={"prepared_dir": "other", "max_length": 20}))
    (other / MANIFEST).write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="other: is not a whole folder of prepared data; remove it or name"):
        _prepare(recipe)
    assert (prepared.folder / "train.arrow").exists()


def test_a_faster_process_wins(make_recipe: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that prepare the same data at once both end with them."""
    recipe = make_recipe()
    write = prepared_files.write_manifest

    def meanwhile(folder: Path, fingerprint: str) -> None:
        monkeypatch.setattr(prepare_module, "write_manifest", write)
        assert _prepare(recipe).is_new
        write(folder, fingerprint)

    monkeypatch.setattr(prepare_module, "write_manifest", meanwhile)
    prepared = _prepare(recipe)
    assert [path.name for path in prepared.folder.parent.iterdir()] == [prepared.folder.name]


def test_no_pair_left_says_why(make_recipe: Make) -> None:
    """A corpus that is dropped whole is an error with the reasons."""
    with pytest.raises(DataError, match=r"no training pair is left of 20: 20 source or target also in valid"):
        _prepare(make_recipe(data={"train": "valid"}))
    recipe = make_recipe(data={"max_length": 2})
    with pytest.raises(
        DataError, match=r"no training pair is left of 300: 300 longer than max_length; check"
    ):
        _prepare(recipe)
    assert list((Path(recipe.run_dir).parent / "prepared").iterdir()) == []


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_an_empty_source_is_an_error(make_recipe: Make, name: str) -> None:
    """An empty corpus must not end in a C++ message or a division by zero."""
    recipe = make_recipe()
    for lang in ("de", "en"):
        (Path(recipe.data.root or "") / f"{name}.{lang}").write_bytes(b"")
    with pytest.raises(DataError, match=f"{name}: is empty; a source must hold at least one pair"):
        _prepare(recipe)


def test_a_full_disk_is_one_line(make_recipe: Make, tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: one line, nothing left behind."""
    recipe = make_recipe()
    path = tmp_path / "recipe.yaml"
    path.write_text(dump_recipe(recipe), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", _PREPARE, str(path)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert result.returncode == 0, result.stderr
    assert "prepared data cannot be written: " in result.stdout
    assert result.stdout.count("\n") == 1
    assert list((Path(recipe.run_dir).parent / "prepared").iterdir()) == []


def test_the_command(make_recipe: Make, tmp_path: Path) -> None:
    """Prints the table and the folder; the second time says so."""
    path = tmp_path / "recipe.yaml"
    path.write_text(dump_recipe(make_recipe()), encoding="utf-8")
    outputs = []
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-m", "transformer_mt", "prepare", str(path), "data.max_length=99"],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert result.returncode == 0, result.stderr
        outputs.append(result)
    assert "300  pairs read" in outputs[0].stdout
    assert outputs[0].stdout == outputs[1].stdout
    assert Path(outputs[0].stdout.strip().split("\n")[-1]).is_dir()
    assert "already prepared" in outputs[1].stderr
    assert "already prepared" not in outputs[0].stderr


def test_one_language_on_both_sides_is_warned_of(make_recipe: Make) -> None:
    """Some train paraphrases or corrections; others have named a language twice."""
    told: list[str] = []
    recipe = make_recipe()
    prepare(recipe, told.append)
    assert not any("are both" in line for line in told)
    for name in ("train", "valid", "test"):
        folder = Path(recipe.data.root or "")
        sides = [
            (folder / f"{name}.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("de", "en")
        ]
        rows = "".join(f"{src}\t{tgt}\n" for src, tgt in zip(*sides, strict=True))
        (folder / f"{name}.tsv").write_text(rows, encoding="utf-8")
    names = {"train": "train.tsv", "valid": "valid.tsv", "test": "test.tsv", "tgt_lang": "de"}
    prepare(make_recipe(names), told.append)
    (warning,) = [line for line in told if "are both" in line]
    assert warning.startswith("warning: data.src_lang and data.tgt_lang are both de: right for paraphrases")
