"""The LSTM's parts against torch.nn.LSTM with the same weights, and attention against a loop written here."""

from __future__ import annotations

import math

import pytest
import torch
from small_models import small_config
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer_mt.model.build import build_model
from transformer_mt.model.lstm import Attention, AttentionalLstm, EncoderLayer, Recurrence, mirrored
from transformer_mt.model.masks import padding_mask

B, S, T, IN, H = 3, 7, 5, 10, 6


def copy_into(theirs: nn.LSTM, ours: Recurrence, suffix: str = "") -> None:
    """torch's two biases only occur as their sum: ours goes into the first, the second is 0."""
    with torch.no_grad():
        getattr(theirs, f"weight_ih_l0{suffix}").copy_(ours.inputs.weight)
        getattr(theirs, f"weight_hh_l0{suffix}").copy_(ours.recurrent.weight)
        getattr(theirs, f"bias_ih_l0{suffix}").copy_(ours.inputs.bias)
        getattr(theirs, f"bias_hh_l0{suffix}").zero_()


def recurrence(input_size: int = IN, hidden_size: int = H) -> Recurrence:
    torch.manual_seed(0)
    ours = Recurrence(input_size, hidden_size)
    nn.init.normal_(ours.inputs.bias)
    return ours


@pytest.mark.parametrize("way", ["kernel", "steps", "loop"])
def test_a_recurrence_is_torchs_lstm(way: str) -> None:
    """Forward, and the gradients of weights, inputs and first state: gates in another order, a bias counted
    twice, a cell that is not handed on. The loop is what narrow products take instead of the kernel."""
    ours = recurrence()
    theirs = nn.LSTM(IN, H, batch_first=True)
    copy_into(theirs, ours)
    given = [torch.randn(shape, requires_grad=True) for shape in ((B, T, IN), (B, H), (B, H))]
    states, hidden, cell = given
    expected, (last_hidden, last_cell) = theirs(states, (hidden[None], cell[None]))
    if way == "kernel":
        found, last = ours(states, (hidden, cell))
    elif way == "loop":
        found, last = ours._loop(ours.inputs(states), (hidden, cell))
    else:
        last, steps = (hidden, cell), []
        for position in states.unbind(1):
            last = ours.step(position, last)
            steps.append(last[0])
        found = torch.stack(steps, dim=1)
    close = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(found, expected, **close)
    torch.testing.assert_close(last[0], last_hidden[0], **close)
    torch.testing.assert_close(last[1], last_cell[0], **close)

    weighting = torch.randn(B, T, H)
    expected_gradients = torch.autograd.grad(
        (expected * weighting).sum() + last_cell.sin().sum(), [*given, *theirs.parameters()]
    )
    parameters = [ours.inputs.weight, ours.recurrent.weight, ours.inputs.bias]
    gradients = torch.autograd.grad((found * weighting).sum() + last[1].sin().sum(), [*given, *parameters])
    for gradient, wanted in zip(gradients, expected_gradients, strict=False):
        torch.testing.assert_close(gradient, wanted, **close)


def test_an_encoder_layer_is_a_packed_bidirectional_lstm() -> None:
    """Pins a reversal that takes padding along, directions that are swapped, a norm or bypass left out."""
    torch.manual_seed(1)
    ours = EncoderLayer(2 * H, dropout=0.0)
    theirs = nn.LSTM(2 * H, H, batch_first=True, bidirectional=True)
    copy_into(theirs, ours.forwards)
    copy_into(theirs, ours.backwards, "_reverse")
    lengths = torch.tensor([4, S, 1])
    states = torch.randn(B, S, 2 * H, requires_grad=True)
    found = ours(states, mirrored(lengths, S))
    packed = pack_padded_sequence(
        nn.functional.layer_norm(states, (2 * H,)), lengths, batch_first=True, enforce_sorted=False
    )
    expected = states + pad_packed_sequence(theirs(packed)[0], batch_first=True)[0]
    real = torch.arange(S) < lengths[:, None]
    torch.testing.assert_close(found[real], expected[real], rtol=1e-5, atol=1e-6)
    weighting = torch.randn(int(real.sum()), 2 * H)
    ours_gradient, theirs_gradient = (
        torch.autograd.grad((result[real] * weighting).sum(), states)[0] for result in (found, expected)
    )
    torch.testing.assert_close(ours_gradient, theirs_gradient, rtol=1e-5, atol=1e-6)


