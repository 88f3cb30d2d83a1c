"""A run directory with a small model of random weights: everything but the learning."""

from __future__ import annotations

import random
from pathlib import Path

import torch

from transformer_mt.checkpoint import TRAINED_ON
from transformer_mt.checkpoint_files import save_checkpoint
from transformer_mt.config import Recipe
from transformer_mt.model.build import build_model
from transformer_mt.text.tokenizer import Tokenizers, train_tokenizer
from transformer_mt.text.trained_on import TrainedOn

VOCAB = 340
MODELS: dict[str, dict[str, object]] = {
    "transformer": {
        "d_model": 32,
        "num_heads": 2,
        "d_ff": 48,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    },
    "lstm": {
        "architecture": "lstm",
        "d_model": 32,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "tied_embeddings": "none",
    },
}
"""Architecture -> sizes that say many different things with random weights: tied, an LSTM repeats itself."""


def made_up_lines(count: int, seed: int) -> list[str]:
    """Lines of 1 to 9 invented words."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abdeiklmnorstu", k=draw.randint(1, 7))) for _ in range(80)]
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(count)]


def random_run(
    folder: Path, *, seed: int = 3, tokenizer_seed: int = 1, sentences: int | None = 9, **sections: object
) -> Path:
    """Write a run of one checkpoint, step 20.

    Args:
        folder: of the run.
        seed: of the weights.
        tokenizer_seed: of the text that the vocabulary is learned from.
        sentences: that a line of its training text had; None is a run of an earlier version, which forgot.
        sections: laid over a recipe de -> en.
    """
    tokenizer = train_tokenizer(made_up_lines(60, tokenizer_seed), type="bpe", vocab_size=VOCAB)
    tokenizers = Tokenizers(tokenizer, tokenizer)
    recipe = Recipe.model_validate(
        {
            "run_dir": str(folder),
            "data": {
                "root": str(folder.parent),
                "train": "train",
                "valid": "valid",
                "test": ["test", "sets/two"],
                "src_lang": "de",
                "tgt_lang": "en",
            },
            "model": MODELS["transformer"],
            "decoding": {"beam_size": 3, "max_len_a": 0.5, "max_len_b": 4},
            **sections,
        }
    )
    torch.manual_seed(seed)
    model = build_model(recipe.model, VOCAB, VOCAB)
    save_checkpoint(
        folder,
        20,
        weights=dict(model.named_parameters()),
        state={},
        scalars={TRAINED_ON: TrainedOn(recipe.data.max_length, sentences).as_json()},
        recipe=recipe,
        tokenizers=tokenizers,
    )
    return folder
