"""The wheel and the source archive for pip."""

from __future__ import annotations

import zipfile
from pathlib import Path

from steps import ROOT, BuildError, make_environment, run, say, write_checksum

IN_EVERY_WHEEL = (
    "ace_studio/__main__.py",
    "ace_studio/jobs/boot.py",
    "ace_studio/py.typed",
    "ace_studio/resources/icons/ace-studio.svg",
    "ace_studio/resources/languages/Deutsch.json",
    "ace_studio/resources/release-key.pub",
    "ace_studio/resources/window.qss",
    "ace_studio/records/targets.toml",
)
NOT_IN_IT = ("tests/", "packaging/", ".ci/")


def build_wheel(out: Path, work: Path) -> Path:
    """Build both and check them; returns the wheel's path.

    Raises: BuildError if a file is missing in the wheel, or an index would refuse its description.
    """
    python = make_environment(work / "tools", "build", "hatchling", "twine")
    say("building the wheel and the source archive")
    before = set(out.glob("ace_studio-*"))
    run([python, "-m", "build", "--no-isolation", "--outdir", out, ROOT])
    wheel = max(out.glob("ace_studio-*.whl"), key=lambda path: path.stat().st_mtime)
    source = max(out.glob("ace_studio-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    check_contents(wheel)
    run([python, "-m", "twine", "check", "--strict", wheel, source])
    write_checksum(source)
    say(f"{len({*out.glob('ace_studio-*')} - before)} new files in {out}")
    return wheel


def check_contents(wheel: Path) -> None:
    """Look whether all is in the wheel that the program needs, and nothing of the tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if missing := [name for name in IN_EVERY_WHEEL if name not in names]:
        raise BuildError(f"{wheel.name} lacks {', '.join(missing)}", "look at [tool.hatch] in pyproject.toml")
    if extra := [name for name in names if name.startswith(NOT_IN_IT)]:
        raise BuildError(f"{wheel.name} holds {extra[0]}", "look at [tool.hatch] in pyproject.toml")
