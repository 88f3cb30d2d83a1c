"""The peers that everybody can write: torch.nn.Transformer, or the LSTM of `plain_lstm`, in a plain training
loop, no tricks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from tools.bench.exported import Exported, Ids
from tools.bench.meter import Meter, peak_gib, synchronizer
from tools.bench.plain_lstm import PlainLstm
from tools.bench.task import BOS_ID, DROPOUT, LABEL_SMOOTHING, PAD_ID, SIZES, Job, Size, answer

_MAX_LENGTH = 512


class PlainTransformer(nn.Module):
    """nn.Transformer between one embedding matrix that also projects; sinusoidal positions."""

    def __init__(self, size: Size, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, size.d_model, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=size.d_model**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            size.d_model,
            size.num_heads,
            size.num_layers,
            size.num_layers,
            size.d_ff,
            DROPOUT,
            batch_first=True,
        )
        self.scale = math.sqrt(size.d_model)
        rates = torch.exp(torch.arange(0, size.d_model, 2) * (-math.log(10_000.0) / size.d_model))
        angles = torch.arange(_MAX_LENGTH).unsqueeze(1) * rates  # (length, D / 2)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # (length, D)
        self.positions: Tensor
        self.register_buffer("positions", table)

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        states: Tensor = self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])
        return states

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        src_padding = src == PAD_ID
        states = self.transformer(
            self.embed(src),
            self.embed(tgt_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt_in.size(1), src.device, torch.bool),
            tgt_is_causal=True,
            src_key_padding_mask=src_padding,
            memory_key_padding_mask=src_padding,
        )
        return F.linear(states, self.embedding.weight)


def main() -> None:
    """Train for the windows of the job."""
    job = Job.from_command_line()
    asked, effort = job.measurement, job.effort
    torch.manual_seed(1)
    data = Exported(job.path(""))
    size = SIZES[asked.size]
    kinds = {"transformer": PlainTransformer, "lstm": PlainLstm}
    model = kinds[size.architecture](size, len(data.pieces)).to(job.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
    kind = torch.device(job.device).type
    meter = Meter(effort.warm_seconds, effort.window_seconds, effort.windows, synchronizer(torch, job.device))
    for src_rows, tgt_rows in data.stream():
        src = padded(src_rows).to(job.device)
        tgt = padded([[BOS_ID, *row] for row in tgt_rows]).to(job.device)
        with torch.autocast(kind, torch.bfloat16, enabled=asked.precision == "bf16"):
            logits = model(src, tgt[:, :-1])
            loss = F.cross_entropy(
                logits.flatten(0, 1).float(),
                tgt[:, 1:].flatten(),
                ignore_index=PAD_ID,
                label_smoothing=LABEL_SMOOTHING,
            )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        if meter.tick(sum(map(len, tgt_rows))):
            break
    answer(meter.rates, "torch", peak_gib=peak_gib(torch, job.device))


def padded(rows: Iterable[Sequence[int] | Ids]) -> Tensor:
    """Rows of ids -> (B, longest)."""
    return pad_sequence([torch.as_tensor(row, dtype=torch.long) for row in rows], True, PAD_ID)


if __name__ == "__main__":
    main()
