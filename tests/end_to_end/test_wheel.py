"""The wheel: what users install without the clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from transformer_mt import __version__


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy, so that nothing of the clone's build folders gets in."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, source)
    shutil.copytree(
        repository / "transformer_mt",
        source / "transformer_mt",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source], check=True
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_whole_package(wheel: Path, repository: Path) -> None:
    """Pins that modules, templates and the typing marker are packed, and tests and tools are not."""
    package = repository / "transformer_mt"
    wanted = {
        f"transformer_mt/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        meta = [name for name in archive.namelist() if ".dist-info/" in name]
    assert packed == wanted
    assert "transformer_mt/py.typed" in packed
    assert any(name.endswith("LICENSE") for name in meta)


def test_the_installed_wheel_works_outside_the_clone(
    wheel: Path, tmp_path: Path, copy_task: Callable[[], Path]
) -> None:
    """Pins that the package needs no file of the clone, from text to translation; the libraries are those
    already installed."""
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--target", target, wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    where = subprocess.run(
        [sys.executable, "-c", "import transformer_mt; print(transformer_mt.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(target)
    for command, answer in (
        (["--version"], f"transformer-mt {__version__}\n"),
        (["train", "--help"], "usage: transformer-mt train"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "transformer_mt", *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stdout.startswith(answer)
    assert (target / "bin" / "transformer-mt").exists()
    recipe = copy_task()
    for command in (
        ["train", str(recipe), "training.max_steps=1"],
        ["translate", str(recipe.parent / "run"), str(recipe.parent / "valid.xx")],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "transformer_mt", *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
    assert done.stdout.count("\n") == 40
