"""Study files: what they resolve to, how problems are reported, and that those of the repository resolve."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.errors import ConfigError
from transformer_mt.recipe import load_recipe
from transformer_mt.studies.study import load_study, value_text
from transformer_mt.yaml_file import parse_override

RECIPE = """\
run_dir: runs/x
data:
  train: train
  valid: valid
  test: test
  src_lang: de
  tgt_lang: en
training:
  learning_rate: 4e-3
"""
STUDY = """\
run_dir: runs/studies/s
recipe: ../base.yaml
overrides: {training.max_steps: 7, training.dropout: 0.2}
variants:
  plain: {}
  hot: {overrides: {training.learning_rate: 3e-2, training.dropout: 0.4}}
"""
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """write(text) -> a study file in recipes/studies below the current folder; recipes/ holds two recipes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "recipes" / "studies"
    folder.mkdir(parents=True)
    (folder.parent / "base.yaml").write_text(RECIPE, encoding="utf-8")
    other = RECIPE.replace("test: test", "test: [test, more]") + "model:\n  architecture: lstm\n"
    (folder.parent / "other.yaml").write_text(other, encoding="utf-8")

    def writer(text: str) -> Path:
        (folder / "s.yaml").write_text(text, encoding="utf-8")
        return Path("recipes") / "studies" / "s.yaml"

    return writer


def test_later_layers_win_and_every_trial_has_its_own_place(write: Write) -> None:
    """Pins the order: recipe, study, variant, command line; and what is special about each variant."""
    study = load_study(write(STUDY), ["training.max_steps=3", "training.seed=9"])
    plain, hot = study.trials
    assert (plain.recipe.training.learning_rate, hot.recipe.training.learning_rate) == (4e-3, 3e-2)
    assert (plain.recipe.training.dropout, hot.recipe.training.dropout) == (0.2, 0.4)
    assert {(one.recipe.training.max_steps, one.recipe.training.seed) for one in study.trials} == {(3, 9)}
    assert [str(one.run_dir) for one in study.trials] == ["runs/studies/s/plain", "runs/studies/s/hot"]
    assert (plain.special, hot.special) == ({}, {"training.learning_rate": 3e-2, "training.dropout": 0.4})
    assert study.section.compare


def test_seeds_make_a_trial_each(write: Write) -> None:
    """Pins the names of the folders, and that a variant's recipe is found from the study file."""
    text = STUDY.replace("variants:", "seeds: [4, 5]\nvariants:\n  lstm: {recipe: ../other.yaml}")
    trials = load_study(write(text), ["data.test=test", "run_dir=runs/t"]).trials
    assert [one.name for one in trials[:3]] == ["lstm_seed4", "lstm_seed5", "plain_seed4"]
    assert [one.recipe.training.seed for one in trials[:3]] == [4, 5, 4]
    assert [one.recipe.model.architecture for one in trials[:3]] == ["lstm", "lstm", "transformer"]
    assert str(trials[1].run_dir) == "runs/t/lstm_seed5"
    assert trials[0].special == {"recipe": "../other.yaml"}


def test_the_command_line_chooses_seeds_and_comparison(write: Write) -> None:
    """Pins that run_dir, seeds and compare are the study's and no keys of the recipes."""
    study = load_study(write(STUDY), ["seeds=[8]", "compare=false"])
    assert [one.name for one in study.trials] == ["plain_seed8", "hot_seed8"]
    assert not study.section.compare


def test_the_words_of_a_trial_make_the_same_recipe(write: Write) -> None:
    """Pins that the process that trains a trial resolves what was checked, quotes and all."""
    text = STUDY.replace("{training.max_steps: 7,", "{training.max_steps: 7, data.train: ['1', \"a 'b\"],")
    for trial in load_study(write(text), ["data.valid='no: 1'", "training.eps=1e-9"]).trials:
        path, *overrides = trial.words
        assert path == "recipes/base.yaml"
        assert len({word.split("=")[0] for word in overrides}) == len(overrides)
        assert load_recipe(path, overrides) == trial.recipe


def test_a_data_root_is_relative_to_where_it_was_written(write: Write, tmp_path: Path) -> None:
    """Pins three bases: the recipe's folder, the study's folder, the current folder."""
    plain = write(STUDY)
    assert load_study(plain).trials[0].recipe.data.root == str(tmp_path / "recipes")
    in_file = write(STUDY.replace("{training.max_steps", "{data.root: ../text, training.max_steps"))
    trial = load_study(in_file).trials[0]
    assert trial.recipe.data.root == str(tmp_path / "recipes" / "text")
    assert "data.root=recipes/text" in trial.words
    assert load_study(in_file, ["data.root=t"]).trials[0].recipe.data.root == str(tmp_path / "t")


