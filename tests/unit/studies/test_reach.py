"""Gradients of a linear model by hand, of real models by another way, and which distance they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch
from pydantic import ValidationError
from random_run import MODELS, random_run
from torch import Tensor, nn

from transformer_mt.checkpoint import load_run
from transformer_mt.config import ModelConfig, Recipe
from transformer_mt.data.batch import make_batch
from transformer_mt.errors import ConfigError
from transformer_mt.model.build import build_model
from transformer_mt.model.embedding import TokenEmbedding
from transformer_mt.studies import reach
from transformer_mt.studies.reach import Reach, gradient_norms, measure

CPU = torch.device("cpu")
V, D = 23, 6


class Linear(nn.Module):
    """Hidden states are sums of source embeddings, weighted by how far they stand from the diagonal."""

    src_embedding = None

    def __init__(self, weights: Tensor) -> None:
        """weights: (T, S)."""
        super().__init__()
        self.tgt_embedding = TokenEmbedding(V, D)
        nn.init.normal_(self.tgt_embedding.weight)
        self.weights = weights

    def hidden(self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        embedded = self.tgt_embedding(src_ids)
        self.tgt_embedding(decoder_input_ids)
        return self.weights @ embedded

    def project(self, hidden: Tensor) -> Tensor:
        return hidden @ self.tgt_embedding.weight.T


def test_a_linear_model_by_hand() -> None:
    """d log p(w) / d e_s = a_ts (w - sum of p(v) v): its norm is |a_ts| times that of one vector."""
    torch.manual_seed(1)
    weights = torch.randn(3, 4) * 0.3
    model = Linear(weights)
    batch = make_batch([([5, 6, 7, 3], [8, 9, 3]), ([9, 10, 11, 3], [12, 5, 3])])
    norms = gradient_norms(cast("Any", model), batch)
    table = model.tgt_embedding.weight.detach()
    for row in range(2):
        embedded = table[batch.src_ids[row]] * D**0.5
        for position in range(3):
            mean = (weights[position] @ embedded @ table.T).softmax(-1) @ table
            length = (table[batch.labels[row, position]] - mean).norm()
            expected = weights[position].abs() * length
            assert torch.allclose(norms[row, position], expected, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
@pytest.mark.parametrize("tied", ["decoder", "three_way"])
def test_models_by_another_way(architecture: str, tied: str) -> None:
    """An embedding of its own for the source gets the same gradient in its rows, times sqrt(D); padding
    changes nothing, and a shared embedding is caught at the source alone."""
    torch.manual_seed(2)
    config = ModelConfig.model_validate({**MODELS[architecture], "tied_embeddings": "decoder"})
    model = build_model(config, V, V)
    assert model.src_embedding is not None
    batch = make_batch([([5, 6, 7, 8, 3], [8, 9, 3]), ([9, 10, 3], [12, 5, 6, 3])])
    if tied == "three_way":
        model.src_embedding.weight.data.copy_(model.tgt_embedding.weight)
        shared = build_model(config.model_copy(update={"tied_embeddings": "three_way"}), V, V)
        shared.load_state_dict({k: v for k, v in model.state_dict().items() if "src_emb" not in k})
        norms = gradient_norms(shared, batch)
    else:
        norms = gradient_norms(model, batch)
    for row, (source, target) in enumerate([([5, 6, 7, 8, 3], [8, 9, 3]), ([9, 10, 3], [12, 5, 6, 3])]):
        one = make_batch([(source, target)])
        hidden = model.hidden(one.src_ids, one.src_mask, one.decoder_input_ids)
        log_probs = model.project(hidden)[0].log_softmax(-1)
        for position, token in enumerate(target):
            weight = model.src_embedding.weight
            (found,) = torch.autograd.grad(log_probs[position, token], weight, retain_graph=True)
            expected = found[source].norm(dim=-1) / 32**0.5
            assert torch.allclose(norms[row, position, : len(source)], expected, rtol=1e-3, atol=1e-7)
    assert float(norms[0, 0, 1]) > 0


def test_distances_are_those_from_the_diagonal() -> None:
    """4 target and 7 source positions: places 0, 2, 4, 6; padding belongs to no distance."""
    batch = make_batch([([4, 5, 6, 7, 8, 9, 3], [5, 6, 7, 3]), ([5, 6, 3], [5, 6, 7, 8, 3])])
    real, distances = reach._places(batch)
    assert distances[0, :4].tolist() == [
        [0, 1, 2, 3, 4, 5, 6],
        [2, 1, 0, 1, 2, 3, 4],
        [4, 3, 2, 1, 0, 1, 2],
        [6, 5, 4, 3, 2, 1, 0],
    ]
    assert real.sum((1, 2)).tolist() == [4 * 7, 5 * 3]
    # 5 target and 3 source positions: places 0, 0.5, 1, 1.5, 2, and halves are rounded to even numbers.
    assert distances[1, 2:, :3].tolist() == [[1, 0, 1], [2, 0, 0], [2, 1, 0]]


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """A run whose validation set has a pair that is too long and a short one among three that fit."""
    texts = [
        "ab dei klm nor stu " * 20,
        "ab dei klm nor stu ab",
        "ab",
        "nor stu dei ab klm e",
        "stu nor ab klm dei a",
    ]
    for side in ("de", "en"):
        (tmp_path / f"valid.{side}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    data = {"root": str(tmp_path), "train": "t", "valid": "valid", "src_lang": "de", "tgt_lang": "en"}
    return load_run(random_run(tmp_path / "run", model=MODELS["lstm"], data=data)).recipe


def test_every_distance_is_a_mean_over_sentences(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """With norms of 1 / (1 + distance), each distance has that norm, and a share that shrinks with it."""
    seen: list[int] = []

    def by_distance(model: nn.Module, batch: Any) -> Tensor:
        seen.append(len(batch.labels))
        assert max(batch.src_ids.size(1), batch.labels.size(1)) <= 40
        real, distances = reach._places(batch)
        return torch.where(real, 1 / (1 + distances), 0.0)

    monkeypatch.setattr(reach, "gradient_norms", by_distance)
    settings = Reach(sentences=2, shortest=8, longest=40)
    found = {(one.metric, one.at["distance"]): one.value for one in measure(recipe, settings, CPU)}
    assert seen == [2]
    assert list(found) == [(m, n) for n in range(8) for m in ("gradient_norm", "gradient_share")]
    for n in range(8):
        assert found["gradient_norm", n] == pytest.approx(1 / (1 + n))
    shares = [float(found["gradient_share", n] or 0) for n in range(8)]
    assert shares == sorted(shares, reverse=True) and 0 < shares[7] < shares[0] < 1


def test_gradients_of_a_run(recipe: Recipe) -> None:
    """All is there, and of three fitting sentences no more than there are."""
    found = list(measure(recipe, Reach(shortest=8, longest=40), CPU))
    assert len(found) == 16 and all(one.value is not None and one.value > 0 for one in found)


def test_no_sentence_fits(recipe: Recipe) -> None:
    with pytest.raises(ConfigError, match=r"no validation pair of .*run has 90 to 95 tokens on both sides"):
        list(measure(recipe, Reach(shortest=90, longest=95), CPU))


def test_lengths_that_nothing_has_are_refused() -> None:
    with pytest.raises(ValidationError, match="longest: must not be below `shortest`, but 5 < 9"):
        Reach(shortest=9, longest=5)
