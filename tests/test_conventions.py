"""Conventions that a program can check: one name per thing, mirrored tests, explained broad excepts."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

SHARED_CLASS_NAMES: frozenset[str] = frozenset()
"""Public classes that two modules define on purpose."""
LEAST_MIRRORED = 0.9
"""Share of the modules with functions that must have a test file at the same path."""


@pytest.fixture(scope="module")
def trees(root: Path) -> dict[Path, ast.Module]:
    """Syntax tree of every module, by its path in the package."""
    package = root / "ace_studio"
    return {path.relative_to(package): ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))}


def test_a_public_class_is_defined_in_one_module(trees: dict[Path, ast.Module]) -> None:
    places = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.as_posix())
    twice = {name: found for name, found in places.items() if len(found) > 1 and name not in SHARED_CLASS_NAMES}
    assert twice == {}


def test_most_modules_have_their_tests_at_the_same_path(root: Path, trees: dict[Path, ast.Module]) -> None:
    missing = [path for path, tree in trees.items() if _has_functions(tree) and not _has_tests(root / "tests", path)]
    count = sum(_has_functions(tree) for tree in trees.values())
    share = 1 - len(missing) / count
    assert share >= LEAST_MIRRORED, f"{share:.0%}; without tests: {', '.join(path.as_posix() for path in missing)}"


def test_a_broad_except_says_why_anything_may_come(root: Path, trees: dict[Path, ast.Module]) -> None:
    silent = []
    for path, tree in trees.items():
        lines = (root / "ace_studio" / path).read_text("utf-8").splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
                reason = lines[node.lineno - 1].partition("#")[2].replace("noqa: BLE001", "").strip(" -")
                if len(reason) < 10:
                    silent.append(f"{path.as_posix()}:{node.lineno}")
    assert silent == []


def _has_functions(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))


def _has_tests(tests: Path, path: Path) -> bool:
    name = "test_init.py" if path.name == "__init__.py" else f"test_{path.name}"
    return (tests / path.parent / name).exists()


def _is_broad(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(one is None or (isinstance(one, ast.Name) and one.id in ("Exception", "BaseException")) for one in kinds)
