"""The layers of docs/design.md, read from the import statements of every module of the package."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "transformer_mt"
FREE = {"config", "errors", "json_file", "pictures", "recipe", "runtime", "yaml_file", "yaml_text"}
_LOWER = {"checkpoint", "checkpoint_files", "data", "model", "text"}
BELOW: dict[str, set[str]] = {
    "text": set(),
    "data": {"text"},
    "model": set(),
    "checkpoint_files": {"text"},
    "checkpoint": {"checkpoint_files", "model", "text"},
    "training": _LOWER,
    "decoding": _LOWER,
    "evaluation": _LOWER,
    "run_evaluation": {"decoding", "evaluation"} | _LOWER,
    "studies": {"run_evaluation", "training", "decoding", "evaluation"} | _LOWER,
    "cli": {"studies", "run_evaluation", "training", "decoding", "evaluation"} | _LOWER,
    "__main__": {"cli"},
    "__init__": set(),
}
"""Stage -> the stages it may import besides layer 0 and itself."""


def module_name(path: Path, root: Path) -> str:
    """transformer_mt/text/lines.py -> text.lines; a folder's __init__ bears the folder's name."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(root: Path) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports anywhere, functions and type checking included."""
    paths = sorted(root.rglob("*.py"))
    modules = {module_name(path, root) for path in paths}
    found: dict[str, set[str]] = {}
    for path in paths:
        name = module_name(path, root)
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name}: relative import on line {node.lineno}"
                base = node.module or ""
                targets = [f"{base}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                continue
            for target in targets:
                if target.split(".")[0] == PACKAGE:
                    inner = target.removeprefix(PACKAGE).lstrip(".")
                    while inner and inner not in modules:
                        inner = inner.rpartition(".")[0]
                    found[name].add(inner or "__init__")
    return found


def faults(found: dict[str, set[str]]) -> list[str]:
    """Imports that the layers forbid, and circles."""
    wrong = []
    for name, targets in sorted(found.items()):
        stage = name.split(".")[0]
        for target in sorted(targets - {"__init__"}):
            to = target.split(".")[0]
            if stage in FREE:
                allowed = to in FREE
            elif stage in BELOW:
                allowed = to in FREE or to == stage or to in BELOW[stage]
            else:
                allowed = False
            if not allowed:
                wrong.append(f"{name} imports {target}")
        if stage not in FREE and stage not in BELOW:
            wrong.append(f"{name} stands in no layer")
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        wrong.append(f"circle: {' -> '.join(error.args[1])}")
    return wrong


def test_no_module_imports_upward_sideways_or_in_a_circle(repository: Path) -> None:
    """Pins the layers: a stage can be read, tested and replaced knowing only those below it."""
    found = imports(repository / PACKAGE)
    assert len(found) > 20
    assert faults(found) == []


def test_only_build_sees_the_model_config(repository: Path) -> None:
    """Pins that model components take plain parameters and can be used without a recipe."""
    found = imports(repository / PACKAGE)
    model = {name: targets for name, targets in found.items() if name.split(".")[0] == "model"}
    assert [name for name, targets in model.items() if targets & {"config", "recipe"}] == ["model.build"]


def test_init_files_import_nothing(repository: Path) -> None:
    """Pins that importing one module never loads its whole stage (and with it torch)."""
    for path in (repository / PACKAGE).rglob("__init__.py"):
        tree = ast.parse(path.read_bytes())
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)], path


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("text/lines.py", "from transformer_mt.data import batch", "text.lines imports data"),
        ("text/lines.py", "import transformer_mt.data", "text.lines imports data"),
        ("data/batch.py", "def f():\n    from transformer_mt.model import x", "data.batch imports model"),
        ("training/loss.py", "from transformer_mt.decoding import x", "training.loss imports decoding"),
        ("errors.py", "from transformer_mt.text import lines", "errors imports text"),
        ("helpers.py", "", "helpers stands in no layer"),
        ("studies/study.py", "from transformer_mt.cli import train", "studies.study imports cli"),
        ("decoding/greedy.py", "import transformer_mt.cli", "decoding.greedy imports cli"),
        ("config.py", "from transformer_mt.errors import A", "circle: "),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, path: str, text: str, fault: str) -> None:
    """Pins that the checks above can fail, for each way of writing an import."""
    root = tmp_path / PACKAGE
    for stage in ("text", "data", "model", "training", "decoding", "studies", "cli"):
        (root / stage).mkdir(parents=True)
        (root / stage / "__init__.py").write_bytes(b"")
    (root / "__init__.py").write_bytes(b"")
    (root / "errors.py").write_bytes(b"from transformer_mt.config import B\n")
    (root / "config.py").write_bytes(b"")
    assert faults(imports(root)) == []
    (root / path).write_text(text + "\n", encoding="utf-8")
    assert any(found.startswith(fault) for found in faults(imports(root)))
