"""Small parallel corpora for tests that run the whole road: the head of a real one, or made-up sentences."""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Iterable
from pathlib import Path

HEAD = {"train": 400, "valid": 6}
"""Lines taken of each split; test sets give 7."""


def write_lines(folder: Path, name: str, lines: Iterable[str]) -> None:
    """One text file, "\\n" after each line."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))


def write_head(source: Path, folder: Path) -> None:
    """The first lines of every plain or .xz file of a corpus, unpacked, under the same names."""
    for path in sorted(source.iterdir()):
        split = path.name.split(".")[0]
        if path.name.removesuffix(".xz").endswith((".zh", ".en", ".de")):
            content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
            lines = content.decode("utf-8").split("\n")[: HEAD.get(split, 7)]
            write_lines(folder, path.name.removesuffix(".xz"), lines)


def write_made_up(folder: Path, src_lang: str, tgt_lang: str) -> None:
    """400 train, 6 valid and 7 test pairs of invented words, the target in another order."""
    words = [("ein", "ali"), ("drei", "bro"), ("kein", "cru"), ("viel", "dem"), ("sieht", "fol")]
    things = [("Haus", "jok"), ("Buch", "kel"), ("Boot", "lum"), ("Rad", "mos"), ("Dach", "nuf")]
    pairs = [
        (f"{a} {x} {b} {y} {c}.", f"{c2} {y2} {b2} {a2} {x2}.")
        for (a, a2), (x, x2), (b, b2), (y, y2), (c, c2) in itertools.product(
            words, things, words, things, words
        )
    ]
    chosen = pairs[:: len(pairs) // 413][:413]
    for name, part in (("train", chosen[:400]), ("valid", chosen[400:406]), ("test", chosen[406:])):
        write_lines(folder, f"{name}.{src_lang}", (src for src, _ in part))
        write_lines(folder, f"{name}.{tgt_lang}", (tgt for _, tgt in part))
