"""Word alignments from attention: by hand from made-up weights, and of models that have learned to copy."""

from __future__ import annotations

import pytest
import torch
from small_models import small_config

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.decoding.alignment import align, attention_weights, links, word_shares
from transformer_mt.decoding.teacher_forcing import Pair
from transformer_mt.errors import ConfigError
from transformer_mt.model.build import Model, build_model
from transformer_mt.model.masks import padding_mask
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.training.loss import fused_loss

CPU = torch.device("cpu")
V = 24


def by_hand(weights: list[list[float]], src: str, tgt: str) -> list[tuple[int, int]]:
    """Links of texts whose tokens are their characters: a row for each of the target, and eos."""

    def words(text: str) -> list[tuple[int, int]]:
        ends = [place for place, character in enumerate(text + " ") if character == " "]
        return list(zip([0, *(end + 1 for end in ends)], ends, strict=False))

    spans = [[(place, place + 1) for place in range(len(text))] for text in (src, tgt)]
    return links(word_shares(torch.tensor(weights), *spans, words(src), words(tgt)))


def test_words_pay_the_mean_of_their_tokens_and_get_the_sum() -> None:
    """`ab c` -> `x yz`; the last row and column are eos, others are spaces: they count for nothing."""
    weights = [
        [0.1, 0.1, 0.0, 0.6, 0.2],
        [0.0, 0.0, 0.9, 0.1, 0.0],
        [0.3, 0.4, 0.0, 0.2, 0.1],
        [0.2, 0.3, 0.0, 0.4, 0.1],
        [0.9, 0.0, 0.0, 0.0, 0.1],
    ]
    shares = word_shares(
        torch.tensor(weights),
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        [(0, 2), (3, 4)],
        [(0, 1), (2, 4)],
    )
    paid = torch.tensor([[0.2, 0.6], [0.6, 0.3]])
    torch.testing.assert_close(shares, (paid / paid.sum(0)).double(), rtol=1e-6, atol=1e-6)
    assert by_hand(weights, "ab c", "x yz") == [(0, 1), (1, 0)]


def test_a_token_of_several_words_is_divided_among_them() -> None:
    """As a piece of two Chinese characters is: it is half of each. On both sides the second word has a token
    of its own too; where both are level the first is taken."""
    spans, words = [(0, 2), (2, 3)], [(0, 1), (1, 3)]
    shares = word_shares(torch.tensor([[0.6, 0.4], [0.2, 0.8]]), spans, spans, words, words)
    first, second = (0.3, 0.3 + 0.4), (0.1, 0.1 + 0.8)  # what both source words get of each target token
    paid = torch.tensor([first, [(a / 2 + b) / 1.5 for a, b in zip(first, second, strict=True)]]).double()
    torch.testing.assert_close(shares, paid / paid.sum(0), rtol=1e-6, atol=1e-6)
    assert links(torch.tensor([[0.5, 0.5], [0.5, 0.5]])) == [(0, 0), (0, 1), (1, 0)]


