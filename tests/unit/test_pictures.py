"""Attention pictures: the numbers and the labels stand where they belong, in any script."""

from __future__ import annotations

import io
import warnings

import torch

from transformer_mt.pictures import attention_figure

S, T = 4, 3


def test_rows_are_target_pieces() -> None:
    """Pins that source and target are not swapped, and that the weights are drawn unchanged."""
    weights = torch.rand(T, S).softmax(-1)
    figure = attention_figure(weights.numpy(), list("abcd"), list("xyz"))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == list("abcd")
    assert [label.get_text() for label in axes.get_yticklabels()] == list("xyz")
    drawn = torch.tensor(axes.images[0].get_array())
    assert torch.equal(drawn, weights)


def test_chinese_pieces_draw_no_warnings() -> None:
    """Pins that training on Chinese does not fill the log with one warning for each character."""
    figure = attention_figure(
        torch.full((T, S), 0.25).numpy(), ["▁我", "們", "।", "🙂"], ["▁we", "<0xE6>", "</s>"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png")


def test_long_pieces_leave_room_for_the_weights() -> None:
    """Pins that the picture grows with its labels: cells are no smaller than letters, and nothing warns."""
    figure = attention_figure(torch.full((2, 2), 0.5).numpy(), ["字" * 16, "b"], ["w" * 16, "</s>"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png")
    box = figure.axes[0].get_window_extent()
    assert min(box.width, box.height) > 2 * 0.14 * figure.dpi


def test_a_piece_is_no_formula() -> None:
    """Pins that dollar signs, formulas to matplotlib, are drawn as they are instead of failing."""
    figure = attention_figure(torch.full((1, 2), 0.5).numpy(), ["$\\frac$", "$a$"], ["$$_$"])
    figure.savefig(io.BytesIO(), format="png")
