"""Run directories of studies -> docs/studies: study.json and page of each, the page and the table of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tools.command_line import Parser, one_line_errors
from transformer_mt.errors import ConfigError
from transformer_mt.json_file import write_text
from transformer_mt.studies.conclusion import Conclusion, found_text, read_conclusion, write_conclusion
from transformer_mt.studies.page import write_overview, write_page

PUBLISHED = Path(__file__).parent.parent / "docs" / "studies"
_HEAD = """# Claims and verdicts

What each study of [recipes/studies](../../recipes/studies/README.md) came to, by the rule in its file, as
`tools/publish_studies` wrote it. Pages with pictures: `index.html` of each folder, and of this one. ± is the
standard deviation over runs.
"""


def take(run_dir: Path, folder: Path) -> None:
    """Take the conclusion of a study; its report stays, for it quotes test sets that are not ours.

    Raises:
        ConfigError: there is none, or it is of the quick size.
    """
    conclusion = read_conclusion(run_dir / "study.json")
    if conclusion is None or conclusion.quick:
        raise ConfigError(f"{run_dir}: holds no study of full size that is done")
    place = folder / conclusion.name
    place.mkdir(parents=True, exist_ok=True)
    write_conclusion(place / "study.json", replace(conclusion, report=False))


def draw(folder: Path) -> None:
    """Make the pages and the table of all studies anew from their numbers."""
    for name, conclusion in published(folder):
        write_page(conclusion, folder / name / "index.html")
    write_overview(folder)
    write_text(folder / "README.md", "\n".join((_HEAD, *_table(folder))) + "\n")


def published(folder: Path) -> Iterator[tuple[str, Conclusion]]:
    """Folder and conclusion of each."""
    for path in sorted(folder.glob("*/study.json")):
        conclusion = read_conclusion(path)
        assert conclusion is not None
        yield path.parent.name, conclusion


def _table(folder: Path) -> Iterator[str]:
    yield "| study | claim | judged by | found | verdict |"
    yield "|---|---|---|---|---|"
    for name, conclusion in published(folder):
        for one in conclusion.verdicts:
            cells = (f"[{name}]({name}/index.html)", one.claim, one.rule, found_text(one.found), one.outcome)
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    """Take what is named, and make all pages anew."""
    parser = Parser(prog="tools/publish_studies", allow_abbrev=False)
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="*")
    args = parser.parse_args()
    with one_line_errors("tools/publish_studies"):
        for run_dir in args.run_dirs:
            take(Path(run_dir), PUBLISHED)
        draw(PUBLISHED)


if __name__ == "__main__":
    main()
