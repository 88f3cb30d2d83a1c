"""Every recipe of the repository: it parses, says what it must, and trains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY, Cli
from tests.small_corpora import write_head, write_made_up
from transformer_mt.config import Recipe
from transformer_mt.model.build import build_model
from transformer_mt.recipe import flatten, load_recipe

RECIPES = sorted((REPOSITORY / "recipes").glob("*_*/*.yaml"))
NAMES = [f"{path.parent.name}/{path.name}" for path in RECIPES]
KINDS = ("transformer", "lstm")
SYSTEMS = ("zh_en_bundled", "multi30k_de_en", "multi30k_en_de", "tatoeba_3am_zh_en", "wmt_en_de_base")
COMPARED = SYSTEMS[:4]
"""Those with an LSTM beside the Transformer."""
TINY = (
    "model.preset=tiny",
    "model.d_model=16",
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


@pytest.mark.parametrize("name", COMPARED)
def test_the_baseline_differs_in_the_model_and_what_was_tuned_for_it(name: str) -> None:
    """Pins the fair comparison: same data, batches, stopping rule, search and number of weights."""
    ours, theirs = (load_recipe(REPOSITORY / "recipes" / name / f"{kind}.yaml") for kind in KINDS)
    old, new = flatten(ours), flatten(theirs)
    tuned = {"training.learning_rate", "training.dropout"}
    differ = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert {key for key in differ - tuned if not key.startswith("model.")} == {"run_dir"}
    size = ours.tokenizer.vocab_size
    with torch.device("meta"):
        models = [build_model(recipe.model, size, size) for recipe in (ours, theirs)]
    counts = [sum(weight.numel() for weight in model.parameters()) for model in models]
    assert 0.9 < counts[1] / counts[0] < 1.1


def test_the_recipe_with_noise_differs_in_the_noise_alone() -> None:
    """Pins that the scores of the two tell what noise costs and gains."""
    folder = REPOSITORY / "recipes" / "multi30k_de_en"
    old, new = (
        flatten(load_recipe(folder / name)) for name in ("transformer.yaml", "transformer_noise.yaml")
    )
    differ = {key for key in old if old[key] != new[key]}
    assert differ == {"run_dir", *(key for key in old if key.startswith("data.noise."))}


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
    model = {"preset": "base", **tree.get("model", {})}
    model = {key: model[key] for key in ("architecture", "preset") if key in model}
    plain = flatten(Recipe.model_validate({"run_dir": "x", "data": data, "model": model}))
    needed = {"run_dir", *(f"model.{key}" for key in model), *(f"data.{key}" for key in data)}
    written = set(leaves(tree)) - {"run_dir"}
    recipe = flatten(load_recipe(path))
    assert [key for key in sorted(written - needed) if recipe[key] == plain[key]] == []


def leaves(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of all values of a recipe."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The overrides that say where the data of a recipe lie here: few lines of them, for speed."""
    name: str = request.param
    text = tmp_path / "text"
    if name == "wmt_en_de_base":
        write_made_up(text, "en", "de")
        return [
            *(f"data.{key}" for key in (f"root={text}", "train=train", "valid=valid", "test=test")),
            "tokenizer.vocab_size=320",
        ]
    if name == "zh_en_bundled":
        write_head(REPOSITORY / "data" / "zh_en", text)
        return [f"data.root={text}", "tokenizer.vocab_size=900"]
    shared: Path = request.getfixturevalue("shared_data")
    if name == "tatoeba_3am_zh_en":
        for folder in ("tatoeba-zh-en", "3am-zh-en"):
            write_head(shared / folder, text / folder)
        return [f"data.root={text}", "tokenizer.vocab_size=2000"]
    write_head(shared / "multi30k", text)
    return [f"data.root={text}", "tokenizer.vocab_size=700"]


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize(
    ("kind", "source"),
    [
        *(("transformer", name) for name in SYSTEMS),
        *(("lstm", name) for name in COMPARED),
        ("transformer_noise", "multi30k_de_en"),
    ],
    indirect=["source"],
)
def test_a_recipe_trains_two_updates(
    kind: str, source: list[str], request: pytest.FixtureRequest, cli: Cli, tmp_path: Path
) -> None:
    """Pins that each recipe runs from raw text to a checkpoint, at a small size."""
    name = request.node.callspec.params["source"]
    run = tmp_path / "run"
    recipe = REPOSITORY / "recipes" / name / f"{kind}.yaml"
    own = ("model.d_ff=24", "model.num_heads=2") if kind != "lstm" else ()
    done = cli("train", recipe, *TINY, *own, *source, f"run_dir={run}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert (run / "checkpoints" / "step_00000002" / "manifest.json").is_file()
    assert (run / "tokenizer.model").is_file()