def test_a_tilde_is_the_home_folder(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pins a folder named ~ wherever a study names a path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    text = STUDY.replace("run_dir: runs", "run_dir: ~/runs").replace("../base.yaml", "~/recipes/base.yaml")
    trial = load_study(
        write(text.replace("{training.max_steps", "{data.root: ~/text, training.max_steps"))
    ).trials[0]
    assert trial.run_dir == tmp_path / "runs" / "studies" / "s" / "plain"
    assert trial.recipe.data.root == str(tmp_path / "text")


PRINTABLE = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")))
# No denormals: another test of the process may have had them flushed to zero, as training does.
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False) | st.integers()


@given(PRINTABLE | NUMBERS | st.booleans() | st.none() | st.lists(PRINTABLE | NUMBERS))
def test_any_value_survives_the_command_line(value: object) -> None:
    """Pins text that reads like a number, spaces, quotes, signs of YAML."""
    assert parse_override(f"key={value_text(value)}").value == value


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "recipe: ../base.yaml\n",
            "recpie: ../base.yaml\n",
            "2:1: recpie: no such key; did you mean recipe?",
        ),
        (
            "  plain: {}",
            "  plain: {overides: {}}",
            "5:11: variants.plain.overides: no such key; did you mean",
        ),
        ("  plain: {}", "  plain:", "5:3: variants.plain: must be a section of keys, but is None instead"),
        ("recipe: ../base.yaml\n", "", "4:3: variants.plain: has no recipe; name one here, or one for all"),
        ("plain", "prepared", "4:1: variants: a name must consist of"),
        ("plain", "a/b", "but is 'a/b' instead"),
        ("  plain: {}\n", "", "compare: there is one variant only; add another, or set compare to false"),
        ("recipe: .", "seeds: [2, 2]\nrecipe: .", "2:1: seeds: must differ, but are [2, 2]"),
        ("recipe: .", "seeds: 3\nrecipe: .", "2:1: seeds: must be a valid list, but is 3 instead"),
        ("studies/s\n", "a,b\n", "1:1: run_dir: must hold no comma"),
        ("../base.yaml", "../bass.yaml", "recipes/bass.yaml: no such recipe"),
        (
            "max_steps: 7",
            "max_stps: 7",
            "s.yaml:3:13: overrides.training.max_stps: no such key; did you mean max_steps?",
        ),
        (
            "learning_rate: 3e-2",
            "lerning_rate: 3",
            "s.yaml:6:21: variants.hot.overrides.training.lerning_rate: no such key; did you mean learning",
        ),
        (
            "training.learning_rate: 3e-2",
            "training: {dropout: 1}",
            "hot.overrides.training: must be written with",
        ),
        (
            "{training.max_steps",
            "{run_dir: x, training.max_steps",
            "overrides.run_dir: every trial has its own",
        ),
        (
            "{training.learning_rate: 3e-2, training.dropout: 0.4}",
            "{training.learning_rate: 4e-3}",
            "s.yaml:6:3: variants.hot: is the same system as plain; give it an override, or remove it",
        ),
        (
            "plain: {}",
            "plain: {overrides: {data.test: []}}",
            "variants.plain: has no data.test to compare on",
        ),
        (
            "plain: {}",
            "plain: {recipe: ../other.yaml}",
            "variants.hot: has another data.test or other languages",
        ),
    ],
)
def test_a_bad_study_is_reported_with_its_place(write: Write, old: str, new: str, message: str) -> None:
    """Pins file, line, column, variant and key of each problem, in one line."""
    assert old in STUDY
    with pytest.raises(ConfigError) as caught:
        load_study(write(STUDY.replace(old, new, 1)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.max_stps=3"], "command line: training.max_stps: no such key; did you mean max_steps?"),
        (["seeds=[1]", "training.seed=3"], "command line: training.seed: is set by seeds [1]; leave one"),
        (["seeds=x"], "command line: seeds: must be a valid list, but is 'x' instead"),
        (["recipe=x"], "command line: recipe: no such key"),
        (["training"], "command line: training: an override must be written key=value"),
        (["training.seed=[1"], "command line: training.seed=[1: the value is not YAML"),
    ],
)
def test_a_bad_command_line_is_told_once(write: Write, overrides: list[str], message: str) -> None:
    """Pins that a problem all variants share is one line."""
    with pytest.raises(ConfigError) as caught:
        load_study(write(STUDY), overrides)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_all_problems_of_all_variants_are_reported_together(write: Write) -> None:
    """Pins that a typo in the last variant shows at once, and who is meant where the line does not tell."""
    text = STUDY.replace("training.max_steps: 7", "model.d_modl: 7, model.d_model: 24")
    text = text.replace("plain: {}", "plain: {overrides: {model.num_heads: 6}}").replace("out: 0.4", "ot: 1")
    with pytest.raises(ConfigError) as caught:
        load_study(write(text))
    assert [line.split("s.yaml:")[1].split(";")[0] for line in str(caught.value).split("\n")] == [
        "3:13: overrides.model.d_modl: no such key",
        "6:51: variants.hot.overrides.training.dropot: no such key",
    ]
    with pytest.raises(ConfigError, match=r"num_heads.*\(variant hot\)"):
        load_study(write(text.replace("model.d_modl: 7", "model.num_heads: 5").replace("dropot", "dropout")))


