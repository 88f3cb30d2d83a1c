"""One update: normalised once over its micro-batches, clipped after unscaling, never non-finite."""

import itertools
import math

import pytest
import torch
from small_models import ARCHITECTURES, small_config

from transformer_mt.config import TrainingConfig
from transformer_mt.data.batch import make_batch
from transformer_mt.errors import ConfigError
from transformer_mt.model.build import build_model
from transformer_mt.runtime.distributed import Ranks
from transformer_mt.training import step as step_module
from transformer_mt.training.divergence import FINITE, where_not_finite
from transformer_mt.training.ema import Ema
from transformer_mt.training.optimizer import build_optimizer
from transformer_mt.training.precision import loss_scaler
from transformer_mt.training.step import LossModule, Updater

CPU = torch.device("cpu")
V = 23


def updater(*, architecture="transformer", precision="fp32", dropout=0.0, ema=0.0, **training):
    torch.manual_seed(5)
    config = TrainingConfig(**{"warmup_steps": 0, "learning_rate": 0.01, "ema": ema, **training})
    wanted = small_config(architecture, d_model=16, num_encoder_layers=1)
    model = build_model(wanted, V, V, dropout=dropout)
    return Updater(
        LossModule(model, config.label_smoothing),
        build_optimizer(model, config),
        loss_scaler(precision, CPU),
        Ema(model, ema) if ema else None,
        config,
        precision,
        CPU,
    )


def sentences():
    """Eight pairs of uneven length; S and T differ."""
    generator = torch.Generator().manual_seed(9)

    def ids(length):
        return [*torch.randint(4, V, (length,), generator=generator).tolist(), 3]

    return [(ids(length), ids(12 - length)) for length in (1, 9, 3, 7, 2, 11, 5, 4)]


def batches(size):
    pairs = sentences()
    return [make_batch(pairs[start : start + size]) for start in range(0, len(pairs), size)]


