"""The engine is formulas: no clock, no files, no chance. Read from its syntax, not from what runs."""

import ast
from pathlib import Path

import pytest

import costsvc

PACKAGE = Path(costsvc.__file__).parent
ENGINE = sorted((PACKAGE / "engine").rglob("*.py"))
ALLOWED = {
    "abc",
    "collections",
    "contextlib",
    "costsvc",
    "dataclasses",
    "functools",
    "itertools",
    "math",
    "numba",
    "numpy",
    "operator",
    "scipy",
    "statistics",
    "typing",
}
ALLOWED_PARTS = {"costsvc.engine", "costsvc.errors"}
SIDE_EFFECTS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}


def imported(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def test_there_is_an_engine_to_look_at() -> None:
    assert {path.name for path in ENGINE} >= {
        "memory.py",
        "operators.py",
        "serving.py",
        "pricing.py",
        "heads.py",
    }


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_the_engine_imports_formulas_alone(path: Path) -> None:
    modules = imported(path)
    assert {module.split(".")[0] for module in modules} <= ALLOWED
    own = {".".join(module.split(".")[:2]) for module in modules if module.startswith("costsvc")}
    assert own <= ALLOWED_PARTS


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_the_engine_calls_nothing_that_reads_writes_or_draws(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert names & SIDE_EFFECTS == set()
    assert attributes & {"random", "load", "save", "loadtxt", "savetxt", "fromfile", "tofile"} == set()


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_the_engine_keeps_no_state_between_calls(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global | ast.Nonlocal)]
    for node in tree.body:
        names = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and names != ["__all__"]:
            assert not isinstance(node.value, ast.List | ast.Set), f"line {node.lineno}: a list that may grow"