def test_mistakes_of_the_file_and_of_its_variants_are_reported_together(write: Write) -> None:
    """Pins one mistake after the other: keys and names of the study, overrides, the command line."""
    text = STUDY.replace("overrides: {training.max", "seedz: [1]\noverrides: {training.max")
    text = text.replace("plain: {}", "plain: {resipe: x}\n  1e3: {recipe: ../no.yaml}").replace(
        "out: 0.4", "ot: 1"
    )
    with pytest.raises(ConfigError) as caught:
        load_study(write(text), ["seeds=x", "data.tst=a", "nothing"])
    expected = [
        "s.yaml:7:3: variants: the name 1000.0 is not text",
        "command line: seeds: must be a valid list",
        "s.yaml:3:1: seedz: no such key; did you mean seeds?",
        "s.yaml:6:11: variants.plain.resipe: no such key; did you mean recipe?",
        "command line: nothing: an override must be written key=value",
        "command line: data.tst: no such key; did you mean test?",
        "s.yaml:8:51: variants.hot.overrides.training.dropot: no such key",
        "recipes/no.yaml: no such recipe; name a YAML file (variant 1000.0)",
    ]
    found = str(caught.value).split("\n")
    assert len(found) == len(expected)
    for line in expected:
        assert any(one.removeprefix("recipes/studies/").startswith(line) for one in found), line


def test_variants_that_cannot_be_compared_are_all_named(write: Write) -> None:
    text = STUDY.replace("  plain: {}", "  plain: {}\n  twin: {}\n  far: {overrides: {data.test: x}}")
    with pytest.raises(ConfigError) as caught:
        load_study(write(text))
    twin, far = str(caught.value).split("\n")
    assert "variants.twin: is the same system as plain" in twin
    assert "variants.far: has another data.test or other languages than plain" in far


