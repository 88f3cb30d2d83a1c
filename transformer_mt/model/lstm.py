"""The attentional LSTM: the baseline that the Transformer is compared with, behind the same protocol.

A bidirectional encoder and a deep residual decoder of LSTM layers with normalised inputs. Every decoder layer
looks at the source by one head of attention, Luong's general or Bahdanau's additive one. Without input
feeding nothing in a layer depends on the layers above it, so a layer runs over the whole target at once.
Knows no text, no loss and no search.

Sources: Luong et al. 2015 (general scores, input feeding), Bahdanau et al. 2015 (additive scores),
Jozefowicz et al. 2015 (forget gates begin open), Domhan 2018 (attention in every layer of recurrent models).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from transformer_mt.model.dropout import dropout
from transformer_mt.model.embedding import TokenEmbedding, output_logits
from transformer_mt.model.protocol import AttentionLayer, DecoderState, EncoderOutput
from transformer_mt.model.transformer import pick_layer, run_layer, to_stream

AttentionKind = Literal["general", "additive"]
Cell = tuple[Tensor, Tensor]
"""Hidden and cell state of one layer, each (N, H)."""

# Input, forget, cell and output gate, in the order of torch's kernels.
_GATES = 4
# Elements of the (B, T, S, D) between additive scores and their keys that are held at once.
_ADDITIVE_ELEMENTS = 1 << 22


class Recurrence(nn.Module):
    """One LSTM layer in one direction: a whole sequence by torch's kernel, or one step of it.

    Two linear layers and one bias, where torch.nn.LSTM has two biases that only occur as their sum: so steps
    are plain products, which the twin for narrow arithmetic replaces like all others.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        """Args: input_size, width of the inputs; hidden_size, width H of the states."""
        super().__init__()
        self.hidden_size = hidden_size
        self.inputs = nn.Linear(input_size, _GATES * hidden_size)
        self.recurrent = nn.Linear(hidden_size, _GATES * hidden_size, bias=False)

    def forward(self, states: Tensor, first: Cell | None = None) -> tuple[Tensor, Cell]:
        """A whole sequence: (B, T, input_size) and the state before it (None: 0) -> (B, T, H), the last."""
        if first is None:
            zeros = states.new_zeros(states.size(0), self.hidden_size)  # (B, H)
            first = zeros, zeros
        recurrent: nn.Module = self.recurrent
        if not has_kernel(states) or not isinstance(recurrent, nn.Linear):  # it has no narrow products
            return self._loop(self.inputs(states), first)
        bias = self.inputs.bias
        output, hidden, cell = torch.lstm(
            states,
            (first[0].to(states.dtype)[None], first[1].to(states.dtype)[None]),
            [self.inputs.weight, self.recurrent.weight, bias, torch.zeros_like(bias)],
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=self.training,
            bidirectional=False,
            batch_first=True,
        )
        return output, (hidden[0], cell[0])

    def step(self, states: Tensor, before: Cell) -> Cell:
        """One position: (N, input_size) and the state before it -> the state after it."""
        return self._advance(self.inputs(states), before)

    def _loop(self, inputs: Tensor, state: Cell) -> tuple[Tensor, Cell]:
        hidden = []
        for position in inputs.unbind(1):  # (B, 4H)
            state = self._advance(position, state)
            hidden.append(state[0])
        return torch.stack(hidden, dim=1), state

    def _advance(self, inputs: Tensor, before: Cell) -> Cell:
        hidden, cell = before
        gates = inputs + self.recurrent(hidden)  # (N, 4H)
        enter, forget, new, leave = gates.chunk(_GATES, dim=-1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(cell), cell


class EncoderLayer(nn.Module):
    """Half the width reads forwards, half backwards; each sees a sentence and never the padding behind it."""

    def __init__(self, d_model: int, dropout: float) -> None:
        """Args: d_model, width D; dropout, rate on the output."""
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.forwards = Recurrence(d_model, d_model // 2)
        self.backwards = Recurrence(d_model, d_model // 2)
        self.dropout = dropout

    def forward(self, states: Tensor, mirror: Tensor) -> Tensor:
        """(B, S, D) and the places (B, S) of `mirrored` -> (B, S, D).

        Sentences are reversed by their lengths and run as dense batches: faster here than packing, which
        keeps torch from its fused kernel on CPUs (1.2 times in fp32, 1.25 in bf16).
        """
        normed = self.norm(states)
        ahead, _ = self.forwards(normed)
        back, _ = self.backwards(_take(normed, mirror))
        both = torch.cat((ahead, _take(back, mirror)), dim=-1)
        return states + dropout(both, self.dropout, self.training)


class Attention(nn.Module):
    """One head over the source: scores, weights, and the projected mean of the memory.

    General scores are q^T W m, divided by sqrt(D) as in the Transformer so that they start alike at any
    width; additive scores are v^T tanh(U q + W m).
    """

    def __init__(self, d_model: int, kind: AttentionKind, dropout: float) -> None:
        """Args: d_model, width D; kind of scores; dropout, rate on the attention weights."""
        super().__init__()
        # A bias of the keys would move all general scores of a query alike, which softmax does not notice.
        self.key = nn.Linear(d_model, d_model, bias=kind == "additive")
        self.output = nn.Linear(d_model, d_model)
        self.query = nn.Linear(d_model, d_model, bias=False) if kind == "additive" else None
        self.vector = nn.Parameter(torch.empty(d_model)) if kind == "additive" else None
        self.dropout = dropout

    def forward(self, query: Tensor, keys: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """(B, T, D), keys and memory (B, S, D), (B, 1, 1, S) -> (B, T, D)."""
        weights = dropout(self.weights(query, keys, src_mask), self.dropout, self.training)
        result: Tensor = self.output(weights.to(memory.dtype) @ memory)
        return result

    def weights(self, query: Tensor, keys: Tensor, src_mask: Tensor) -> Tensor:
        """(B, T, D), (B, S, D), (B, 1, 1, S) -> (B, T, S) in fp32, rows summing to 1."""
        if self.query is None or self.vector is None:
            scores = query.to(keys.dtype) @ keys.transpose(1, 2) / math.sqrt(query.size(-1))
        else:
            scores = _additive_scores(self.query(query), keys, self.vector)
        # Of finite scores alone a row without any token is even weights, not NaN.
        lowest = torch.finfo(torch.float32).min
        return torch.softmax(scores.float().masked_fill(~src_mask[:, 0], lowest), dim=-1)


class DecoderLayer(nn.Module):
    """An LSTM over the target, then attention to the source, each with its norm, dropout and bypass.

    The first layer's LSTM has no bypass: with tied embeddings, a token carried past it would be the likeliest
    next one in a new model, which begins at 13 nats a token instead of log V.
    """

    def __init__(
        self,
        d_model: int,
        input_size: int,
        attention: AttentionKind,
        dropout: float,
        attention_dropout: float,
        *,
        bypass: bool,
    ) -> None:
        """Args: D, and 2 D where a vector is fed back; scores; rates; whether the LSTM has a bypass."""
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.recurrence = Recurrence(input_size, d_model)
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = Attention(d_model, attention, attention_dropout)
        self.dropout = dropout
        self.bypass = bypass

    def forward(self, states: Tensor, keys: Tensor, memory: Tensor, src_mask: Tensor, first: Cell) -> Tensor:
        """All positions: (B, T, D), keys and memory (B, S, D), (B, 1, 1, S), the first state -> (B, T, D)."""
        return self.attend(self.recur(states, first), keys, memory, src_mask)

    def recur(self, states: Tensor, first: Cell, feed: Tensor | None = None) -> Tensor:
        """The LSTM's half of `forward`, with the fed-back vectors (B, T, D) of a layer that takes them."""
        hidden, _ = self.recurrence(self._inputs(states, feed), first)
        return self._past(states, hidden)

    def weights(self, states: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """What `recur` returned -> attention weights (B, T, S)."""
        return self.attention.weights(self.attention_norm(states), self.attention.key(memory), src_mask)

    def step(
        self, states: Tensor, keys: Tensor, source: LstmState, before: Cell, feed: Tensor | None
    ) -> tuple[Tensor, Cell]:
        """One position of K beams: (B, K, D), the state before and the fed-back vector -> the same after."""
        hidden, cell = self.recurrence.step(self._inputs(states, feed), before)
        states = self._past(states, hidden.to(states.dtype))
        return self.attend(states, keys, source.memory, source.src_mask), (hidden, cell)

    def _inputs(self, states: Tensor, feed: Tensor | None) -> Tensor:
        normed: Tensor = self.norm(states)
        return normed if feed is None else torch.cat((normed, feed.to(normed.dtype)), dim=-1)

    def _past(self, states: Tensor, hidden: Tensor) -> Tensor:
        hidden = dropout(hidden, self.dropout, self.training)
        return states + hidden if self.bypass else hidden

    def attend(self, states: Tensor, keys: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """The other half of `forward`."""
        context = self.attention(self.attention_norm(states), keys, memory, src_mask)
        return states + dropout(context, self.dropout, self.training)


@dataclass(frozen=True)
class LstmState:
    """What B sentences with K beams carry from step to step.

    memory: (B, S, D); keys: per layer (B, S, D); src_mask: (B, 1, 1, S); hidden and cells: (B, K, L, D) of
    the L layers, K is 1 before the first step; feed: (B, K, D), the last output, with input feeding.
    """

    memory: Tensor
    keys: tuple[Tensor, ...]
    src_mask: Tensor
    hidden: Tensor
    cells: Tensor
    feed: Tensor | None

    def reorder(self, beams: Tensor) -> LstmState:
        """beams: (B, K) int64, for each beam of the next step the one of the same sentence it continues."""
        rows = torch.arange(beams.size(0), device=beams.device)[:, None]
        feed = None if self.feed is None else self.feed[rows, beams]
        return replace(self, hidden=self.hidden[rows, beams], cells=self.cells[rows, beams], feed=feed)

    def keep(self, sentences: Tensor) -> LstmState:
        """sentences: (B',) int64, the rows that stay, in their new order."""
        return LstmState(
            memory=self.memory[sentences],
            keys=tuple(keys[sentences] for keys in self.keys),
            src_mask=self.src_mask[sentences],
            hidden=self.hidden[sentences],
            cells=self.cells[sentences],
            feed=None if self.feed is None else self.feed[sentences],
        )


class AttentionalLstm(nn.Module):
    """The whole baseline; implements `Seq2SeqModel` and `TrainableModel`.

    A tied matrix has one name, as in `Transformer`.
    """

    def __init__(
        self,
        tgt_embedding: TokenEmbedding,
        src_embedding: TokenEmbedding | None = None,
        output: nn.Linear | None = None,
        *,
        num_encoder_layers: int,
        num_decoder_layers: int,
        attention: AttentionKind = "general",
        input_feeding: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        """A model whose width D is that of its embeddings.

        Args:
            tgt_embedding: of an even width.
            src_embedding: None uses tgt_embedding for the source too.
            output: None uses tgt_embedding as output projection.
            num_encoder_layers: LSTM layers in each direction.
            num_decoder_layers: layers of LSTM and attention.
            attention: kind of scores.
            input_feeding: the first decoder layer also reads the last output; positions then run one by one.
            dropout: rate on embeddings and on the output of every layer.
            attention_dropout: rate on attention weights.
            gradient_checkpointing: recompute layers backwards instead of keeping their activations.
        """
        super().__init__()
        d_model = tgt_embedding.weight.size(1)
        self.tgt_embedding = tgt_embedding
        self.src_embedding = src_embedding
        self.output = output
        self.encoder_layers = nn.ModuleList(EncoderLayer(d_model, dropout) for _ in range(num_encoder_layers))
        self.memory_norm = nn.LayerNorm(d_model)
        self.bridge = nn.Linear(d_model, num_decoder_layers * d_model)
        self.decoder_layers = nn.ModuleList(
            DecoderLayer(
                d_model,
                2 * d_model if input_feeding and number == 0 else d_model,
                attention,
                dropout,
                attention_dropout,
                bypass=number > 0,
            )
            for number in range(num_decoder_layers)
        )
        self.output_norm = nn.LayerNorm(d_model)
        self.input_feeding = input_feeding
        self.dropout = dropout
        self.gradient_checkpointing = gradient_checkpointing
        self._initialise()

    @property
    def output_weight(self) -> Tensor:
        """(V, D) matrix of the output projection."""
        return self.tgt_embedding.weight if self.output is None else self.output.weight

    @property
    def max_length(self) -> int | None:
        """None: no sentence is too long."""
        return None

    @property
    def num_decoder_layers(self) -> int:
        """Decoder layers, each with attention to the source."""
        return len(self.decoder_layers)

    def has_packed_kernel(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Never: sentences advance side by side, so they need rows of their own."""
        return False

    def hidden(self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        """(B, S), (B, 1, 1, S), (B, T) -> (B, T, D), the states before the output projection."""
        encoded = self.encode(src_ids, src_mask)
        embedded = to_stream(self.tgt_embedding(decoder_input_ids))
        if self.input_feeding:
            return self._by_steps(embedded, encoded)
        states = dropout(embedded, self.dropout, self.training)
        for layer, first in zip(self._layers(), self._first_cells(encoded), strict=True):
            keys = layer.attention.key(encoded.memory)
            states = self._run(layer, states, keys, encoded.memory, src_mask, first)
        result: Tensor = self.output_norm(states)
        return result

    def project(self, hidden: Tensor, vocabulary: Tensor | None = None) -> Tensor:
        """(..., D) -> logits (..., V), or (..., N) of a vocabulary (N,) for all or (..., N) for each."""
        return output_logits(hidden, self.output_weight, vocabulary)

    def encode(self, src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        """(B, S), (B, 1, 1, S) -> EncoderOutput, whose final state both directions ended in."""
        embedding = self.tgt_embedding if self.src_embedding is None else self.src_embedding
        states = dropout(to_stream(embedding(src_ids)), self.dropout, self.training)  # (B, S, D)
        lengths = src_mask[:, 0, 0].sum(-1)  # (B,)
        mirror = mirrored(lengths, src_ids.size(1))
        for layer in self.encoder_layers:
            states = self._run(layer, states, mirror)
        memory = self.memory_norm(states)
        half = memory.size(-1) // 2
        rows = torch.arange(len(lengths), device=memory.device)
        final = torch.cat((memory[rows, lengths - 1, :half], memory[:, 0, half:]), dim=-1)  # (B, D)
        return EncoderOutput(memory, src_mask, final)

    def start(self, encoder_output: EncoderOutput, beam_size: int) -> DecoderState:
        """State before the first target token; the keys of every layer are computed here, once."""
        return self._first_state(encoder_output)

    def decode_step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token_ids (B, K) -> hidden (B, K, D) of the next position, and the state that follows."""
        assert isinstance(state, LstmState)
        if state.hidden.size(1) != token_ids.size(1):  # all beams of the first step come from one state
            state = state.reorder(torch.zeros_like(token_ids))
        return self._step(self.tgt_embedding(token_ids), state)

    def cross_attention(
        self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor, layer: AttentionLayer = None
    ) -> Tensor:
        """(B, T, S) attention weights."""
        weights = self._cross_weights(self.encode(src_ids, src_mask), decoder_input_ids)
        return pick_layer(weights, self.num_decoder_layers, layer)

    def _cross_weights(self, encoded: EncoderOutput, decoder_input_ids: Tensor) -> Iterator[Tensor]:
        """Attention weights (B, T, S) of one layer after the other, each computed when it is asked for."""
        memory, src_mask = encoded.memory, encoded.src_mask
        states = self.tgt_embedding(decoder_input_ids)
        # With all outputs known, what was fed back is known too, and layers run over the whole target again.
        outputs = self._by_steps(states, encoded) if self.input_feeding else None
        feed = None if outputs is None else nn.functional.pad(outputs, (0, 0, 1, 0))[:, :-1]
        for layer, first in zip(self._layers(), self._first_cells(encoded), strict=True):
            states = layer.recur(states, first, feed)
            yield layer.weights(states, memory, src_mask)
            states, feed = layer.attend(states, layer.attention.key(memory), memory, src_mask), None

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder_layers if isinstance(layer, DecoderLayer)]

    def _run(self, layer: nn.Module, *inputs: Any) -> Tensor:
        return run_layer(layer, *inputs, recompute=self.gradient_checkpointing)

    def _first_cells(self, encoded: EncoderOutput) -> list[Cell]:
        """What every decoder layer starts from, as if its last output gate had been open."""
        assert encoded.final_state is not None
        bridged = self.bridge(encoded.final_state)  # (B, L * D)
        return [(torch.tanh(cell), cell) for cell in bridged.chunk(len(self.decoder_layers), dim=-1)]

    def _first_state(self, encoded: EncoderOutput) -> LstmState:
        cells = self._first_cells(encoded)
        memory = encoded.memory
        feed = memory.new_zeros(memory.size(0), 1, memory.size(2)) if self.input_feeding else None
        return LstmState(
            memory,
            tuple(layer.attention.key(memory) for layer in self._layers()),
            encoded.src_mask,
            torch.stack([hidden for hidden, _ in cells], dim=1)[:, None],  # (B, 1, L, D)
            torch.stack([cell for _, cell in cells], dim=1)[:, None],
            feed,
        )

    def _by_steps(self, embedded: Tensor, encoded: EncoderOutput) -> Tensor:
        """(B, T, D) -> (B, T, D), one position after the other."""
        state = self._first_state(encoded)
        outputs = []
        for position in range(embedded.size(1)):
            output, state = self._step(embedded[:, position : position + 1], state)
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    def _step(self, embedded: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        states = dropout(embedded, self.dropout, self.training)  # (B, K, D)
        feed, cells = state.feed, []
        for number, layer in enumerate(self._layers()):
            before = state.hidden[:, :, number], state.cells[:, :, number]
            states, after = layer.step(states, state.keys[number], state, before, feed)
            cells.append(after)
            feed = None  # it goes into the first layer alone
        output: Tensor = self.output_norm(states)
        hidden = torch.stack([hidden for hidden, _ in cells], dim=2)  # (B, K, L, D)
        following = replace(
            state,
            hidden=hidden,
            cells=torch.stack([cell for _, cell in cells], dim=2),
            feed=output if self.input_feeding else None,
        )
        return output, following

    def _initialise(self) -> None:
        """Give all weights their first values, drawn from torch's default generator.

        Embeddings and an untied output: normal, D^-0.5. Each gate's input matrix Xavier uniform, its
        recurrent matrix orthogonal. Other linear layers Xavier uniform. Biases 0, those of forget gates 1.
        """
        width = self.tgt_embedding.weight.size(1) ** -0.5
        for module in self.modules():
            if isinstance(module, TokenEmbedding):
                nn.init.normal_(module.weight, std=width)
            elif isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, Attention) and module.vector is not None:
                nn.init.normal_(module.vector, std=width)
        for module in self.modules():
            if isinstance(module, Recurrence):
                for gate in module.inputs.weight.chunk(_GATES):
                    nn.init.xavier_uniform_(gate)
                for gate in module.recurrent.weight.chunk(_GATES):
                    nn.init.orthogonal_(gate)
                nn.init.ones_(module.inputs.bias.chunk(_GATES)[1])
        if self.output is not None:
            nn.init.normal_(self.output.weight, std=width)


def mirrored(lengths: Tensor, longest: int) -> Tensor:
    """Where to read each place of sentences that are reversed by their lengths; padding stays where it is.

    Args:
        lengths: (B,) int64.
        longest: S.

    Returns:
        (B * S,) int64, numbers of rows of (B * S, D). Reading twice gives the sentences back.
    """
    places = torch.arange(longest, device=lengths.device)
    last = lengths[:, None] - 1  # (B, 1)
    mirror = torch.where(places <= last, last - places, places)  # (B, S)
    return (mirror + longest * torch.arange(len(lengths), device=lengths.device)[:, None]).flatten()


def has_kernel(states: Tensor) -> bool:
    """Whether torch has a kernel for a whole sequence in the arithmetic used here: on CPUs not in fp16."""
    fp16 = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.float16
    return states.device.type != "cpu" or not fp16


def _take(states: Tensor, rows: Tensor) -> Tensor:
    """(B, S, D) with its B * S rows in another order."""
    return states.flatten(0, 1).index_select(0, rows).view_as(states)


def _additive_scores(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """(B, T, D), (B, S, D), (D,) -> (B, T, S); when it is large, in parts that are recomputed backwards."""

    def scores(part: Tensor, keys: Tensor) -> Tensor:
        return torch.tanh(part[:, :, None] + keys[:, None]) @ vector  # (B, t, S, D) -> (B, t, S)

    parts = torch.split(query, max(_ADDITIVE_ELEMENTS // keys.numel(), 1), dim=1)
    if len(parts) == 1 or not torch.is_grad_enabled():
        return torch.cat([scores(part, keys) for part in parts], dim=1)
    return torch.cat([checkpoint(scores, part, keys, use_reentrant=False) for part in parts], dim=1)
