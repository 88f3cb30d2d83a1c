"""The recipe schema: defaults, presets, and the checks that span several keys."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import BaseModel, ValidationError

from transformer_mt.config import (
    PRESETS,
    DataConfig,
    DecodingConfig,
    EvaluationConfig,
    ModelConfig,
    NoiseConfig,
    Recipe,
    TokenizerConfig,
    TrainingConfig,
)
from transformer_mt.model.build import build_model

DATA = {"train": ["a"], "valid": ["b"], "src_lang": "de", "tgt_lang": "en"}


def recipe(**sections: Any) -> Recipe:
    return Recipe.model_validate({"run_dir": "runs/x", "data": DATA, **sections})


@pytest.mark.parametrize(
    ("architecture", "preset"), [(name, preset) for name, presets in PRESETS.items() for preset in presets]
)
def test_a_preset_fills_every_size(architecture: str, preset: str) -> None:
    """Pins that a preset sets what it says; a preset that were ignored would train the base model."""
    model = ModelConfig.model_validate({"architecture": architecture, "preset": preset})
    sizes = PRESETS[architecture][preset]
    assert {name: getattr(model, name) for name in sizes} == sizes


@pytest.mark.parametrize("preset", sorted(PRESETS["transformer"]))
def test_presets_of_one_name_are_of_one_size(preset: str) -> None:
    """Pins the fair comparison: within 10% of each other's parameters, at 8,000 pieces."""
    counts = []
    with torch.device("meta"):
        for architecture in ("transformer", "lstm"):
            config = ModelConfig.model_validate({"architecture": architecture, "preset": preset})
            counts.append(sum(weight.numel() for weight in build_model(config, 8000, 8000).parameters()))
    assert 0.9 < counts[1] / counts[0] < 1.1


@pytest.mark.parametrize(
    ("architecture", "key", "value", "owner"),
    [("lstm", "num_heads", 4, "transformer"), ("transformer", "input_feeding", True, "lstm")],
)
def test_a_key_of_the_other_architecture_is_refused(
    architecture: str, key: str, value: object, owner: str
) -> None:
    """Pins that nobody sets what nothing reads, and that what is printed reads back all the same."""
    with pytest.raises(ValidationError, match=f"{key}: means something to architecture {owner} only"):
        ModelConfig.model_validate({"architecture": architecture, key: value})
    config = ModelConfig.model_validate({"architecture": architecture})
    assert key not in config.model_dump()
    assert ModelConfig.model_validate(config.model_dump()) == config


def test_a_size_in_the_recipe_wins_over_the_preset() -> None:
    """Pins the order of preset and key."""
    model = ModelConfig.model_validate({"preset": "tiny", "d_ff": 384})
    assert (model.d_model, model.d_ff) == (PRESETS["transformer"]["tiny"]["d_model"], 384)


def test_base_is_the_default_and_its_sizes_are_the_papers() -> None:
    """Pins that the written defaults and the base preset cannot drift apart."""
    base = PRESETS["transformer"]["base"]
    assert {name: ModelConfig.model_fields[name].default for name in base} == base
    assert ModelConfig.model_validate({}) == ModelConfig.model_validate({"preset": "base"})


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (ModelConfig, {"num_heads": 7}, "num_heads: .* 7 does not divide 512"),
        (ModelConfig, {"preset": "tiny", "num_kv_heads": 3}, "num_kv_heads: .* 3 does not divide 4"),
        (
            ModelConfig,
            {"d_model": 12, "num_heads": 4, "positions": "rotary"},
            "positions: .* even head size, but d_model / num_heads is 3",
        ),
        (ModelConfig, {"preset": "huge"}, "preset"),
        (ModelConfig, {"architecture": "cnn"}, "architecture"),
        (
            TrainingConfig,
            {"schedule": "wsd", "warmup_steps": 60, "decay_steps": 50, "max_steps": 100},
            "decay_steps: .* must not exceed `max_steps`, but 60 \\+ 50 > 100",
        ),
        (
            TrainingConfig,
            {"learning_rate": 0.001, "min_learning_rate": 0.01},
            "min_learning_rate: must not exceed `learning_rate`, but 0.01 > 0.001",
        ),
        (DecodingConfig, {"beam_size": 4, "nbest": 5}, "nbest: .* must not exceed `beam_size`, but 5 > 4"),
        (
            DecodingConfig,
            {"min_length": 21, "max_len_a": 0},
            "min_length: 21 tokens are more .* `max_len_b` 20 with `max_len_a` 0; lower it",
        ),
        (DecodingConfig, {"top_k": 5}, "top_k: 5 narrows .* set `temperature` above 0"),
        (DecodingConfig, {"top_p": 0.9}, "top_p: 0.9 narrows .* set `temperature` above 0"),
        (
            DecodingConfig,
            {"coverage_penalty": 0.2, "beam_size": 1},
            "coverage_penalty: 0.2 .* but beam_size is 1; set it to 0",
        ),
        (
            DecodingConfig,
            {"coverage_penalty": 0.2, "temperature": 0.5},
            "coverage_penalty: 0.2 .* but temperature is 0.5; set it to 0",
        ),
        (DecodingConfig, {"repetition_penalty": 0.9}, "repetition_penalty"),
        (DecodingConfig, {"temperature": 1.0, "top_p": 0.0}, "top_p"),
        (DecodingConfig, {"max_len_a": 1e300}, "max_len_a"),
        (DecodingConfig, {"length_penalty": 1e300}, "length_penalty"),
        (TrainingConfig, {"seed": 2**31}, "seed"),
        (TokenizerConfig, {"vocab_size": 2**31}, "vocab_size"),
        (EvaluationConfig, {"metrics": []}, "metrics"),
        (DataConfig, {**DATA, "train": []}, "train"),
        (DataConfig, {**DATA, "valid": []}, "valid"),
        (DataConfig, {**DATA, "train": ["a", ""]}, "train"),
    ],
)
def test_impossible_values_are_refused(
    section: type[BaseModel], values: dict[str, Any], message: str
) -> None:
    """Pins each check of one section, with the key it blames and the numbers it found."""
    with pytest.raises(ValidationError, match=message):
        section.model_validate(values)


