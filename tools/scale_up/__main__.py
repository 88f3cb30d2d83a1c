"""A corpus, multiplied to several sizes -> a table of seconds and memory."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tools.command_line import Parser, count, one_line_errors
from tools.scale_up.measure import Cost, learn, measured
from transformer_mt.errors import DataError
from transformer_mt.text.corpus import read_pairs

# Training ends with a validation, which is not what is measured here.
_VALID_PAIRS = 20
_RECIPE = """\
run_dir: {run_dir}
data: {{root: "{root}", train: train, valid: valid, src_lang: {src}, tgt_lang: {tgt}}}
tokenizer: {tokenizer}
model: {{preset: tiny}}
training: {{max_tokens: 4096, max_steps: {steps}, log_every: 1, metric: nll}}
"""


def main() -> int:
    """Print the table, a row as soon as it is measured."""
    parser = Parser(prog="tools/scale", description="What prepare and train cost as the corpus grows.")
    parser.add_argument("--root", required=True, type=Path, help="folder with train.* and valid.*")
    parser.add_argument("--src", required=True, metavar="LANG")
    parser.add_argument("--tgt", required=True, metavar="LANG")
    parser.add_argument(
        "--pairs", type=count, nargs="+", default=[300_000, 1_000_000, 3_000_000, 10_000_000], metavar="N"
    )
    parser.add_argument("--steps", type=count, default=200, metavar="N", help="updates of the largest corpus")
    parser.add_argument("--vocab-size", type=count, default=8000, metavar="N", help="of the tokenizer")
    parser.add_argument("--folder", type=Path, default=Path("runs/scale"), help="where all of it is written")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = args.folder / "tokenizer"
    if not tokenizer.is_dir():  # one for all sizes: to learn it takes memory and time of its own
        with _corpus(args, min(args.pairs), 1, f"{{type: bpe, vocab_size: {args.vocab_size}}}") as recipe:
            learn(recipe, tokenizer)
    print(f"{'pairs':>11}  {Cost.HEAD}", flush=True)
    for pairs in args.pairs:
        steps = args.steps if pairs == max(args.pairs) else 1
        with _corpus(args, pairs, steps, f'{{from: "{tokenizer.resolve()}"}}') as recipe:
            cost = measured(recipe)
        print(f"{pairs:>11,}  {cost}", flush=True)
    return 0


@contextmanager
def _corpus(args: argparse.Namespace, pairs: int, steps: int, tokenizer: str) -> Iterator[Path]:
    """The recipe of a training on so many pairs, in a folder that is gone afterwards."""
    folder: Path = args.folder / str(pairs)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        _multiply(args.root, folder, args.src, args.tgt, pairs)
        recipe = folder / "recipe.yaml"
        text = _RECIPE.format(
            run_dir=folder / "run",
            root=folder.resolve(),
            src=args.src,
            tgt=args.tgt,
            tokenizer=tokenizer,
            steps=steps,
        )
        recipe.write_text(text, encoding="utf-8")
        yield recipe
    finally:
        shutil.rmtree(folder)


def _multiply(root: Path, folder: Path, src: str, tgt: str, pairs: int) -> None:
    """The corpus again and again until there are enough pairs; each line of a copy ends in its number."""
    few = list(islice(read_pairs("valid", root, src, tgt), _VALID_PAIRS))
    once = list(read_pairs("train", root, src, tgt))
    if not once:
        raise DataError(f"{root}: train is empty; there is nothing to multiply")
    for side, lang in enumerate((src, tgt)):
        (folder / f"valid.{lang}").write_text("".join(f"{pair[side]}\n" for pair in few), encoding="utf-8")
        with open(folder / f"train.{lang}", "w", encoding="utf-8", newline="\n") as stream:
            for number in range(pairs):
                copy, place = divmod(number, len(once))
                stream.write(f"{once[place][side]} {copy}\n" if copy else f"{once[place][side]}\n")


if __name__ == "__main__":
    with one_line_errors("tools/scale"):
        sys.exit(main())
