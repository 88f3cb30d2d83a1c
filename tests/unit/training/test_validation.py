"""Validation numbers do not depend on batching and are those of the unsmoothed loss."""

import math

import pytest
import torch
from random_run import random_run

from transformer_mt.checkpoint import load_run
from transformer_mt.config import ModelConfig
from transformer_mt.data.batch import make_batch
from transformer_mt.model.build import build_model
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.training.step import LossModule
from transformer_mt.training.validation import perplexity, reference_loss, validation_loss

V = 23
PAIRS = [([5, 6, 3], [7, 3]), ([9, 3], [4, 8, 12, 5, 3]), ([4, 4, 4, 4, 3], [6, 9, 3])]


@pytest.fixture
def module():
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 1, "num_decoder_layers": 1}
    return LossModule(build_model(ModelConfig.model_validate(sizes), V, V, dropout=0.4), 0.3)


def measure(module, size):
    batches = [make_batch(PAIRS[start : start + size]) for start in range(0, len(PAIRS), size)]
    return validation_loss(module, batches, 25, "fp32", torch.device("cpu"))


def test_mean_over_tokens_not_over_batches(module):
    """Pins the mean of batch means (B094) and smoothing or dropout in the reported number (B091)."""
    one, three = measure(module, 1), measure(module, 3)
    assert one.nll == pytest.approx(three.nll, rel=1e-6)
    module.label_smoothing = 0.0
    assert measure(module, 2).nll == pytest.approx(three.nll, rel=1e-6)
    assert three.ppl == pytest.approx(math.exp(three.nll))
    assert three.nats_per_char == pytest.approx(three.nll * 10 / 25)


@pytest.mark.parametrize("training", [True, False])
def test_mode_is_given_back(module, training):
    """Pins a model left in eval mode for the rest of training (B128)."""
    module.train(training)
    measure(module, 3)
    assert all(part.training is training for part in module.modules())


def test_perplexity_of_a_huge_loss_is_infinite_not_an_error():
    assert perplexity(0.0) == 1.0
    assert perplexity(1e4) == math.inf


@pytest.mark.parametrize("limit", [None, 256])
def test_the_loss_of_raw_pairs_is_that_of_their_batches(tmp_path, limit):
    """Pins nats per character of any set: eos on both sides, a line end counted; none beyond positions."""
    model = {} if limit is None else {"positions": "learned", "max_positions": limit}
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 48, "num_encoder_layers": 1, "num_decoder_layers": 1}
    loaded = load_run(random_run(tmp_path / "run", model={**sizes, **model}))
    pairs = [("ab", "dei kl"), ("", "m"), ("norst", "")]
    device = torch.device("cpu")
    if limit is not None:
        assert reference_loss(loaded.model, loaded.tokenizers, [*pairs, ("ab " * 300, "k")], device) is None
        assert reference_loss(loaded.model, loaded.tokenizers, [*pairs, ("k", "ab " * 300)], device) is None
    found = reference_loss(loaded.model, loaded.tokenizers, pairs, device)
    ids = [
        ([*loaded.tokenizers.src.encode(s), EOS_ID], [*loaded.tokenizers.tgt.encode(t), EOS_ID])
        for s, t in pairs
    ]
    expected = validation_loss(
        LossModule(loaded.model, 0.1), [make_batch([pair]) for pair in ids], 10, "fp32", device
    )
    assert found.nats_per_char == pytest.approx(expected.nats_per_char, rel=1e-5)
    assert found.nll == pytest.approx(expected.nll, rel=1e-5)
