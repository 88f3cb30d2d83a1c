"""README.md is run: every command of its sh blocks and every line of its python blocks, in order.

The table gives long commands a quick size; a command that stands in no row of it fails the test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.small_corpora import write_head, write_made_up

QUICK = (
    "model.d_model=32 model.num_encoder_layers=1 model.num_decoder_layers=1 "
    "training.max_tokens=512 training.warmup_steps=2 training.save_every=4 training.validate_every=4 "
    "decoding.beam_size=1 decoding.max_len_a=0.1 decoding.max_len_b=4 "
)
BUNDLED = QUICK + "data.root={folder}/data/zh_en tokenizer.vocab_size=900 "
OWN = QUICK + "tokenizer.vocab_size=320 training.max_steps=8 "
EXTRA = {
    "tools/setup": "",
    "tools/quickstart": BUNDLED + "training.max_steps=8 --runs {folder}/runs",
    "source .venv/bin/activate": "",
    "echo": "",
    "tools/fuzz": "--inputs 20 --shell 1",
    "tools/mutate_faults --number 30 --seed 1": "--list",
    "transformer-mt score": "",
    "transformer-mt translate": "",
    "transformer-mt translate runs/zh_en_bundled data/zh_en/test.zh --nbest 3": "--beam-size 3",
    "transformer-mt evaluate": "",
    "transformer-mt compare": "",
    "torchrun --standalone --nproc-per-node=2 -m transformer_mt train": BUNDLED + "training.max_steps=4",
    "torchrun --standalone --nproc-per-node=2 -m transformer_mt translate": "",
    "transformer-mt study": BUNDLED + "training.max_steps=8",
    "transformer-mt study recipes/studies/memory.yaml --quick": "",
    "transformer-mt average": "",
    "transformer-mt doctor": "",
    "transformer-mt prepare recipes/multi30k_de_en": OWN,
    "transformer-mt filter": BUNDLED + "--updates 4 --keep 0.9",
    "transformer-mt prepare recipes/zh_en_bundled": "data.root={folder}/data/zh_en tokenizer.vocab_size=900",
    "transformer-mt train recipes/multi30k_de_en": OWN,
    "transformer-mt train recipes/zh_en_bundled/transformer.yaml": BUNDLED + "training.max_steps=8",
    "transformer-mt train recipes/zh_en_bundled/lstm.yaml": BUNDLED + "training.max_steps=8",
    "transformer-mt train recipes/zh_en_bundled/transformer.yaml training.max_steps=2000": (
        BUNDLED + "training.max_steps=12"
    ),
}
"""Start of a command -> what is added to it; the longest start counts."""
RUNS_THIS = "tools/test"
"""The one command that is left out: it is what runs this test."""


def blocks(language: str) -> list[str]:
    """The fenced blocks of README.md in one language."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """The commands of the sh blocks without their comments."""
    lines = (line.partition(" #")[0].strip() for block in blocks("sh") for line in block.split("\n"))
    return [line for line in lines if line and line != RUNS_THIS]


def quick(command: str, folder: Path) -> str:
    """The command as the test runs it.

    Raises:
        KeyError: no row of the table says how.
    """
    starts = [start for start in EXTRA if command == start or command.startswith((start + " ", start + "/"))]
    if not starts:
        raise KeyError(f"README.md runs {command!r}; give it a row in EXTRA")
    extra = EXTRA[max(starts, key=len)].format(folder=folder)
    command = command.replace("tools/", f"{REPOSITORY}/tools/") if command.startswith("tools/") else command
    return f"{command} {extra}".strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for the clone, so that the runs of the test are not those of the user."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "recipes").symlink_to(REPOSITORY / "recipes")
    (folder / ".venv").symlink_to(sys.prefix)
    write_head(REPOSITORY / "data" / "zh_en", folder / "data" / "zh_en")
    write_made_up(folder / "my_text", "de", "en")
    return folder


def test_a_command_without_a_row_is_noticed(tmp_path: Path) -> None:
    """Pins that a new README command cannot slip in unrun."""
    with pytest.raises(KeyError, match="give it a row in EXTRA"):
        quick("transformer-mt traim recipes/zh_en_bundled/transformer.yaml", tmp_path)


def test_files_that_the_readme_names_exist() -> None:
    """Pins the links and the "where is it" index."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    index = text.split("## Where is it?")[1].split("\n## ")[0]
    modules = [f"transformer_mt/{name}" for name in re.findall(r"[\w/]+\.py\b", index)]
    assert len(links) > 5 and len(modules) > 20
    assert [name for name in links + modules if not (REPOSITORY / name).exists()] == []


def test_the_design_page_names_every_module_and_no_other() -> None:
    """Pins that the map of the package is true."""
    text = (REPOSITORY / "docs" / "design.md").read_text(encoding="utf-8")
    package_map = text.split("## 3.")[1].split("### Layers")[0]
    named = set(re.findall(r"\b\w+\.py\b", package_map))
    package = REPOSITORY / "transformer_mt"
    assert named == {path.name for path in package.rglob("*.py") if not path.name.startswith("__")}


def test_links_between_pages_lead_somewhere() -> None:
    """Pins the links of the recipes', the corpus's and the design's pages."""
    pages = [
        *REPOSITORY.glob("recipes/*/README.md"),
        *REPOSITORY.glob("data/**/*.md"),
        *REPOSITORY.glob("docs/*.md"),
    ]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text("utf-8"))
    ]
    assert len(pages) > 6 and links
    assert [str(page) for page, link in links if not (page.parent / link).exists()] == []


@pytest.mark.slow
def test_every_command_of_the_readme_runs(folder: Path) -> None:
    """Pins that the tour works from its first line to its last, the Python included."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    shell = [["bash", "-c", quick(command, folder)] for command in commands()]
    python = [[sys.executable, "-c", block] for block in blocks("python")]
    assert len(shell) > 10 and len(python) == 1
    for command in shell + python:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, f"{command}\n{done.stderr}"
    lines = {path.name: path.read_bytes().count(b"\n") for path in folder.glob("*.en")}
    expected = (folder / "data" / "zh_en" / "test.zh").read_bytes().count(b"\n")
    assert lines == dict.fromkeys(("translations.en", "greedy.en", "short.en", "two.en"), expected)
