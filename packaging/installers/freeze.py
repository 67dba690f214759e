"""The window and the command line with their own Python and Qt, without torch: one folder made by PyInstaller."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from contents import DOCUMENT, LICENCES, NOT_SHIPPED, write_contents
from icons import program_icon
from steps import HERE, ROOT, BuildError, make_environment, run, say, version

NAME = "ace-studio"
WINDOW_S = 15.0
"""Seconds after which a window that is still there is taken for one that works."""


def window_python(work: Path) -> Path:
    """The Python with what the window needs, and nothing else."""
    return make_environment(work / "window", "pyinstaller", "pyinstaller-hooks-contrib")


def freeze(work: Path) -> Path:
    """Freeze the program; returns its folder, whose executable is ``ace-studio``.

    The environment holds only what the window needs, so that nothing else can get in.
    """
    say("installing what the window needs")
    python = window_python(work)
    # Not editable: what is frozen is what the wheel has.
    make_environment(work / "window", "--upgrade", "--force-reinstall", "--no-deps", ROOT)
    make_environment(work / "window", f"{ROOT}[window]")
    package = run([python, "-I", "-c", "import ace_studio; print(ace_studio.__path__[0])"]).strip()
    for origin in Path(package).parent.glob("ace_studio-*.dist-info/direct_url.json"):
        origin.unlink()  # it holds the folder of this checkout
    say("freezing the window")
    run(
        [
            python, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN", HERE / "ace-studio.spec",
            "--distpath", work / "frozen", "--workpath", work / "freezing",
        ],
        cwd=HERE,
        variables={"ACE_PACKAGE": package, "ACE_VERSION": version(), "ACE_ICON": str(program_icon(python, work) or "")},
    )  # fmt: skip
    folder = work / "frozen" / NAME
    forget_places(folder)
    write_contents(python, folder, leave_out=frozenset(NOT_SHIPPED))
    if sys.platform == "darwin":
        resources = work / "frozen" / "ACE Studio.app" / "Contents" / "Resources"
        forget_places(resources)
        shutil.copy(folder / DOCUMENT, resources)
        shutil.copytree(folder / LICENCES, resources / LICENCES, dirs_exist_ok=True)
    check_start(folder / (f"{NAME}.exe" if os.name == "nt" else NAME))
    return folder


def forget_places(folder: Path) -> None:
    """Take out of the records of packages what differs by folder and is not shipped: scripts, and their origin."""
    for record in folder.rglob("*.dist-info/RECORD"):
        lines = record.read_text("utf-8").splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not _is_forgotten(line)), "utf-8")


def _is_forgotten(line: str) -> bool:
    return line.startswith("../") or ".dist-info/direct_url.json," in line


def check_start(executable: Path) -> None:
    """Start a frozen program: its command line, and on Linux its window, on no screen.

    Raises: BuildError if one of them ends with an error.
    """
    run([executable, "--help"])
    if sys.platform != "linux":
        return
    say("starting the window once")
    with tempfile.TemporaryDirectory() as home:
        places = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home}
        window = subprocess.Popen(
            [executable],
            # Without an engine, which would leave bytecode beside the sources.
            env=os.environ | places | {"QT_QPA_PLATFORM": "offscreen", "ACE_STUDIO_PYTHON": "/nowhere/python"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            printed, _ = window.communicate(timeout=WINDOW_S)
        except subprocess.TimeoutExpired:
            window.terminate()
            window.communicate()
        else:
            raise BuildError(f"the window ended at once:\n{printed[-2000:]}")
