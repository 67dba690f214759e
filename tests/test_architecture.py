"""The import contracts hold, and each of them is seen to fail when somebody breaks it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

VIOLATIONS = {
    "Layers: main > gui | cli > session > jobs > engine > records": (
        ("records/errors.py", "import ace_studio.session.document"),
        ("engine/flow.py", "import ace_studio.jobs"),
        ("jobs/__init__.py", "import ace_studio.cli"),
    ),
    "Qt lives in the window only": (
        ("engine/flow.py", "from PySide6.QtCore import QObject"),
        ("session/document.py", "import pyqtgraph"),
    ),
    "torch and its family live in the engine only": (
        ("records/errors.py", "import torch"),
        ("session/document.py", "import onnxruntime"),
        ("gui/__init__.py", "import ace_studio.jobs.worker\nimport ace_studio.engine.flow"),
    ),
    "The session and the window reach the engine through jobs only": (
        ("session/document.py", "import ace_studio.engine.progress"),
        ("gui/__init__.py", "import ace_studio.engine.progress"),
    ),
    "Stages of the engine do not know each other": (
        ("engine/measure.py", "import ace_studio.engine.export"),
        ("engine/quantize/__init__.py", "import ace_studio.engine.targets.base"),
        ("engine/new_stage.py", "import math"),
    ),
    "Panels do not know each other": (("gui/panels/probe.py", "import ace_studio.gui.panels.other_probe"),),
}
"""Contract -> lines that break it, each with the file that gets it (a new one where there is none)."""
SOURCE_LINES = 105_367
"""Most lines of Python in the package. Lower it when lines go; raising it needs a reason in DECISIONS."""
MOST_SPARE = 0.005
"""Share of the lines by which the budget may exceed them."""
GIT = shutil.which("git")


def contract_names(root: Path) -> list[str]:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]


def broken_contracts(checkout: Path) -> list[str]:
    """Names of the contracts that the package in this folder breaks."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    return re.findall(r"^(.+?) BROKEN\b.*$", done.stdout, flags=re.MULTILINE)


@pytest.fixture
def copy(root, tmp_path) -> Path:
    """A copy of the package and its settings, to spoil."""
    skipped = shutil.ignore_patterns("__pycache__", "*.html", "*.j2", "*.png")
    shutil.copytree(root / "ace_studio", tmp_path / "ace_studio", ignore=skipped)
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_package_keeps_every_contract(root):
    assert broken_contracts(root) == []


def test_every_contract_has_a_violation_that_proves_it(root):
    assert set(VIOLATIONS) == set(contract_names(root))


@pytest.mark.parametrize(
    ("contract", "file", "line"),
    [(contract, file, line) for contract, rows in VIOLATIONS.items() for file, line in rows],
)
def test_a_contract_fails_when_it_is_broken(copy, contract, file, line):
    path = copy / "ace_studio" / file
    (copy / "ace_studio/gui/panels/other_probe.py").touch()
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{line}\n", encoding="utf-8")
    assert contract in broken_contracts(copy)


def source_lines(root: Path) -> int:
    """Lines of Python in the package, in files that git knows or would add; in all files where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "ace_studio/*.py"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False) if GIT else None
    names = listed.stdout.split("\0") if listed is not None and listed.returncode == 0 else []
    paths = [root / name for name in names if name] or (root / "ace_studio").rglob("*.py")
    return sum(path.read_bytes().count(b"\n") for path in paths if path.exists())


def test_the_package_has_no_more_lines_than_its_budget_and_the_budget_follows_it(root):
    lines = source_lines(root)
    assert lines <= SOURCE_LINES, (
        f"ace_studio has {lines:,} lines of Python, {lines - SOURCE_LINES:,} more than SOURCE_LINES allows: take "
        "as many away elsewhere, or raise SOURCE_LINES in tests/test_architecture.py with a line in DECISIONS.md why"
    )
    assert lines * (1 + MOST_SPARE) >= SOURCE_LINES, (
        f"ace_studio has {SOURCE_LINES - lines:,} lines of Python less than SOURCE_LINES allows: "
        f"set SOURCE_LINES in tests/test_architecture.py to {lines:_}"
    )


def test_lines_are_counted_outside_of_a_checkout_too(tmp_path):
    (tmp_path / "ace_studio" / "engine").mkdir(parents=True)
    for name, text in (("one.py", "x = 1\n\ny = 2\n"), ("engine/two.py", "z = 3\n"), ("page.md", "a page\n")):
        (tmp_path / "ace_studio" / name).write_text(text, encoding="utf-8")
    assert source_lines(tmp_path) == 4
