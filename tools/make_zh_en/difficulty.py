"""How hard the corpus is: a word-by-word dictionary, the nearest training neighbour, the reordered pairs.

Scope: translations without learning, to be scored by the caller. The texts come from the files; the
segmentation, the dictionary and the alignment come from the generator.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from .corpus import Pair
from .phrase import english_line


def dictionary_of(train: Sequence[Pair]) -> dict[str, str]:
    """Chinese word -> its most frequent translation in train; the first in the alphabet among equals."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in train:
        for zh, en in pair.dictionary:
            counts[zh][en] += 1
    return {zh: min(options, key=lambda en: (-options[en], en)) for zh, options in counts.items()}


def lexicon_of(train: Sequence[Pair]) -> set[str]:
    """All Chinese words."""
    return {word for pair in train for word in pair.zh_words}


def segment(text: str, lexicon: set[str]) -> list[str]:
    """Words of a Chinese text by the longest match from the left; an unknown character is a word."""
    longest = max(map(len, lexicon))
    words: list[str] = []
    start = 0
    while start < len(text):
        size = next((n for n in range(longest, 1, -1) if text[start : start + n] in lexicon), 1)
        words.append(text[start : start + size])
        start += size
    return words


def word_by_word(sources: Sequence[str], train: Sequence[Pair]) -> list[str]:
    """Each Chinese word by its dictionary translation, in Chinese order; marks become English marks."""
    dictionary = dictionary_of(train) | {"。": ".", "？": "?", "，": ",", "、": ","}
    lexicon = lexicon_of(train)
    outputs = []
    for source in sources:
        translated = (dictionary.get(word, "") for word in segment(source, lexicon))
        outputs.append(english_line(word for word in translated if word))
    return outputs


def _bigrams(text: str) -> set[str]:
    return {text[index : index + 2] for index in range(len(text) - 1)}


def nearest_neighbour(
    sources: Sequence[str], train_src: Sequence[str], train_tgt: Sequence[str]
) -> list[str]:
    """The target of the training source most similar to each source.

    Similarity is the Dice coefficient of the sets of character bigrams; the first of equals is taken.
    """
    sizes = []
    postings: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(train_src):
        bigrams = _bigrams(text)
        sizes.append(len(bigrams))
        for bigram in bigrams:
            postings[bigram].append(index)
    outputs = []
    for source in sources:
        wanted = _bigrams(source)
        shared: Counter[int] = Counter()
        for bigram in wanted:
            shared.update(postings.get(bigram, ()))
        best = max(
            shared, key=lambda index: (2 * shared[index] / (len(wanted) + sizes[index]), -index), default=0
        )
        outputs.append(train_tgt[best])
    return outputs


def reordered_share(pairs: Sequence[Pair]) -> float:
    """Share of pairs whose word alignment has at least one crossing; see `phrase.is_reordered`."""
    return sum(pair.reordered for pair in pairs) / len(pairs)