def test_every_study_of_the_repository_resolves(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins the head comment, the run directory, and that each command of the file's head would begin."""
    monkeypatch.chdir(repository)
    paths = sorted(Path("recipes/studies").glob("*.yaml"))
    assert len(paths) >= 6
    for path in paths:
        study = load_study(path)
        assert len(study.trials) >= 2
        assert study.run_dir == Path("runs/studies") / path.stem
        head = path.read_text(encoding="utf-8").split("run_dir:")[0]
        assert all(line.startswith("#") for line in head.rstrip("\n").split("\n"))
        for word in (
            "Question:",
            "Must exist first:",
            f"Command:          transformer-mt study {path}",
            "Came out:",
        ):
            assert word in head
        assert shlex.split(shlex.join(study.trials[0].words)) == study.trials[0].words


def test_both_models_are_tuned_by_the_same_trials(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a fair choice of settings: grid, updates and seed are the same, test sets are not used."""
    monkeypatch.chdir(repository)
    grids = []
    for name in ("transformer", "lstm"):
        study = load_study(f"recipes/studies/tune_multi30k_de_en_{name}.yaml")
        assert not study.section.compare
        assert {one.recipe.model.architecture for one in study.trials} == {name}
        grids.append([(one.variant, one.recipe.training) for one in study.trials])
    assert grids[0] == grids[1] and len(grids[0]) == 6


QUICK = """\
quick:
  recipe: ../other.yaml
  seeds: [5]
  variants: [hot]
  overrides: {training.max_steps: 2, training.dropout: 0.0}
"""


def test_the_quick_size_comes_last_and_stays_apart(write: Write) -> None:
    """Pins recipe, seeds, variants and the order of overrides; the full size knows nothing of it."""
    path = write(STUDY + QUICK)
    quick = load_study(path, quick=True)
    (hot,) = quick.trials
    assert (hot.name, hot.recipe.model.architecture) == ("hot_seed5", "lstm")
    assert (hot.recipe.training.max_steps, hot.recipe.training.dropout) == (2, 0.0)
    assert hot.recipe.training.learning_rate == 3e-2
    assert (str(quick.run_dir), quick.section.compare, quick.quick) == ("runs/studies/s_quick", False, True)
    full = load_study(path)
    assert len(full.trials) == 2 and full.trials[0].recipe.training.max_steps == 7
    own = load_study(path, ["run_dir=runs/q", "seeds=[7]", "training.max_steps=1"], quick=True)
    assert (own.trials[0].name, str(own.run_dir)) == ("hot_seed7", "runs/q")
    assert own.trials[0].recipe.training.max_steps == 1


def test_the_quick_size_may_have_variants_of_its_own(write: Write) -> None:
    text = STUDY + "quick: {variants: {small: {overrides: {model.preset: tiny}}}}\n"
    (small,) = load_study(write(text), quick=True).trials
    assert (small.name, small.recipe.training.max_steps) == ("small", 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STUDY + "quick: {variants: [cold]}\n", "quick.variants: there is no variant cold; the variants are"),
        (STUDY + "train: false\n", "compare: nothing is trained, so nothing can be compared"),
        (STUDY + "train: false\ncompare: false\n", "measure: nothing is trained, so something must be"),
        (
            STUDY + "claims: [{claim: x, metric: m, variant: cold, at_most: 1}]\n",
            "claims: claim 1 is about cold, but the variants are plain, hot",
        ),
        (
            STUDY + "claims: [{claim: x, metric: m, variant: hot, at_mots: 1}]\n",
            r"s\.yaml:7:46: claims\.at_mots: no such key; did you mean at_most",
        ),
        (
            STUDY + "claims: [{claim: x, metric: m, variant: hot, at_most: 1, at: {length: [1]}}]\n",
            r"s\.yaml:7:63: claims\.at\.length: must be a number or a text, but is \[1\] instead",
        ),
        (STUDY + "pictures: [{metric: m, ovre: x}]\n", "pictures.ovre: no such key; did you mean over"),
        (
            STUDY + "measure: {update_cost: {lengths: [8], tokns: 8}}\n",
            r"measure\.update_cost\.tokns: no such key; did you mean tokens",
        ),
        (STUDY + "pictures: [{metric: m, log: true}]\n", "pictures.log: bars begin at 0, which no log"),
        (
            STUDY.replace("hot: {", "hot: {recipe: ../other.yaml, ")
            + "compare: false\nmeasure: {attention_cost: {lengths: [8]}}\n",
            r"measure\.attention_cost: needs the attention heads .* \(variant hot\)$",
        ),
        (
            STUDY.replace("plain: {}", "plain: {overrides: {model.positions: learned}}")
            + "measure: {update_cost: {lengths: [5000]}}\n",
            r"measure\.update_cost\.lengths: 5000 is beyond the learned positions.*\(variant plain\)$",
        ),
        (STUDY + "quick: {varaints: [hot]}\n", "quick.varaints: no such key; did you mean variants"),
        (
            STUDY + "quick: {variants: {cold: {overides: {}}}}\n",
            r"s\.yaml:7:27: quick\.variants\.cold\.overides: no such key; did you mean overrides",
        ),
        (STUDY + "quick: {variants: [{}]}\n", "quick.variants: must be a section of keys"),
    ],
)
def test_what_does_not_fit_together_is_told(write: Write, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_study(write(text))


@pytest.mark.parametrize(
    ("quick", "message"),
    [
        ("variants: {a/b: {}}", "7:1: quick: variants: a name must consist of"),
        ("seeds: [1, 1]", "7:1: quick: seeds: must differ"),
        ("variants: [hot], compare: true", "7:1: quick: compare: there is one variant only"),
    ],
)
def test_a_quick_size_is_checked_like_any_other(write: Write, quick: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_study(write(STUDY + f"quick: {{{quick}}}\n"), quick=True)
    assert "\n" not in str(caught.value)


def test_a_quick_size_judges_the_variants_that_it_has(write: Write) -> None:
    claims = [f"{{claim: {name}, metric: m, variant: {name}, at_most: 1}}" for name in ("plain", "hot")]
    path = write(f"{STUDY}{QUICK}claims: [{', '.join(claims)}]\n")
    assert [one.claim for one in load_study(path, quick=True).section.claims] == ["hot"]
    assert [one.claim for one in load_study(path).section.claims] == ["plain", "hot"]


def test_a_study_without_a_quick_size_says_so(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"s\.yaml: has no quick size"):
        load_study(write(STUDY), quick=True)
