"""The Windows installer: the frozen program in one ``.exe`` by NSIS, for one user and without administrator rights."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from freeze import freeze
from steps import ROOT, BuildError, run, say, system_tag, version

SCRIPT = ROOT / "packaging" / "windows" / "ace-studio.nsi"


def build_exe(out: Path, work: Path) -> Path:
    """Build the installer; returns it.

    Raises: BuildError on another system, because PyInstaller freezes for the system that it runs on.
    """
    if sys.platform != "win32":
        raise BuildError("a Windows program can be frozen on Windows only", "run this on Windows")
    return pack_exe(freeze(work), out)


def pack_exe(program: Path, out: Path) -> Path:
    """Pack a frozen program with NSIS, which also runs on Linux."""
    if shutil.which("makensis") is None:
        raise BuildError(
            "makensis is not installed", "install NSIS 3: winget install NSIS.NSIS, or apt-get install nsis"
        )
    say("packing")
    installer = out / f"ace-studio-{version()}-{system_tag()}.exe"
    size_kb = sum(path.stat().st_size for path in program.rglob("*") if path.is_file()) // 1024
    names = {"VERSION": version(), "SOURCE": program, "OUT": installer, "LICENSE": ROOT / "LICENSE", "SIZE_KB": size_kb}
    run(["makensis", "-V2", "-WX", *(f"-D{name}={value}" for name, value in names.items()), SCRIPT])
    return installer
