"""`tools/plant_noise`: what is planted where, and what is counted afterwards, by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.small_pairs import invented, small_recipe_file
from tools.plant.__main__ import main
from tools.plant.planting import CLEAN, KINDS, plant


def test_a_share_is_planted_and_the_rest_is_as_it_was() -> None:
    """Pins lines that move, sources that change, and noise that is none."""
    pairs = invented(200, 1)
    planted = list(plant(pairs, 0.5, seed=1))
    counts = Counter(kind for _, kind in planted)
    assert set(counts) == {CLEAN, *KINDS} and 95 <= counts[CLEAN] <= 120
    for (source, target), ((new_source, new_target), kind) in zip(pairs, planted, strict=True):
        words, new = target.split(), new_target.split()
        assert new_source == source and (new_target == target) == (kind == CLEAN)
        if kind == "copied":
            assert new_target == source
        elif kind == "truncated":
            assert new == words[: len(new)] and new
        elif kind == "reordered":
            assert sorted(new) == sorted(words)
        elif kind == "replaced":
            assert sum(ours != theirs for ours, theirs in zip(words, new, strict=True)) == 1
        elif kind == "shuffled":
            assert new_target in {other for _, other in pairs}
    assert list(plant(pairs, 0.5, seed=1)) == planted != list(plant(pairs, 0.5, seed=2))


def test_a_target_of_one_character_or_word_stays_clean() -> None:
    """Pins a kind that is counted though it could not be made; characters are words in some scripts."""
    kinds = Counter(kind for _, kind in plant([("ein haus", "house")] * 40, 1.0, seed=1))
    assert kinds == {CLEAN: 32, "copied": 8}
    chinese = list(plant([("a house", "我昨天买了书")] * 5, 1.0, seed=1))
    ((_, cut),) = [pair for pair, kind in chinese if kind == "truncated"]
    assert "我昨天买了书".startswith(cut)


def run(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr("sys.argv", ["plant_noise", *map(str, words)])
    main()


def test_files_are_written_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins precision and recall the other way round."""
    recipe = small_recipe_file(tmp_path, invented(50, 1))
    run(monkeypatch, recipe, "--output", tmp_path / "noisy", "--share", "0.4")
    assert len((tmp_path / "noisy" / "noisy.en").read_text("utf-8").split("\n")) == 51
    assert "30 clean, 4 shuffled, 4 truncated, 4 reordered, 4 replaced, 4 copied" in capsys.readouterr().out
    kinds = ["clean"] * 6 + ["shuffled"] * 3 + ["replaced"]
    dropped = [*"kkkkkd", *"ddk", "k"]
    (tmp_path / "planted.tsv").write_text("".join(f"{n}\t{kind}\n" for n, kind in enumerate(kinds)), "utf-8")
    rows = (f"{n}\t0.5\t{'dropped' if how == 'd' else 'kept'}\t\n" for n, how in enumerate(dropped))
    (tmp_path / "scores.tsv").write_text("".join(rows), "utf-8")
    run(monkeypatch, "--judge", tmp_path / "planted.tsv", tmp_path / "scores.tsv")
    told = capsys.readouterr().out
    assert "clean: 1 of 6 dropped, 16.7%" in told and "shuffled: 2 of 3 dropped, 66.7%" in told
    assert "precision 66.7%, recall 50.0%" in told


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["RECIPE", "--output", "x", "--share", "1.5"], (2, "--share 1.5: must be from 0 to 1")),
        (["RECIPE"], (2, "give RECIPE and --output DIR, or --judge PLANTED SCORES")),
        (
            ["--judge", "text/train.de", "text/valid.de"],
            (3, "train.de has 50 lines but text/valid.de has 40"),
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    expected: tuple[int, str],
) -> None:
    """Pins tracebacks."""
    recipe = small_recipe_file(tmp_path, [(f"{src}\t{src}\td", tgt) for src, tgt in invented(50, 1)])
    valid = tmp_path / "text" / "valid.de"
    valid.write_text(valid.read_text("utf-8").replace("\n", "\tb\tdropped\n"), "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=str(expected[0])):
        run(monkeypatch, *(str(recipe) if word == "RECIPE" else word for word in words))
    assert expected[1] in capsys.readouterr().err