def test_a_word_that_all_look_at_draws_no_links() -> None:
    """The second source word has most of every row, yet the first row has more of the first than others."""
    weights = [[0.3, 0.0, 0.7, 0.0], [0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.9, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert by_hand(weights, "a .", "x .") == [(0, 0), (1, 1)]


def test_a_source_word_with_half_of_its_attention_from_one_word_is_linked_too() -> None:
    """Both of `a b` belong to `x`, though one is its best; `c` is spread over three words."""
    weights = [
        [0.5, 0.4, 0.1],
        [0.1, 0.1, 0.1],
        [0.1, 0.1, 0.1],
    ]
    spans = [(0, 1), (2, 3), (4, 5)]
    found = links(word_shares(torch.tensor(weights), spans, spans, spans, spans))
    assert (0, 0) in found and (1, 0) in found
    assert [pair for pair in found if pair[0] == 2] == [(2, 1), (2, 2)]


@pytest.mark.parametrize(("src", "tgt"), [("", ""), ("a", ""), ("", "a")])
def test_no_words_no_links(src: str, tgt: str) -> None:
    """And none for a word that looks at eos alone."""
    assert by_hand([[0.0] * len(src) + [1.0]] * (len(tgt) + 1), src, tgt) == []
    assert by_hand([[0.0, 1.0], [0.0, 1.0]], "a", "b") == []


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_model_that_copies_is_aligned_word_by_word(architecture: str) -> None:
    """Pins the position that predicts a token against the one that reads it: then all would be off by one."""
    torch.manual_seed(0)
    options = {"d_model": 32, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = build_model(small_config(architecture, **options), V, V)
    draw = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98))
    for _ in range(160):
        src, decoder_input, labels = _copies(_sentences(draw, 24))
        hidden = model.hidden(src, padding_mask(src, 0), decoder_input).flatten(0, 1)
        loss, _ = fused_loss(hidden, model.output_weight, labels, 0.0, 0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    pairs = [Pair([*ids, EOS_ID], ids) for ids in _sentences(draw, 30)]
    weights = attention_weights([model], pairs, layer="mean", device=CPU, batch_size=8)
    right = 0
    for one, pair in zip(weights, pairs, strict=True):
        assert one.shape == (len(pair.src_ids), len(pair.src_ids))
        spans = [(place, place + 1) for place in range(len(pair.tgt_ids))]
        right += links(word_shares(one, spans, spans, spans, spans)) == [
            (place, place) for place in range(len(spans))
        ]
    assert right >= 25


def _sentences(draw: torch.Generator, count: int) -> list[list[int]]:
    """Two to six different tokens each."""
    lengths = torch.randint(2, 7, (count,), generator=draw).tolist()
    return [(torch.randperm(V - 4, generator=draw)[:length] + 4).tolist() for length in lengths]


def _copies(sentences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    def rows(lists: list[list[int]], fill: int) -> torch.Tensor:
        return torch.tensor([ids + [fill] * (7 - len(ids)) for ids in lists])

    ends = [[*ids, EOS_ID] for ids in sentences]
    return rows(ends, 0), rows([[2, *ids] for ids in sentences], 0), rows(ends, -100).flatten()


def _model(seed: int, **options: object) -> Model:
    torch.manual_seed(seed)
    return build_model(small_config(**options), 340, 340).eval()


TEXTS = [("aber leise, du", "but no"), ("abe", "b"), ("ab  isu日本", "ne 日 ud"), ("bel die", "")]


def _pairs(loaded: LoadedRun) -> list[Pair]:
    tokenizers = loaded.tokenizers
    return [
        Pair([*tokenizers.src.encode(source), EOS_ID], tokenizers.tgt.encode(target), number)
        for number, (source, target) in enumerate(TEXTS, start=1)
    ]


def test_neighbours_and_batch_size_change_no_link_and_no_weight(loaded: LoadedRun) -> None:
    """Bit for bit, for both architectures."""
    pairs = _pairs(loaded)
    whole = attention_weights([loaded.model], pairs, layer="mean", device=CPU, batch_size=64)
    for place, pair in enumerate(pairs):
        alone = attention_weights([loaded.model], [pair], layer="mean", device=CPU, batch_size=1)
        assert torch.equal(alone[0], whole[place])
    found = align([loaded.model], loaded.tokenizers, pairs, TEXTS, device=CPU, batch_size=2)
    assert found[3] == [] and all(
        {target for _, target in one} == set(range(words))
        for one, words in zip(found, [2, 1, 3], strict=False)
    )
    assert max(source for source, _ in found[2]) <= 3  # `ab`, `isu` and two characters


def test_an_ensemble_averages_its_attention_and_layers_are_told_apart() -> None:
    """Two models of two layers: by hand from each model's own weights."""
    pairs = [Pair([9, 8, 7, EOS_ID], [30, 31])]
    models = [_model(seed) for seed in (0, 1)]

    def of(*chosen: Model, layer: object) -> torch.Tensor:
        return attention_weights(chosen, pairs, layer=layer, device=CPU, batch_size=1)[0]  # type: ignore[arg-type]

    first, second = of(models[0], layer=1), of(models[0], layer=2)
    assert not torch.allclose(first, second, atol=1e-3)
    torch.testing.assert_close(of(models[0], layer="mean"), (first + second) / 2)
    torch.testing.assert_close(of(*models, layer=2), (second + of(models[1], layer=2)) / 2)


@pytest.mark.parametrize("layer", [0, 3, -1])
def test_a_layer_that_is_not_there_is_refused(layer: int) -> None:
    with pytest.raises(
        ConfigError, match=f"alignment {layer}: must be `mean` or a decoder layer from 1 to 2"
    ):
        align(
            [_model(0), _model(1, num_decoder_layers=3)], None, [], [], layer=layer, device=CPU, batch_size=1
        )  # type: ignore[arg-type]
