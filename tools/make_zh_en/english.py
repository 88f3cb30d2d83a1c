"""English inflection and verb groups.

Scope: the forms of single words and of the verb group. Knows no Chinese and nothing of sentence structure.
"""

from enum import Enum
from typing import Literal

Agreement = Literal["I", "it", "they"]
"""What the verb agrees with: "I", a third person singular ("it"), or anything that takes the plural form."""

IRREGULAR = {
    "be": ("was", "been"),
    "break": ("broke", "broken"),
    "bring": ("brought", "brought"),
    "build": ("built", "built"),
    "buy": ("bought", "bought"),
    "do": ("did", "done"),
    "draw": ("drew", "drawn"),
    "drink": ("drank", "drunk"),
    "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"),
    "find": ("found", "found"),
    "fly": ("flew", "flown"),
    "get": ("got", "gotten"),
    "give": ("gave", "given"),
    "go": ("went", "gone"),
    "have": ("had", "had"),
    "keep": ("kept", "kept"),
    "know": ("knew", "known"),
    "leave": ("left", "left"),
    "lend": ("lent", "lent"),
    "lose": ("lost", "lost"),
    "make": ("made", "made"),
    "meet": ("met", "met"),
    "put": ("put", "put"),
    "read": ("read", "read"),
    "ride": ("rode", "ridden"),
    "run": ("ran", "run"),
    "see": ("saw", "seen"),
    "sell": ("sold", "sold"),
    "send": ("sent", "sent"),
    "sing": ("sang", "sung"),
    "sleep": ("slept", "slept"),
    "speak": ("spoke", "spoken"),
    "steal": ("stole", "stolen"),
    "swim": ("swam", "swum"),
    "take": ("took", "taken"),
    "teach": ("taught", "taught"),
    "tell": ("told", "told"),
    "wear": ("wore", "worn"),
    "write": ("wrote", "written"),
}
DOUBLING = {"get", "jog", "plan", "put", "run", "shop", "swim"}
VOWEL_SOUND = ("a", "e", "i", "o", "u", "hour")
CONSONANT_SOUND = ("uni", "use", "one")


def article(following: str) -> str:
    """`a` or `an`, by the sound that `following` begins with."""
    vowel = following.startswith(VOWEL_SOUND) and not following.startswith(CONSONANT_SOUND)
    return "an" if vowel else "a"


def third_person(lemma: str) -> str:
    """`goes` for `go`."""
    if lemma == "have":
        return "has"
    if lemma.endswith(("s", "sh", "ch", "x", "o")):
        return lemma + "es"
    if lemma.endswith("y") and lemma[-2] not in "aeiou":
        return lemma[:-1] + "ies"
    return lemma + "s"


def _regular_past(lemma: str) -> str:
    if lemma.endswith("e"):
        return lemma + "d"
    if lemma.endswith("y") and lemma[-2] not in "aeiou":
        return lemma[:-1] + "ied"
    return lemma + (lemma[-1] if lemma in DOUBLING else "") + "ed"


def past_tense(lemma: str) -> str:
    """`went` for `go`."""
    return IRREGULAR[lemma][0] if lemma in IRREGULAR else _regular_past(lemma)


def participle(lemma: str) -> str:
    """`gone` for `go`."""
    return IRREGULAR[lemma][1] if lemma in IRREGULAR else _regular_past(lemma)


def gerund(lemma: str) -> str:
    """`going` for `go`."""
    if lemma.endswith("e") and lemma not in ("be", "see"):
        return lemma[:-1] + "ing"
    return lemma + (lemma[-1] if lemma in DOUBLING else "") + "ing"


def be(agreement: Agreement) -> str:
    """The present of `be`."""
    return {"I": "am", "it": "is", "they": "are"}[agreement]


def present(lemma: str, agreement: Agreement) -> str:
    """The simple present."""
    if lemma == "be":
        return be(agreement)
    return third_person(lemma) if agreement == "it" else lemma


class Tense(Enum):
    """English verb groups the grammar uses; a modal is a tense here, since it fills the same place."""

    PRESENT = "present"
    PAST = "past"
    FUTURE = "will"
    GOING_TO = "going to"
    PROGRESSIVE = "progressive"
    PERFECT = "perfect"
    CAN = "can"
    SHOULD = "should"
    MUST = "must"
    MAY = "may"


CONTRACTED = {
    "will": "won't", "can": "can't", "should": "shouldn't", "do": "don't", "does": "doesn't", "did": "didn't",
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "am": "am not", "have": "haven't",
    "has": "hasn't",
}  # fmt: skip


def verb_group(
    phrase: str, tense: Tense, agreement: Agreement, *, negative: bool, inverted: bool
) -> tuple[str, str]:
    """The verb group for a lemma and what belongs to it ("turn on", "be very tall", "want to").

    Args:
        phrase: base form; its first word is inflected, the others stay as they are.
        tense: see `Tense`.
        agreement: of the subject.
        negative: contract `not` into the auxiliary.
        inverted: the auxiliary will stand before the subject, so there must be one.

    Returns:
        (auxiliary, rest); the auxiliary is empty where English has none. Adverbs ("often") stand between.
    """
    lemma, _, tail = phrase.partition(" ")
    auxiliary, main = _auxiliary_and_form(lemma, tense, agreement, needs_auxiliary=negative or inverted)
    if negative:
        auxiliary = CONTRACTED[auxiliary]
    return auxiliary, f"{main} {tail}".strip()


def _auxiliary_and_form(
    lemma: str, tense: Tense, agreement: Agreement, *, needs_auxiliary: bool
) -> tuple[str, str]:
    if tense is Tense.PROGRESSIVE:
        return be(agreement), gerund(lemma)
    if tense is Tense.GOING_TO:
        return be(agreement), f"going to {lemma}"
    if tense is Tense.PERFECT:
        return ("has" if agreement == "it" else "have"), participle(lemma)
    if tense not in (Tense.PRESENT, Tense.PAST):
        return tense.value, lemma
    if lemma == "be":
        if tense is Tense.PRESENT:
            return be(agreement), ""
        return ("were" if agreement == "they" else "was"), ""
    if needs_auxiliary:
        return ("did" if tense is Tense.PAST else "does" if agreement == "it" else "do"), lemma
    return "", past_tense(lemma) if tense is Tense.PAST else present(lemma, agreement)
