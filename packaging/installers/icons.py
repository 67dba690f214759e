"""The program's icon as pixels: PNG files for a Linux desktop, and what Windows and macOS put into programs."""

from __future__ import annotations

import sys
from pathlib import Path

from steps import ROOT, run

SVG = ROOT / "resources" / "icons" / "ace-studio.svg"
SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 192, 256, 512)
"""Width and height in pixels, as the icon theme "hicolor" names its folders."""
CODE = """
import sys
from PySide6.QtGui import QGuiApplication, QIcon
application = QGuiApplication(["", "-platform", "offscreen"])
icon, files = QIcon(sys.argv[1]), sys.argv[2:]
for size, file in zip(files[::2], files[1::2], strict=True):
    assert icon.pixmap(int(size), int(size)).save(file), "Qt cannot write " + file
"""


def render(python: Path, files: dict[Path, int]) -> None:
    """Write the icon to each file, at its size in pixels, in the form of its suffix; ``python`` has PySide6."""
    words: list[str | Path] = []
    for file, size in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        words += [str(size), file]
    run([python, "-I", "-c", CODE, SVG, *words])


def program_icon(python: Path, work: Path) -> Path | None:
    """The icon in the form that the executables of this system hold; None on Linux, where the desktop looks for it."""
    suffix = {"win32": ".ico", "darwin": ".icns"}.get(sys.platform)
    if suffix is None:
        return None
    icon = work / f"ace-studio{suffix}"
    render(python, {icon: 256})
    return icon


def stage_icons(python: Path, share: Path) -> None:
    """Write the PNG files below ``share/icons/hicolor``."""
    folder = share / "icons" / "hicolor"
    render(python, {folder / f"{size}x{size}" / "apps" / "ace-studio.png": size for size in SIZES})
