"""README.md of a run directory: what the model is, how it was made, how well it translates, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_mt.config import Recipe


def write_model_card(
    run_dir: Path,
    recipe: Recipe,
    info: Mapping[str, Any],
    validation: Mapping[str, Any],
    cost: Mapping[str, Any],
) -> None:
    """Write the card.

    Args:
        info: the run's run.json.
        validation: the best validation: step, metric, value, and the signature of the score if it has one.
        cost: steps, target_tokens, seconds, peak_gib.
    """
    model, data = recipe.model, recipe.data
    text = f"""\
# {run_dir.name}: {data.src_lang} to {data.tgt_lang}

A {model.architecture} of {info["parameters"]:,} parameters (d_model {model.d_model}, {model.num_heads} heads,
d_ff {model.d_ff}, {model.num_encoder_layers} + {model.num_decoder_layers} layers), trained by transformer-mt
{info["transformer_mt"]}.

## Data
Training text: {", ".join(data.train)}; {info["training_pairs"]:,} pairs after checks (fingerprint
`{info["data_fingerprint"][:16]}`). Its licence governs what this model may be used for.

## Command
```sh
{info["command"]}
```

## Scores
Best validation {validation["metric"]} {validation["value"]:.2f} at step {validation["step"]}, beam
{recipe.decoding.beam_size}{_signature(validation)}. Test scores: `evaluation/*.json`, written by
`transformer-mt evaluate {run_dir}`.

## Cost
{cost["steps"]:,} updates on {cost["target_tokens"]:,} target tokens in {cost["seconds"] / 60:.1f} minutes,
validation included ({info["machine"]}, {info["threads"]} threads, {recipe.training.precision}, torch
{info["torch"]}); peak memory {cost["peak_gib"]:.2f} GiB.

## Use
```sh
echo "…" | transformer-mt translate {run_dir}
```
"""
    (run_dir / "README.md").write_text(text, encoding="utf-8")


def _signature(validation: Mapping[str, Any]) -> str:
    return f", signature `{validation['signature']}`" if validation.get("signature") else ""
