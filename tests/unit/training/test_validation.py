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
from transformer_mt.training.logbook import Totals
from transformer_mt.training.step import LossModule, Update
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


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_one_long_sentence_weighs_as_its_tokens(module, size):
    """B094: target lengths 1, 1, 1 and 50, in batches of any size."""
    pairs = [([5, 6, 3], [3])] * 3 + [([7, 3], [*([8, 9] * 24), 10, 3])]
    parts = [make_batch(pairs[start : start + size]) for start in range(0, 4, size)]
    found = validation_loss(module, parts, 1, "fp32", torch.device("cpu"))
    with torch.no_grad():
        alone = [float(module.eval()(make_batch([pair]))[1]) for pair in pairs]
    assert found.nll == pytest.approx(sum(alone) / 53, rel=1e-5)


class Knowing(torch.nn.Module):
    """Gives the next token of a target that counts up by one a logit far above all others."""

    def __init__(self, vocab_size, certainty):
        super().__init__()
        self.output_weight = torch.nn.Parameter(certainty * torch.eye(vocab_size))

    def hidden(self, src_ids, src_mask, decoder_input_ids):
        return torch.nn.functional.one_hot(decoder_input_ids + 1, len(self.output_weight)).float()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_perplexity_is_that_of_the_plain_nll(smoothing):
    """B091: near 1 for a model that knows, whatever the smoothing; loss and nll have names of their own; an
    nll that overflows is infinite, not an error."""
    batches = [make_batch([([5, 3], [3, 4, 5, 6, 7])]), make_batch([([5, 3], [3, 4])])]
    knowing = LossModule(Knowing(1000, 60.0), smoothing)
    found = validation_loss(knowing, batches, 7, "fp32", torch.device("cpu"))
    assert found.ppl == pytest.approx(1.0, abs=1e-4)
    with torch.no_grad():
        loss, nll, tokens = knowing(batches[0])
    totals = Totals(float(loss), float(nll), tokens)
    update = Update(0.0, 0.0, 0, 0, 0, 0.0, 0.0, True)
    record = totals.record(1, update, 0)
    assert record["ppl"] == pytest.approx(1.0, abs=1e-4)
    assert record["nll"] == pytest.approx(0.0, abs=1e-4)
    assert (record["loss"] > 1.0) == (smoothing > 0.0)
    wrong = validation_loss(
        LossModule(Knowing(1000, -800.0), smoothing), batches, 7, "fp32", torch.device("cpu")
    )
    assert wrong.nll > 700.0 and wrong.ppl == math.inf
    assert Totals(nll_sum=800.0, finite_tokens=1).record(1, update, 0)["ppl"] == math.inf


def test_perplexity_of_a_huge_loss_is_infinite_not_an_error():
    """B091: math.exp itself raises."""
    assert perplexity(0.0) == 1.0
    assert perplexity(800.0) == perplexity(1e4) == math.inf


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