def scores_by_hand(attention: Attention, query: Tensor, memory: Tensor) -> float:
    """One query and one source state: q^T W m / sqrt(D), or v^T tanh(U q + W m)."""
    key = attention.key.weight @ memory
    if attention.key.bias is not None:
        key = key + attention.key.bias
    if attention.query is None or attention.vector is None:
        return float(query @ key) / math.sqrt(len(query))
    return float(attention.vector @ torch.tanh(attention.query.weight @ query + key))


@pytest.mark.parametrize("kind", ["general", "additive"])
@torch.no_grad()
def test_attention_weights_and_their_mean(kind: str) -> None:
    """Against three loops over sentences, queries and the real places of the source."""
    torch.manual_seed(2)
    attention = Attention(H, kind, dropout=0.0)
    if attention.vector is not None:
        nn.init.normal_(attention.vector)
    queries, memory = torch.randn(B, T, H), torch.randn(B, S, H)
    lengths = [4, S, 1]
    ids = torch.tensor([[5] * length + [0] * (S - length) for length in lengths])
    mask, keys = padding_mask(ids, 0), attention.key(memory)
    weights, result = attention.weights(queries, keys, mask), attention(queries, keys, memory, mask)
    for sentence, length in enumerate(lengths):
        for position in range(T):
            places = [memory[sentence, place] for place in range(length)]
            scores = [scores_by_hand(attention, queries[sentence, position], place) for place in places]
            shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
            mean = torch.stack([share * place for share, place in zip(shares, places, strict=True)]).sum(0)
            expected = torch.tensor(shares + [0.0] * (S - length))
            torch.testing.assert_close(weights[sentence, position], expected, rtol=1e-5, atol=1e-6)
            wanted = attention.output.weight @ mean + attention.output.bias
            torch.testing.assert_close(result[sentence, position], wanted, rtol=1e-4, atol=1e-6)


def test_the_decoder_is_layers_of_torchs_lstm_and_attention() -> None:
    """The whole teacher-forced decoder, written again from the description: bridge, residuals, norms."""
    torch.manual_seed(3)
    model = build_model(small_config("lstm"), 31, 31)
    assert isinstance(model, AttentionalLstm)
    src, target = torch.tensor([[5, 6, 7, 3, 0], [8, 9, 10, 11, 3]]), torch.randint(4, 31, (2, T))
    mask = padding_mask(src, 0)
    encoded = model.encode(src, mask)
    memory, final = encoded.memory, encoded.final_state
    assert final is not None
    halves = torch.stack([memory[0, 3, :12], memory[1, 4, :12]]), memory[:, 0, 12:]
    assert torch.equal(final, torch.cat(halves, dim=-1))
    states = nn.functional.embedding(target, model.tgt_embedding.weight) * math.sqrt(24)
    firsts = model.bridge(final).chunk(2, dim=-1)
    for number, (layer, cell) in enumerate(zip(model.decoder_layers, firsts, strict=True)):
        theirs = nn.LSTM(24, 24, batch_first=True)
        copy_into(theirs, layer.recurrence)
        new = theirs(nn.functional.layer_norm(states, (24,)), (cell.tanh()[None], cell[None]))[0]
        states = states + new if number else new
        keys = layer.attention.key(memory)
        scores = nn.functional.layer_norm(states, (24,)) @ keys.transpose(1, 2) / math.sqrt(24)
        weights = scores.masked_fill(~mask[:, 0], -torch.inf).softmax(-1)
        states = states + layer.attention.output(weights @ memory)
    found = model.hidden(src, mask, target)
    torch.testing.assert_close(found, nn.functional.layer_norm(states, (24,)), rtol=1e-4, atol=1e-5)
