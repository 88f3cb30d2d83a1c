"""README.md of a run directory: what the model is, how it was made, how well it translates, what it cost.

Made from the files of the run directory alone, so it can be written again whenever one of them is new.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_text
from transformer_mt.training.run_directory import belongs_to_run, stored_recipe


def write_model_card(run_dir: Path) -> None:
    """Write the card of a run that has been trained and validated."""
    info, best = read_json(run_dir / "run.json"), read_json(run_dir / "best.json")
    if info is None or best is None or "cost" not in info or not belongs_to_run(run_dir):
        return  # not a run directory, or training has not come to an end yet
    recipe = stored_recipe(run_dir)
    try:
        parts = [
            _model(run_dir.name, recipe, info),
            _data(recipe, info),
            f"## Command\n```sh\n{info['command']}\n```",
            _scores(run_dir, recipe, info, best),
            _cost(recipe, info),
            f'## Use\n```sh\necho "…" | transformer-mt translate {run_dir}\n```',
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{run_dir}: the model card cannot be written: run.json, best.json or a file in evaluation/ was "
            f"changed ({type(error).__name__}: {error}); restore it or delete it"
        ) from None
    write_text(run_dir / "README.md", "\n\n".join(parts) + "\n")


def _model(name: str, recipe: Recipe, info: dict[str, Any]) -> str:
    model = recipe.model
    if model.architecture == "lstm":
        kind = "An lstm"
        sizes = f"{model.attention} attention" + (", input feeding" if model.input_feeding else "")
    else:
        kind, sizes = "A transformer", f"{model.num_heads} heads, d_ff {model.d_ff}"
    return (
        f"# {name}: {recipe.data.src_lang} to {recipe.data.tgt_lang}\n\n"
        f"{kind} of {info['parameters']:,} parameters (d_model {model.d_model}, {sizes}, "
        f"{model.num_encoder_layers} + {model.num_decoder_layers} layers), "
        f"trained by transformer-mt {info['transformer_mt']}."
    )


def _data(recipe: Recipe, info: dict[str, Any]) -> str:
    return (
        f"## Data\n{', '.join(recipe.data.train)}: {info['training_pairs']:,} pairs after checks "
        f"(fingerprint `{info['data_fingerprint'][:16]}`). Their licence governs what this model "
        "may be used for."
    )


def _scores(run_dir: Path, recipe: Recipe, info: dict[str, Any], best: dict[str, Any]) -> str:
    signature = info["signatures"].get(best["metric"], "nats per token")
    # A list, not a table: signatures hold the character that separates the cells of a table.
    lines = [
        f"## Scores\nBeam {recipe.decoding.beam_size}, on raw text.\n",
        f"- validation, step {best['step']}: {best['metric']} {best['value']:.2f} (`{signature}`)",
    ]
    for path in sorted((run_dir / "evaluation").glob("*.json")):
        report = read_json(path) or {}
        lines += [
            f"- {report['set']}, step {report['step']}: {score['name']} {score['value']:.2f} "
            f"(`{score['signature']}`)"
            for score in report["scores"]
        ]
    return "\n".join(lines)


def _cost(recipe: Recipe, info: dict[str, Any]) -> str:
    cost = info["cost"]
    return (
        f"## Cost\n{cost['steps']:,} updates on {cost['target_tokens']:,} target tokens in "
        f"{cost['seconds'] / 60:.1f} minutes, validation included ({info['machine']}, "
        f"{info['threads']} threads, {recipe.training.precision}, torch {info['torch']}); peak memory "
        f"{cost['peak_gib']:.2f} GiB."
    )
