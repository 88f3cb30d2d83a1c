"""No pickle is read from or written to what outlives a process: the whole package is looked through."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "transformer_mt"
# Modules that read or write pickles, and functions that do so inside.
MODULES = {
    *("pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "copyreg"),
    *("multiprocessing", "xmlrpc", "socketserver"),
}
FUNCTIONS = {
    *("torch.load", "torch.save", "torch.package", "torch.jit.load", "torch.hub.load", "torch.hub"),
    *(
        "read_pickle",
        "to_pickle",
        "ProcessPoolExecutor",
        "allow_pickle",
    ),  # without the last, np.load takes none
    *("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"),
    *("send_object_list", "recv_object_list", "rpc_sync", "rpc_async", "remote", "init_rpc"),
}
# A process asks those that it has forked itself, through pipes without a name that nobody else can open.
BETWEEN_FORKS = {
    "training/loader.py": {"pickle", "multiprocessing"},
    "decoding/workers.py": {"multiprocessing"},
}


def _uses(source: str) -> set[str]:
    """Names of modules and functions above that a text of Python mentions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names} & MODULES
            found |= {alias.name for alias in node.names} & FUNCTIONS
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module).partition(".")[0]} & MODULES
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & FUNCTIONS
            found |= {alias.name for alias in node.names} & FUNCTIONS
        elif isinstance(node, ast.Attribute):
            found |= {ast.unparse(node), node.attr} & FUNCTIONS
        elif isinstance(node, ast.keyword):
            found |= {str(node.arg)} & FUNCTIONS
        elif isinstance(node, ast.Constant):
            found |= {str(node.value)} & (MODULES | FUNCTIONS)  # getattr, import_module
    return found


def test_no_module_reads_or_writes_pickles() -> None:
    """B115, B116: but for the pipes between a process and its forks."""
    found = {
        str(path.relative_to(PACKAGE)): uses
        for path in sorted(PACKAGE.rglob("*.py"))
        if (uses := _uses(path.read_text(encoding="utf-8")))
    }
    assert found == BETWEEN_FORKS


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import torch; torch.load(path)",
        "from torch import load",
        "importlib.import_module('pickle')",
        "dist.all_gather_object(found, own)",
        "from torch.distributed import broadcast_object_list",
        "np.load(path, allow_pickle=True)",
        "numpy.lib.format.read_array(stream, allow_pickle=True)",
        "frame.read_pickle(path)",
    ],
)
def test_what_is_looked_for_is_found(line: str) -> None:
    """Each way to a pickle on its own."""
    assert _uses(line)


def test_forks_are_asked_through_pipes_alone() -> None:
    """No name of a file, socket or address is given to what unpickles."""
    for name in BETWEEN_FORKS:
        source = (PACKAGE / name).read_text(encoding="utf-8")
        assert 'get_context("fork")' in source or "os.fork()" in source
        for word in ("Listener", "Client", "Manager", "address", "open(", "socket"):
            assert word not in source
