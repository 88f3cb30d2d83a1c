"""Recipe files and overrides: what is accepted, how each problem is reported, print and read back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_mt.config import DecodingConfig, Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.recipe import CHANGEABLE, differences, dump_recipe, flatten, load_recipe, parse_section

BASE = """\
run_dir: runs/x
data:
  train: train
  valid: valid
  src_lang: de
  tgt_lang: en
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def writer(text: str | bytes) -> Path:
        path = tmp_path / "recipe.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return writer


@pytest.fixture
def problem(write: Any) -> Any:
    """The text of the error, the file's path cut off."""

    def load(text: str | bytes, *overrides: str) -> str:
        path = write(text)
        with pytest.raises(ConfigError) as caught:
            load_recipe(path, overrides)
        return str(caught.value).replace(str(path), "recipe.yaml")

    return load


def test_a_short_recipe_takes_all_defaults(write: Any, tmp_path: Path) -> None:
    """Pins that names outside a list are lists of one, and that data lie in the recipe's folder."""
    recipe = load_recipe(write(BASE))
    assert recipe.data.train == ("train",)
    assert recipe.data.root == str(tmp_path.resolve())
    assert recipe.decoding == DecodingConfig()


def test_a_tilde_is_the_home_folder(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a folder named ~, in the file or on the command line, where no shell looks behind the `=`."""
    monkeypatch.setenv("HOME", "/home/me")
    text = BASE.replace("runs/x", "~/x").replace("train: train", "train: [~/a/train, b]")
    overrides = ["data.root=~/text", "data.prepared_dir=~/ready", "tokenizer.from=~/other", "data.test=~/t"]
    recipe = load_recipe(write(text), overrides)
    data = recipe.data
    assert (recipe.run_dir, recipe.tokenizer.from_) == ("/home/me/x", "/home/me/other")
    assert (data.root, data.prepared_dir) == ("/home/me/text", "/home/me/ready")
    assert (data.train, data.test) == (("/home/me/a/train", "b"), ("/home/me/t",))


def test_yaml_is_1_2(write: Any) -> None:
    """Pins B192: the language `no` stays text, 3e-4 is a number."""
    recipe = load_recipe(write(BASE.replace("de", "no") + "training:\n  learning_rate: 3e-4\n"))
    assert recipe.data.src_lang == "no"
    assert recipe.training.learning_rate == 3e-4


def test_a_byte_order_mark_is_no_part_of_the_first_key(write: Any) -> None:
    """Pins B024 for recipes."""
    assert load_recipe(write(b"\xef\xbb\xbf" + BASE.encode())).run_dir == "runs/x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "recipe.yaml:1:1: a recipe must be a mapping of keys to values, but it is empty"),
        ("# nothing\n", "recipe.yaml:1:1: a recipe must be a mapping of keys to values, but it is empty"),
        ("- a\n", "recipe.yaml:1:1: a recipe must be a mapping of keys to values, but it is a list"),
        ("word\n", "recipe.yaml:1:1: a recipe must be a mapping of keys to values, but it is a single value"),
        (b"run_dir: \xff\n", "recipe.yaml: is not UTF-8 text (byte 9)"),
        (BASE + "zzz: 1\n", "recipe.yaml:7:1: zzz: no such key; this section takes run_dir, data,"),
        (BASE + "7: 1\n", "7: no such key; this section takes run_dir, data,"),
        (BASE + "training: 3\n", "recipe.yaml:7:1: training: must be a section of keys, but is 3 instead"),
        (BASE + "training:\n", "recipe.yaml:7:1: training: must be a section of keys, but is None instead"),
        (
            BASE + "training:\n  lerning_rate: 3\n",
            "recipe.yaml:8:3: training.lerning_rate: no such key; did you mean learning_rate?",
        ),
        (
            BASE + "training:\n  d_modle: 3\n",
            "recipe.yaml:8:3: training.d_modle: no such key; did you mean model.d_model?",
        ),
        (BASE + "run_dri: a\n", "recipe.yaml:7:1: run_dri: no such key; did you mean run_dir?"),
        (
            BASE + "tokenizer:\n  from_: a\n",
            "recipe.yaml:8:3: tokenizer.from_: no such key; did you mean from?",
        ),
        (
            BASE + "training:\n  max_steps: 1e3\n",
            "recipe.yaml:8:3: training.max_steps: must be a valid integer, but is 1000.0 instead",
        ),
        (
            BASE + "model:\n  preset: huge\n",
            "recipe.yaml:8:3: model.preset: must be 'tiny', 'small', 'base' or 'big', but is 'huge' instead",
        ),
        (
            BASE + "evaluation:\n  metrics: [bleu, blue]\n",
            "recipe.yaml:8:19: evaluation.metrics: must be 'bleu', 'chrf' or 'ter', but is 'blue' instead",
        ),
        (
            BASE + "model:\n  d_ff: 12\n  num_heads: 3\n",
            "recipe.yaml:9:3: model.num_heads: `num_heads` must divide `d_model`, but 3 does not divide 512",
        ),
        (
            BASE + "model:\n  architecture: lstm\n  num_heads: 4\n",
            "recipe.yaml:9:3: model.num_heads: means something to architecture transformer only; remove it",
        ),
        (
            BASE + "model:\n  d_model: 64\n  attention: additive\n",
            "recipe.yaml:9:3: model.attention: means something to architecture lstm only; remove it",
        ),
        (
            BASE + "model:\n  architecture: lstm\n  d_model: 321\n",
            "recipe.yaml:9:3: model.d_model: must be even: half of it reads the source backwards, but is 321",
        ),
        (
            BASE + "model:\n  architecture: lstm\ntraining:\n  compile: true\n",
            "recipe.yaml:10:3: training.compile: the lstm runs in kernels that cannot be compiled; remove",
        ),
        (
            BASE + "model:\n  architecture: lstm\ntraining:\n  activation_dropout: 0.1\n",
            "recipe.yaml:10:3: training.activation_dropout: the lstm has no feed-forward blocks; remove",
        ),
        (BASE + "x: 2020-13-45\n", "recipe.yaml: "),
        (BASE + "x: " + "9" * 5000 + "\n", "recipe.yaml: "),
        (BASE.replace("  valid: valid\n", ""), "recipe.yaml:2:1: data.valid: this key is needed"),
    ],
)
def test_a_bad_recipe_is_reported_with_its_place(problem: Any, text: str | bytes, message: str) -> None:
    """Pins B190 and B193: file, line, column, key, what is wrong and the nearest name, in one line."""
    found = problem(text)
    assert message in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        (BASE + "training:\n\tmax_steps: 3\n", "recipe.yaml:8:1: ", "indent with spaces, not tabs"),
        (BASE + "run_dir: runs/y\n", "recipe.yaml:7:1: ", 'duplicate key "run_dir"'),
        (BASE + "tokenizer: *other\n", "recipe.yaml:7:12: ", "undefined alias"),
        (BASE + "training: [1\n", "recipe.yaml:", ""),
        ("run_dir: \0\n", "recipe.yaml: ", "#x0000"),
    ],
)
def test_text_that_is_no_yaml_names_the_place(problem: Any, text: str, place: str, word: str) -> None:
    """Pins B193 (tab indentation, broken syntax) and that a doubled key is an error."""
    found = problem(text)
    assert found.startswith(place) and word in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ("x: " + "[" * 10_000 + "]" * 10_000, "is nested more than 100 deep; write it flatter"),
        ("x:\n  " + "- " * 1000 + "a", "is nested more than 100 deep; write it flatter"),
        (
            "x: &a0 [1, 1]\n" + "\n".join(f"y{n}: &a{n + 1} [*a{n}, *a{n}, *a{n}]" for n in range(30)),
            "stands for more than 100,000 values with its aliases written out; use fewer",
        ),
        ("# " + "x" * 300_000, "characters, but 262,144 are more than anyone writes; name another file"),
    ],
    ids=["brackets", "dashes", "aliases", "characters"],
)
def test_what_nobody_writes_is_refused_at_once(problem: Any, extra: str, told: str) -> None:
    """Pins seconds for brackets, all memory for aliases, and a message that speaks of recursion."""
    started = time.perf_counter()
    found = problem(BASE + extra)
    assert found.startswith("recipe.yaml: ") and told in found and len(found) < 200
    assert time.perf_counter() - started < 5


def test_an_override_is_limited_and_never_fills_the_screen(problem: Any) -> None:
    deep = problem(BASE, "x=" + "[" * 10_000)
    assert "is nested more than 100 deep" in deep and len(deep) < 400
    dots = problem(BASE, ".".join("a" * 5000) + "=1")
    assert "the key is nested more than 100 deep" in dots and len(dots) < 400
    wrong = problem(BASE, f"training={['x'] * 1000}")
    assert "training: must be a section of keys, but is ['x', " in wrong and len(wrong) < 400


def test_all_problems_are_reported_together(problem: Any) -> None:
    """Pins that a user mends a recipe in one go, one line for each problem."""
    found = problem(BASE + "training:\n  max_stps: 3\n  ema: 2.0\n", "model.d_modl=3")
    assert sorted(line.split(": ")[1] for line in found.split("\n")) == [
        "model.d_modl",
        "training.ema",
        "training.max_stps",
    ]


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    """Pins B193: no traceback for a path that is no file."""
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: no such recipe; name a YAML file"):
        load_recipe(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="is a folder; name the YAML file in it"):
        load_recipe(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be read: Not a directory"):
        (tmp_path / "file").write_bytes(b"")
        load_recipe(tmp_path / "file" / "recipe.yaml")


def test_overrides_change_the_recipe(write: Any) -> None:
    """Pins that overrides are YAML values, that the last one wins, and that they reach sections left out."""
    path = write(BASE)
    recipe = load_recipe(
        path,
        [
            "training.max_steps=3",
            "training.max_steps=4",
            "data.train=[a, b]",
            "run_dir=a=b",
            "tokenizer.from=m",
        ],
    )
    assert recipe.training.max_steps == 4
    assert recipe.data.train == ("a", "b")
    assert recipe.run_dir == "a=b"
    assert recipe.tokenizer.from_ == "m"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.max_steps", "training.max_steps: an override must be written key=value"),
        ("=3", "=3: an override must be written key=value"),
        ("training.max_stps=3", "training.max_stps: no such key; did you mean max_steps?"),
        ("trainng.max_steps=3", "trainng: no such key; did you mean training?"),
        ("max_steps=3", "max_steps: no such key; did you mean training.max_steps?"),
        ("training.max_steps=many", "training.max_steps: must be a valid integer, but is 'many' instead"),
        ("training.max_steps=", "training.max_steps: must be a valid integer, but is None instead"),
        ("training=3", "training: must be a section of keys, but is 3 instead"),
        ("run_dir.x=3", "run_dir.x: `run_dir` is a value, not a section"),
        ("run_dir=[1", "run_dir=[1: the value is not YAML; quote it"),
        ("run_dir=2020-13-45", "run_dir=2020-13-45: the value is not YAML; quote it"),
        ("data.train=", "data.train: must be a name or a list of names, but is None instead"),
        (
            "model.num_heads=3",
            "model.num_heads: `num_heads` must divide `d_model`, but 3 does not divide 512",
        ),
    ],
)
def test_a_bad_override_is_blamed_on_the_command_line(problem: Any, override: str, message: str) -> None:
    """Pins B190 for the command line: the same checks, never ignored, and no line of the file is blamed."""
    assert problem(BASE, override) == f"command line: {message}"


def test_data_root_is_relative_to_where_it_was_written(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins that a recipe finds its data from any folder, while an override means what the shell means."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    path = write(BASE.replace("data:\n", "data:\n  root: text\n"))
    assert load_recipe(path).data.root == str((tmp_path / "text").resolve())
    assert load_recipe(path, ["data.root=text"]).data.root == str((elsewhere / "text").resolve())


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_printed_recipe_reads_back_equal(write: Any, architecture: str) -> None:
    """Pins --print-config: every key is there, and the text gives the same recipe."""
    model = f"model:\n  architecture: {architecture}\n  preset: tiny\n"
    recipe = load_recipe(write(BASE + model + "training:\n  eps: 1e-12\n"))
    text = dump_recipe(recipe)
    assert load_recipe(write(text)) == recipe
    for key in flatten(recipe):
        assert f"{key.rsplit('.', 1)[-1]}:" in text


awkward = st.one_of(
    st.sampled_from(
        [
            "no",
            "null",
            "~",
            "3e-4",
            "1",
            "2024-01-01",
            "a: b",
            "- x",
            "#",
            "'",
            '"',
            " x ",
            "a\nb",
            "=",
            "<<",
            "\x85\U00080616",
        ]
    ),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12),
)


@settings(max_examples=60, deadline=None)
@given(name=awkward, rate=st.floats(1e-30, 1e30), steps=st.integers(1, 2**31 - 1))
def test_any_text_and_number_survives_printing(
    tmp_path_factory: pytest.TempPathFactory, name: str, rate: float, steps: int
) -> None:
    """Pins that names which look like YAML are quoted and that numbers keep every digit."""
    recipe = Recipe.model_validate(
        {
            "run_dir": name,
            "data": {"root": "/", "train": [name], "valid": ["v"], "src_lang": name, "tgt_lang": "en"},
            "training": {"learning_rate": rate, "max_steps": steps},
        }
    )
    path = tmp_path_factory.mktemp("printed") / "recipe.yaml"
    path.write_bytes(dump_recipe(recipe).encode("utf-8"))
    assert load_recipe(path) == recipe


def changed(recipe: Recipe, section: str, **values: Any) -> Recipe:
    return recipe.model_copy(update={section: getattr(recipe, section).model_copy(update=values)})


def test_differences_separate_what_a_continued_run_may_change(write: Any) -> None:
    """Pins B106: a changed model or data key is never mixed into an old run, a longer run is allowed."""
    old = load_recipe(write(BASE))
    new = changed(
        changed(changed(old, "training", max_steps=7, dropout=0.3), "model", d_ff=64), "decoding", nbest=2
    )
    allowed, refused = differences(old, new)
    assert allowed == {"training.max_steps": (100_000, 7), "decoding.nbest": (1, 2)}
    assert refused == {"training.dropout": (0.1, 0.3), "model.d_ff": (2048, 64)}
    assert differences(old, old) == ({}, {})


def test_another_architecture_is_another_run(write: Any) -> None:
    """Pins keys that only one of two recipes has: they count as changed, and none is looked up in vain."""
    of_transformer = load_recipe(write(BASE + "model: {preset: tiny}\n"))
    of_lstm = load_recipe(write(BASE + "model: {preset: tiny, architecture: lstm}\n"))
    for old, new in ((of_transformer, of_lstm), (of_lstm, of_transformer)):
        names = old.model.architecture, new.model.architecture
        assert differences(old, new)[1]["model.architecture"] == names


def test_auto_agrees_with_what_it_was_resolved_to(write: Any) -> None:
    """Pins that continuing with `precision: auto` does not refuse the run's own resolved value."""
    asked = load_recipe(write(BASE))
    resolved = changed(asked, "training", precision="bf16")
    assert differences(resolved, asked) == ({}, {})
    refused = differences(resolved, changed(asked, "training", precision="fp32"))[1]
    assert refused == {"training.precision": ("bf16", "fp32")}


def test_changeable_keys_exist(write: Any) -> None:
    """Pins that no key of the list is misspelt: a misspelt one would silently refuse the real key."""
    assert set(flatten(load_recipe(write(BASE)))) >= CHANGEABLE


def test_a_file_of_another_kind_is_refused_quickly(write: Any) -> None:
    """Its first keys are told, and how many more there are."""
    with pytest.raises(ConfigError) as error:
        load_recipe(write(BASE + "".join(f"strange{number}: 1\n" for number in range(60))))
    told = str(error.value).split("\n")
    assert len(told) == 51
    assert "strange49: no such key" in told[-2]
    assert told[-1].endswith(".yaml: has 10 more; mend these first, or name another file")


def test_flags_go_through_the_same_checks() -> None:
    """Pins that a decoding flag is checked like its recipe key and is named as the user typed it."""
    base = DecodingConfig(beam_size=3)
    assert parse_section({"length_penalty": 0.5}, base) == DecodingConfig(beam_size=3, length_penalty=0.5)
    with pytest.raises(
        ConfigError, match=r"^command line: --beam-size: must be greater than or equal to 1, but is 0"
    ):
        parse_section({"beam_size": 0}, base)
    with pytest.raises(
        ConfigError,
        match=r"^command line: --nbest: .* `beam_size`, but 4 > 3; .* \(--beam-size 4\)$",
    ):
        parse_section({"nbest": 4}, base)
    with pytest.raises(ConfigError, match=r"^command line: --seed: 3 is that of what is drawn, but nothing"):
        parse_section({"seed": 3}, base)
    assert parse_section({"seed": 3, "temperature": 1.0}, base).seed == 3
    assert parse_section({}, DecodingConfig(seed=3)).seed == 3
