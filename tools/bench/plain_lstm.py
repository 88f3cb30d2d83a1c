"""The LSTM that tutorials teach: a packed bidirectional nn.LSTM, then nn.LSTMCell in a loop over the target.

As wide and as deep as ours, with as many parameters. Every step has its Luong attention, on top of the cells,
and its output layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tools.bench.task import DROPOUT, PAD_ID, Size


class PlainLstm(nn.Module):
    """One embedding matrix for both languages, which the output layer shares."""

    def __init__(self, size: Size, vocab_size: int) -> None:
        super().__init__()
        width, layers = size.d_model, size.num_layers
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.encoder = nn.LSTM(
            width, width // 2, layers, batch_first=True, dropout=DROPOUT, bidirectional=True
        )
        self.hidden_bridge = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.cell_bridge = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.cells = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(layers))
        self.query = nn.Linear(width, width, bias=False)
        self.combine = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, vocab_size, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        lengths = (src != PAD_ID).sum(1).cpu()
        embedded = self.dropout(self.embedding(src))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        packed, final = self.encoder(packed)
        memory, _ = pad_packed_sequence(packed, batch_first=True)  # (B, S, D)
        hidden, cells = (
            [bridge(state) for bridge, state in zip(bridges, _joined(states), strict=True)]
            for bridges, states in zip((self.hidden_bridge, self.cell_bridge), final, strict=True)
        )
        logits = []
        for token in self.dropout(self.embedding(tgt_in)).unbind(1):  # (B, D)
            output = token
            for number, cell in enumerate(self.cells):
                hidden[number], cells[number] = cell(output, (hidden[number], cells[number]))
                output = self.dropout(hidden[number])
            scores = self.query(output)[:, None] @ memory.transpose(1, 2)  # (B, 1, S)
            weights = scores.masked_fill((src == PAD_ID)[:, None], -torch.inf).softmax(-1)
            context = (weights.to(memory.dtype) @ memory).squeeze(1)  # (B, D)
            combined = torch.tanh(self.combine(torch.cat((context, output), dim=-1)))
            logits.append(self.output(self.dropout(combined)))  # (B, V)
        return torch.stack(logits, dim=1)


def _joined(states: Tensor) -> Tensor:
    """(layers * 2, B, D / 2) of both directions -> (layers, B, D)."""
    return states.unflatten(0, (-1, 2)).transpose(1, 2).flatten(2)
