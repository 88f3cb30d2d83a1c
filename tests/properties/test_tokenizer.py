"""No text is changed by going through tokens, and sampling is a pure function."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.lines import one_line
from transformer_mt.text.tokenizer import NUM_SPECIAL, Tokenizer, train_tokenizer

LINES = [
    "the cat sat on the mat and the dog ate the hat",
    "a dog and a cat sat there , that is that",
    "猫坐在垫子上，狗吃了帽子。",
    "der Hund aß den Hut über Nacht",
] * 20

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\u2581")),
    st.lists(
        st.sampled_from(
            ["the", " ", "  ", "\t", "\n", "\0", "cat", "</s>", "<pad>", "<0x0A>", "猫", "\u3000", "\u2028"]
        )
    ).map("".join),
)


@cache
def _tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer(LINES, type=kind, vocab_size=300)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=TEXT)
def test_text_comes_back(kind: str, text: str) -> None:
    """B028, B032, B035, B036, B038: every character, every space, every typed control word comes back."""
    tokenizer = _tokenizer(kind)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(NUM_SPECIAL <= token < tokenizer.vocab_size for token in ids)
    assert tokenizer.encode_batch([text, "", text]) == [ids, [], ids]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(ids=st.lists(st.integers(0, 299) | st.integers(NUM_SPECIAL, NUM_SPECIAL + 255)))
def test_whatever_a_model_writes_is_one_line_of_text(kind: str, ids: list[int]) -> None:
    """B040: any ids, broken characters and newlines spelled in bytes among them, with special ids between."""
    text = one_line(_tokenizer(kind).decode(ids))
    assert not {"\n", "\r"} & set(text)
    assert text.encode("utf-8").decode("utf-8") == text
    assert text == one_line(_tokenizer(kind).decode([token for token in ids if token >= NUM_SPECIAL]))


@given(text=TEXT)
def test_bpe_without_dropout_is_plain(text: str) -> None:
    """Pins the order of merges, the words and the bytes of our own sampler against SentencePiece."""
    assert _tokenizer("bpe").sample(text, 0.0, 1) == _tokenizer("bpe").encode(text)


@given(text=TEXT)
def test_sharp_unigram_sampling_is_plain(text: str) -> None:
    """With a huge exponent only the best segmentation is left; ties may fall either way."""
    tokenizer = _tokenizer("unigram")
    drawn, plain = (
        sum(tokenizer._processor.get_score(token) for token in ids)
        for ids in (tokenizer.sample(text, 1e5, 1), tokenizer.encode(text))
    )
    assert drawn == pytest.approx(plain, rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=TEXT, seed=st.integers(0, 2**40))
def test_sampled_text_comes_back_and_repeats(kind: str, text: str, seed: int) -> None:
    """A draw depends on its seed alone, not on draws before it."""
    tokenizer = _tokenizer(kind)
    ids = tokenizer.sample(text, 0.3, seed)
    assert tokenizer.decode(ids) == text
    tokenizer.sample("the cat and the dog", 0.5, seed + 1)
    assert tokenizer.sample(text, 0.3, seed) == ids
