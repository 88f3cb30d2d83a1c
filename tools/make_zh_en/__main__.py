"""Write the corpus, or measure it: `python -m tools.make_zh_en [--output DIR] [--measure]`."""

import argparse
from pathlib import Path

from .corpus import SEED, Pair, english_words, make_corpus, write_corpus
from .difficulty import nearest_neighbour, reordered_share, word_by_word

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "data" / "zh_en"


def measure(corpus: dict[str, list[Pair]]) -> None:
    """Print sizes, lengths, word types and the difficulty of test and test_long."""
    from sacrebleu.metrics.bleu import BLEU

    for split, pairs in corpus.items():
        lengths = sorted(len(pair.zh) for pair in pairs)
        zh_types = {word for pair in pairs for word in pair.zh_words}
        en_types = {word for pair in pairs for word in english_words(pair.en)}
        mean = sum(lengths) / len(lengths)
        long = sum(length >= 30 for length in lengths) / len(lengths)
        print(
            f"{split}: {len(pairs)} pairs, {lengths[0]} to {lengths[-1]} characters, mean {mean:.1f}, "
            f"{long:.1%} of 30 or more, {len(zh_types)} Chinese and {len(en_types)} English word types"
        )
    train = corpus["train"]
    for split in ("test", "test_long"):
        pairs = corpus[split]
        sources, references = [pair.zh for pair in pairs], [pair.en for pair in pairs]
        neighbours = nearest_neighbour(sources, [pair.zh for pair in train], [pair.en for pair in train])
        bleu = BLEU()
        words = bleu.corpus_score(word_by_word(sources, train), [references]).score
        nearest = bleu.corpus_score(neighbours, [references]).score
        print(
            f"{split}: word by word {words:.1f} BLEU, nearest neighbour {nearest:.1f} BLEU, "
            f"reordered {reordered_share(pairs):.1%}, signature {bleu.get_signature()}"
        )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.make_zh_en", description=__doc__, allow_abbrev=False
    )
    parser.add_argument(
        "--output", type=Path, default=DEFAULT_OUTPUT, help="folder to write to (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the committed files: %(default)s")
    parser.add_argument("--measure", action="store_true", help="print statistics and write nothing")
    arguments = parser.parse_args()
    corpus = make_corpus(arguments.seed)
    if arguments.measure:
        measure(corpus)
    else:
        write_corpus(arguments.output, corpus)


if __name__ == "__main__":
    main()