def weights(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("size", [1, 4])
def test_accumulation_equals_one_large_batch(size, architecture):
    """Pins averaging per micro-batch (B088): short batches would weigh too much.

    eps = 1 makes AdamW's first update smooth in the gradient; with a small eps it is its sign, and rounding
    of a zero gradient would show.
    """
    settings = {"eps": 1.0, "learning_rate": 1.0, "clip_norm": 0.0, "architecture": architecture}
    whole, split = updater(**settings), updater(**settings)
    one, many = whole.run(1, batches(8)), split.run(1, batches(size))
    assert many.num_tokens == one.num_tokens == sum(len(tgt) for _, tgt in sentences())
    assert many.loss_sum == pytest.approx(one.loss_sum, rel=1e-6)
    assert many.grad_norm == pytest.approx(one.grad_norm, rel=1e-5)
    torch.testing.assert_close(weights(split.loss_module), weights(whole.loss_module), rtol=1e-6, atol=1e-6)


def test_a_window_of_uneven_micro_batches_is_the_mean_over_its_tokens():
    """B088, B089: 2, 2, 2 and 20 target tokens as one batch, as four, and as a window of two and two."""
    settings = {"eps": 1.0, "learning_rate": 1.0, "clip_norm": 0.0}
    pairs = [([5, 6, 7, 3], [*range(4, 4 + length - 1), 3]) for length in (2, 2, 2, 20)]
    moved = []
    for sizes in ((4,), (1, 1, 1, 1), (3, 1)):
        ends = list(itertools.accumulate(sizes))
        one = updater(**settings)
        before = weights(one.loss_module)
        parts = [make_batch(pairs[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
        assert one.run(1, parts).num_tokens == 26
        moved.append(weights(one.loss_module) - before)
    for other in moved[1:]:
        torch.testing.assert_close(other, moved[0], rtol=1e-6, atol=1e-6)


def test_reported_sums_are_those_of_the_sentences():
    """The nll of an update is the sum of the nll of its sentences alone."""
    whole = updater(label_smoothing=0.3)
    with torch.no_grad():
        alone = [whole.loss_module(batch) for batch in batches(1)]
    update = whole.run(1, batches(8))
    assert update.nll_sum == pytest.approx(sum(float(nll) for _, nll, _ in alone), rel=1e-5)
    assert update.loss_sum == pytest.approx(sum(float(loss) for loss, _, _ in alone), rel=1e-5)
    assert update.loss_sum != pytest.approx(update.nll_sum, rel=1e-3)


def test_clipping_bounds_the_gradient_and_reports_the_norm_before():
    """With SGD-like reading: the gradient that reaches the optimizer has the clip norm."""
    seen = {}
    clipped = updater(clip_norm=0.05)
    step = clipped.optimizer.step

    def spy(*args, **kwargs):
        grads = [p.grad.flatten() for p in clipped.loss_module.parameters() if p.grad is not None]
        seen["norm"] = float(torch.cat(grads).norm())
        return step(*args, **kwargs)

    clipped.optimizer.step = spy
    update = clipped.run(1, batches(8))
    assert update.grad_norm > 0.05
    assert seen["norm"] == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_is_near_fp32(precision, architecture):
    """Pins clipping before unscaling (B086): under fp16 the norm would be 65,536 times too large."""
    exact = updater(architecture=architecture).run(1, batches(4))
    mixed = updater(architecture=architecture, precision=precision).run(1, batches(4))
    assert mixed.applied
    assert mixed.loss_sum == pytest.approx(exact.loss_sum, rel=2e-2)
    assert mixed.grad_norm == pytest.approx(exact.grad_norm, rel=5e-2)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_non_finite_never_reaches_weights_or_ema(precision):
    """A NaN in one weight's gradient leaves weights, moments and average as they were."""
    broken = updater(precision=precision, ema=0.9)
    broken.run(1, batches(8))
    before, average = weights(broken.loss_module).clone(), broken.ema.tensors()
    average = {name: tensor.clone() for name, tensor in average.items()}
    handle = next(broken.loss_module.parameters()).register_hook(lambda grad: grad * float("nan"))
    update = broken.run(2, batches(8))
    handle.remove()
    assert not update.applied
    assert torch.equal(weights(broken.loss_module), before)
    assert all(torch.equal(tensor, average[name]) for name, tensor in broken.ema.tensors().items())
    assert broken.run(3, batches(8)).applied
    assert not torch.equal(weights(broken.loss_module), before)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_an_infinite_loss_with_finite_gradients_changes_nothing(precision, monkeypatch):
    """Pins a loss scaler that looks at gradients alone, and that the next update is made again."""
    broken = updater(precision=precision)
    before = weights(broken.loss_module).clone()
    forward = broken.loss_module.forward

    def infinite(batch):
        loss, nll, tokens = forward(batch)
        return loss + float("inf"), nll, tokens

    monkeypatch.setattr(broken.loss_module, "forward", infinite)
    update = broken.run(1, batches(8))
    assert not update.applied
    assert update.grad_norm < 1e3
    assert torch.equal(weights(broken.loss_module), before)
    monkeypatch.undo()
    assert broken.run(2, batches(8)).applied
    assert not torch.equal(weights(broken.loss_module), before)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dropout_depends_on_step_and_place_alone(architecture):
    """The same step draws the same masks, whatever was drawn in between; another step draws others."""
    runs = [updater(architecture=architecture, dropout=0.3) for _ in range(3)]
    torch.rand(17)
    losses = [run.run(step, batches(4)).loss_sum for run, step in zip(runs, (7, 7, 8), strict=True)]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_training_mode_is_set_by_the_update():
    """Pins a model left in eval mode after validation (B128)."""
    run = updater(dropout=0.3)
    run.loss_module.eval()
    run.run(1, batches(8))
    assert all(module.training for module in run.loss_module.modules())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_matrices_are_decayed_and_vectors_are_not(architecture):
    """Every parameter is in exactly one group."""
    groups = updater(architecture=architecture, weight_decay=0.1).optimizer.param_groups
    decayed, plain = (group["params"] for group in groups)
    assert (groups[0]["weight_decay"], groups[1]["weight_decay"]) == (0.1, 0.0)
    assert all(parameter.dim() >= 2 for parameter in decayed)
    assert all(parameter.dim() < 2 for parameter in plain)
    everything = list(itertools.chain(decayed, plain))
    assert len({id(parameter) for parameter in everything}) == len(everything)


def test_ema_is_the_hand_computed_average():
    """Two updates with the slow start: decay 2/11, then 3/12."""
    linear = torch.nn.Linear(1, 1, bias=False)
    linear.weight.data.fill_(8.0)
    ema = Ema(linear, 0.9)
    expected = 8.0
    for update, value in enumerate((4.0, 16.0), start=1):
        linear.weight.data.fill_(value)
        ema.update()
        decay = min(0.9, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * value
    assert float(ema.tensors()["weight"]) == pytest.approx(expected)
    with ema.swapped():
        assert linear.weight.item() == pytest.approx(expected)
    assert linear.weight.item() == 16.0


def forgetful(made, rows):
    """The updater, in a memory that holds no more rows than these at once."""
    forward = made.loss_module.forward

    def limited(batch):
        if len(batch.labels) > rows:
            raise torch.OutOfMemoryError("no room")
        return forward(batch)

    made.loss_module.forward = limited
    return made


@pytest.mark.parametrize(("rows", "pieces"), [(8, 1), (4, 2), (1, 8)])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_update_that_the_memory_does_not_hold_is_done_in_pieces(architecture, rows, pieces, monkeypatch):
    """The weights are those of the update in one piece; the tokens of all divide the loss.

    What each attempt took is given back: under a limit, validation would find nothing left.
    """
    released = []
    monkeypatch.setattr(step_module, "release_memory", lambda: released.append(True))
    settings = {"eps": 1.0, "learning_rate": 1.0, "clip_norm": 0.0, "architecture": architecture}
    whole, cut = updater(**settings), forgetful(updater(**settings), rows)
    expected, update = whole.run(1, batches(8)), cut.run(1, batches(8))
    assert update.pieces == pieces == 2 ** len(released)
    assert (update.num_tokens, update.padded_tokens) == (expected.num_tokens, expected.padded_tokens)
    assert update.loss_sum == pytest.approx(expected.loss_sum, rel=1e-6)
    assert torch.allclose(weights(whole.loss_module), weights(cut.loss_module), atol=1e-6)


def test_gradients_of_before_the_memory_ran_out_are_dropped():
    """The second of two micro-batches fails: the first must not count twice."""
    settings = {"eps": 1.0, "learning_rate": 1.0, "clip_norm": 0.0}
    whole, cut = updater(**settings), forgetful(updater(**settings), 4)
    pairs = sentences()
    parts = [make_batch(pairs[:3]), make_batch(pairs[3:])]
    whole.run(1, parts)
    assert cut.run(1, parts).pieces == 2
    assert torch.allclose(weights(whole.loss_module), weights(cut.loss_module), atol=1e-6)


def test_one_sentence_that_the_memory_does_not_hold_is_an_error():
    message = (
        "step 7: a micro-batch of 1 x 12 source and 1 x 2 target tokens does not fit into the memory of "
        "cpu; lower training.max_tokens"
    )
    with pytest.raises(ConfigError, match=message):
        forgetful(updater(), 0).run(7, [make_batch(sentences()[5:6])])


def test_several_processes_do_not_begin_an_update_again():
    """They have summed some of the gradients already."""
    made = forgetful(updater(), 4)
    made.ranks = Ranks(0, 2)
    with pytest.raises(
        ConfigError, match="a micro-batch of 8 x 12 source and 8 x 12 target tokens does not fit"
    ):
        made.run(1, batches(8))


def test_other_errors_are_not_taken_for_a_full_memory():
    made = updater()
    made.loss_module.forward = lambda batch: torch.zeros(2) @ torch.zeros(3)
    with pytest.raises(RuntimeError, match="size"):
        made.run(1, batches(8))


@pytest.mark.parametrize("packed", [False, True])
def test_the_module_that_left_the_finite_numbers_is_named(packed, monkeypatch):
    made = updater(dropout=0.1)
    monkeypatch.setattr(Updater, "_packs", packed)
    module = made.loss_module.model.decoder.layers[0].feed_forward
    before = weights(made.loss_module)
    assert where_not_finite(made, 3, batches(4)) == FINITE
    next(module.parameters()).data[0, 0] = math.inf
    said = where_not_finite(made, 3, batches(4))
    names = dict(made.loss_module.named_modules())
    name, _, rest = said.partition(" ")
    assert rest == "is the first module whose output is not finite"
    assert name.startswith("model.decoder.layers.0.feed_forward")
    assert name in names
    next(module.parameters()).data[0, 0] = before.new_tensor(0.0)
    assert all(weight.grad is None for weight in made.loss_module.parameters())
    assert not any(module._forward_hooks for module in names.values())


def test_a_gradient_that_is_not_finite_is_named():
    made = updater()
    weight = made.loss_module.model.encoder.layers[0].feed_forward
    parameter = next(weight.parameters())
    parameter.register_hook(lambda gradient: gradient * math.nan)
    name = next(key for key, value in made.loss_module.named_parameters() if value is parameter)
    assert where_not_finite(made, 1, batches(8)) == f"every output is finite, but not the gradient of {name}"