def test_a_shortest_length_that_some_translation_can_have_is_taken() -> None:
    """One token may always come; with max_len_a a line may be long enough for any."""
    for values in ({"max_len_a": 0, "max_len_b": 0}, {"max_len_a": 0.1, "min_length": 500}):
        DecodingConfig.model_validate(values)


def test_draws_may_be_more_than_the_beam() -> None:
    """Samples are independent: there is no beam they would have to be in."""
    decoding = DecodingConfig(temperature=1.0, beam_size=2, nbest=9, top_k=5, top_p=0.9)
    assert (decoding.nbest, decoding.top_k, decoding.top_p) == (9, 5, 0.9)


def test_wsd_may_fill_the_whole_run() -> None:
    """Pins the edge of the schedule check: warm-up and decay may touch."""
    training = TrainingConfig(schedule="wsd", warmup_steps=60, decay_steps=40, max_steps=100)
    assert training.decay_steps == 40


def test_three_way_tying_needs_a_joint_vocabulary() -> None:
    """Pins that embeddings of two vocabularies are never tied (B163)."""
    with pytest.raises(
        ValidationError, match=r"model\.tied_embeddings: three_way needs one joint vocabulary"
    ):
        recipe(tokenizer={"shared": False})
    assert recipe(tokenizer={"shared": False}, model={"tied_embeddings": "decoder"}).tokenizer.shared is False


def test_learned_positions_hold_the_longest_training_sentence() -> None:
    """Pins that a table too short is found before training, not at its first long sentence (B052)."""
    with pytest.raises(ValidationError, match=r"model\.max_positions: .* 100 < data\.max_length 256"):
        recipe(model={"positions": "learned", "max_positions": 100})


@pytest.mark.parametrize("value", [True, "3", 3.0, 0, -1, 2**31])
def test_counts_are_whole_positive_numbers(value: object) -> None:
    """Pins that nothing is converted on the quiet (B192): yes, "3" and 3.0 are no update count."""
    with pytest.raises(ValidationError, match="max_steps"):
        TrainingConfig.model_validate({"max_steps": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1e-3, True, "1e-3"])
def test_a_learning_rate_is_a_finite_positive_number(value: object) -> None:
    """Pins B192 and the not-a-number recipes that would spoil weights at the first update."""
    with pytest.raises(ValidationError, match="learning_rate"):
        TrainingConfig.model_validate({"learning_rate": value})


def sections(model: type[BaseModel]) -> list[type[BaseModel]]:
    found = [model]
    for field in model.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += sections(field.annotation)
    return found


@pytest.mark.parametrize("section", sections(Recipe), ids=lambda section: section.__name__)
def test_sections_are_frozen_and_every_key_explains_itself(section: type[BaseModel]) -> None:
    """Pins that no stage can change the recipe under another, and that no key is undocumented."""
    assert section.model_config["frozen"] and section.model_config["extra"] == "forbid"
    for name, field in section.model_fields.items():
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            assert field.description, f"{section.__name__}.{name} has no docstring"


def test_noise_is_off_unless_a_rate_is_named() -> None:
    """Pins that nobody trains on noised text unasked, and which rates exclude each other."""
    assert not recipe().data.noise.is_on
    assert recipe(data={**DATA, "noise": {"typos": 0.1}}).data.noise.is_on
    assert NoiseConfig(upper=0.5, title=0.5).upper == 0.5
    with pytest.raises(
        ValidationError, match=r"title: `upper` \+ `title` must not exceed 1, .* 0.6 \+ 0.5 > 1"
    ):
        NoiseConfig(upper=0.6, title=0.5)
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        NoiseConfig(typos=1.1)
