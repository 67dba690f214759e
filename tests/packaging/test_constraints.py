"""The pinned versions: they fit the project's ranges, say nothing of places, and nothing else in the project does."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


@pytest.fixture(scope="module")
def pins(root) -> dict[str, str]:
    lines = (root / "packaging" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "a line is not name==version"
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.fixture(scope="module")
def requirements(root) -> list[Requirement]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name, group in extras.items() if name != "all" for text in group)]
    return [found for found in map(Requirement, texts) if found.marker is None or found.marker.evaluate()]


def test_every_requirement_is_pinned_inside_its_range(pins, requirements):
    wrong = [
        f"{needed} but pinned {pins.get(canonicalize_name(needed.name))}"
        for needed in requirements
        if not needed.specifier.contains(pins.get(canonicalize_name(needed.name), "0"))
    ]
    assert not wrong


def test_torch_is_pinned_without_a_local_part_so_that_the_cpu_build_can_be_taken(pins):
    assert Version(pins["torch"]).local is None
    assert all(Version(version).local is None for version in pins.values())


def test_the_pinned_qt_is_one_that_does_not_abort_python_3_11(pins):
    assert Version(pins["pyside6-essentials"]) < Version("6.12")


def test_what_this_interpreter_runs_is_what_is_pinned(pins):
    """Otherwise the tests say nothing about what a fresh set-up installs."""
    from importlib.metadata import version

    drifted = {
        name: (version(name), pins[name])
        for name in ("torch", "onnxruntime", "openvino", "nncf", "pyside6-essentials", "numpy", "typer")
        if Version(version(name)).public != pins[name]
    }
    assert not drifted


# Written in pieces, so that this file passes its own test.
HOSTS = re.compile(
    "|".join(
        (
            "py" + r"pi\.(org|io)",
            "python" + r"hosted\.org",
            "download" + r"\.py" + r"torch\.org",
            "/opt/" + "(wheels|py" + "pi)",
            "file" + ":///",
            r"--(extra-)?index-" + r"url[ =]\S",
            "--trusted" + r"-host[ =]\S",
        )
    )
)
TEXTS = {".py", ".toml", ".md", ".txt", ".cmd", ".cfg", ".yml", ".yaml", ".json", ".html", ""}
SKIPPED = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__", "ace-output"}


def project_texts(root: Path) -> list[Path]:
    """Every text file of the checkout that is not made by a tool."""
    found = []
    for path in root.rglob("*"):
        parts = set(path.relative_to(root).parts)
        if path.is_file() and path.suffix in TEXTS and not parts & SKIPPED:
            found.append(path)
    return found


def test_nothing_in_the_project_names_a_package_index_or_a_folder_of_wheels(root):
    named = [
        f"{path.relative_to(root)}: {match.group()}"
        for path in project_texts(root)
        if (match := HOSTS.search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert not named


@pytest.mark.parametrize(
    "text", ["https://" + "py" + "pi.org/simple", "--index-" + "url https://mirror", "file" + ":///opt"]
)
def test_the_search_would_find_one(text):
    assert HOSTS.search(text)
