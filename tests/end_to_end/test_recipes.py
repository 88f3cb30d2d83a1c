"""Every recipe of the repository: it parses, says what it must, and trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY, Cli
from transformer_mt.config import Recipe
from transformer_mt.recipe import flatten, load_recipe

RECIPES = sorted((REPOSITORY / "recipes").rglob("*.yaml"))
NAMES = [f"{path.parent.name}/{path.name}" for path in RECIPES]
SYSTEMS = ("zh_en_bundled", "multi30k_de_en", "multi30k_en_de", "tatoeba_3am_zh_en", "wmt_en_de_base")
TINY = (
    "tokenizer.vocab_size=700",
    "model.preset=tiny",
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "training.max_steps=2",
    "training.max_tokens=512",
    "training.update_freq=1",
    "training.save_every=2",
    "training.validate_every=2",
    "decoding.beam_size=1",
    "decoding.max_len_a=0.1",
    "decoding.max_len_b=4",
)


def test_the_recipes_are_those_of_the_readme() -> None:
    """Pins that no recipe is lost and that each has its page."""
    assert {path.parent.name for path in RECIPES} >= set(SYSTEMS)
    for name in SYSTEMS:
        assert (REPOSITORY / "recipes" / name / "README.md").is_file()


@pytest.mark.parametrize("path", RECIPES, ids=NAMES)
def test_a_recipe_parses_and_its_head_comment_tells_what_it_is(path: Path) -> None:
    """Pins the head comment (purpose, what must exist first, command, score)."""
    recipe = load_recipe(path)
    assert Path(recipe.run_dir).parts[0] == "runs"
    head = path.read_text(encoding="utf-8").split("run_dir:")[0]
    assert all(line.startswith("#") for line in head.removesuffix("\n").split("\n"))
    for word in ("Must exist first:", "Command:", "Score to expect:"):
        assert word in head
    assert f"transformer-mt train {path.relative_to(REPOSITORY).as_posix()}" in head


@pytest.mark.parametrize("path", RECIPES, ids=NAMES)
def test_a_recipe_holds_only_what_differs_from_the_defaults(path: Path) -> None:
    """Pins that a default stands in config.py alone, so that a recipe shows what is special about it."""
    tree: dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_bytes())
    data = {key: tree["data"][key] for key in ("train", "valid", "src_lang", "tgt_lang")}
    preset = tree.get("model", {}).get("preset", "base")
    plain = flatten(Recipe.model_validate({"run_dir": "x", "data": data, "model": {"preset": preset}}))
    needed = {"run_dir", "model.preset", *(f"data.{key}" for key in data)}
    written = {f"{section}.{key}" for section in tree if section != "run_dir" for key in tree[section]}
    recipe = flatten(load_recipe(path))
    assert [key for key in sorted(written - needed) if recipe[key] == plain[key]] == []


def write_pairs(folder: Path, src_lang: str, tgt_lang: str) -> None:
    """A small parallel corpus of made-up sentences: 400 train, 6 valid, 7 test."""
    folder.mkdir()
    subjects = [("ein", "ali"), ("drei", "bro"), ("kein", "cru"), ("viel", "dem"), ("zwei", "ept")]
    verbs = [("sieht", "fol"), ("nimmt", "gra"), ("hebt", "hul"), ("kauft", "ini")]
    objects = [("Haus", "jok"), ("Buch", "kel"), ("Boot", "lum"), ("Rad", "mos"), ("Dach", "nuf")]
    pairs = [
        (f"{a} {x} {b} {y} {c} {n}.", f"{c2} {y2} {b2} {n} {a2} {x2}.")
        for a, a2 in subjects
        for x, x2 in objects
        for b, b2 in verbs
        for y, y2 in objects
        for n, (c, c2) in enumerate(subjects)
    ]
    stride = len(pairs) // 413
    chosen = pairs[::stride][:413]
    for name, part in (("train", chosen[:400]), ("valid", chosen[400:406]), ("test", chosen[406:])):
        for lang, column in ((src_lang, 0), (tgt_lang, 1)):
            text = "".join(pair[column] + "\n" for pair in part)
            (folder / f"{name}.{lang}").write_bytes(text.encode("utf-8"))


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The overrides that say where the data of a recipe lie here: few lines of them, for speed."""
    name: str = request.param
    if name == "wmt_en_de_base":
        write_pairs(tmp_path / "text", "en", "de")
        return [f"data.root={tmp_path / 'text'}", "data.train=train", "data.valid=valid", "data.test=test"]
    if name == "zh_en_bundled":
        return []
    shared: Path = request.getfixturevalue("shared_data")
    return [f"data.root={shared / 'multi30k' if name.startswith('multi30k') else shared}"]


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("source", SYSTEMS, indirect=True, ids=SYSTEMS)
def test_a_recipe_trains_two_updates(
    source: list[str], request: pytest.FixtureRequest, cli: Cli, tmp_path: Path
) -> None:
    """Pins that each recipe runs from raw text to a checkpoint that `translate` can use, at a small size."""
    name = request.node.callspec.id
    run = tmp_path / "run"
    recipe = REPOSITORY / "recipes" / name / "transformer.yaml"
    done = cli("train", recipe, *TINY, *source, f"run_dir={run}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (run / "checkpoints" / "step_00000002" / "manifest.json").is_file()
    lines = cli("translate", run, "--checkpoint", "latest", stdin="ein Haus\n\nzwei\n", cwd=tmp_path)
    assert (lines.returncode, lines.stdout.count("\n")) == (0, 3), lines.stderr
