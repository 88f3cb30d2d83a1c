"""Sentences: the mixture that train, valid and test are made of, and that of test_long.

Scope: from a source of choices to a finished pair with its final mark.
"""

from random import Random

from .clauses import told
from .complex import add, complex_statement, joined, story, thinking
from .phrase import Phrase
from .questions import QUESTIONS, request
from .statements import statement


def plain(rng: Random) -> Phrase:
    """A statement of one clause."""
    return told(statement(rng))


def extended(rng: Random) -> Phrase:
    """A sentence of several clauses, mostly of 30 characters and more."""
    kind = rng.random()
    if kind < 0.6:
        return joined(rng)
    if kind < 0.94:
        return thinking(rng, complex_statement(rng))
    return story(rng, 3)


def sentence(rng: Random) -> Phrase:
    """Any sentence of the kind that train, valid and test are made of."""
    kind = rng.random()
    if kind < 0.47:
        return plain(rng)
    if kind < 0.63:
        return rng.choices(list(QUESTIONS), weights=list(QUESTIONS.values()))[0](rng)
    if kind < 0.68:
        return request(rng)
    if kind < 0.77:
        return told(complex_statement(rng))
    return told(extended(rng))


def long_sentence(rng: Random) -> Phrase:
    """A sentence of the same grammar with more embedding and more clauses."""
    kind = rng.random()
    if kind < 0.2:
        return told(story(rng, rng.randint(4, 5)))
    if kind < 0.5:
        return told(thinking(rng, joined(rng)))
    if kind < 0.8:
        return told(joined(rng))
    return told(add(rng, joined(rng), statement(rng)))
