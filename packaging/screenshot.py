"""Make the pictures of the README and of the help from the real window, with the shipped example run by the engine.

``.venv/bin/python packaging/screenshot.py [--out FOLDER] [--help-out FOLDER]``; needs no screen and takes about a
minute. The README has the window after a run, in the dark theme, and after a scan of the sensitivity, in the light one.
The pictures of the help are single panels, as narrow as a page of the help.
User folders are temporary, so the picture shows what a first start shows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUN, SCAN = "screenshot.png", "screenshot-sensitivity.png"
SIZE = (1600, 1000)
HELP = ROOT / "resources" / "help"
HELP_PICTURES = {"results": ("report.png", 240), "shapes": ("shapes.png", 240)}
"""Panel -> its picture beside the pages of the help, and the height of that."""
HELP_WIDTH = 620
RUN_LIMIT_S = 300.0
Settle = Callable[[float], None]
"""Lets the window work for some seconds."""


def isolate(folder: Path) -> None:
    """Keep the user's settings, history and trust out of the picture. Must run before Qt is imported."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())


def take_pictures(out: Path, *, folder: Path, help_out: Path) -> None:
    """Open the example, trust it, run it, scan its sensitivity, and save what the window and single panels show."""
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415 - after isolate

    from ace_studio.gui.shell.app import Studio  # noqa: PLC0415
    from ace_studio.records.places import resource_folder  # noqa: PLC0415
    from ace_studio.session.kept.folders import UserFolders  # noqa: PLC0415

    example = folder / "digits"
    shutil.copytree(resource_folder() / "examples" / "digits", example)
    application = QApplication(["ace-studio"])
    studio = Studio(application, UserFolders.of_user())
    session, window = studio.session, studio.window

    def wait(is_true: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + RUN_LIMIT_S
        while not is_true():
            if time.monotonic() > end or session.document.problems:
                problems = "\n".join(problem.as_text() for problem in session.document.problems)
                raise SystemExit(f"screenshot: waited in vain for {what}\n{problems}")
            application.processEvents()
            time.sleep(0.01)

    def settle(seconds: float) -> None:
        end = time.monotonic() + seconds
        wait(lambda: time.monotonic() > end, "the window to settle")

    try:
        window.resize(*SIZE)
        window.show()
        session.files.open_path(str(example / "recipe.toml"))
        wait(lambda: session.document.file is not None, "the inspection of the example")
        session.trust.trust_file()
        session.jobs.run(str(folder / "out"))
        wait(lambda: session.document.result is not None, "the run of the example")
        session.jobs.scan_sensitivity()
        wait(lambda: session.document.sensitivity is not None, "the scan of the sensitivity")
        take_scan(studio, settle).save(str(out / SCAN))
        take_run(studio, settle).save(str(out / RUN))
        take_panels(window, help_out, settle)
    finally:
        window.hide()
        studio.close()
    print(f"{out}: {RUN} and {SCAN}, {SIZE[0]} x {SIZE[1]}")


def take_scan(studio: Any, settle: Settle) -> Any:
    """What the window shows of the sensitivity, in the light theme."""
    window = studio.window
    studio.session.set_setting("theme", "light")
    window.commands.show_panel("plan")
    window.commands.show_panel("charts")
    settle(0.5)  # until the panels are made
    window.workbench.panel("charts").show_chart("sensitivity")
    settle(1.5)
    return window.grab()


def take_run(studio: Any, settle: Settle) -> Any:
    """What the window shows of the run, in the dark theme, with the op selected that computes most."""
    session, window = studio.session, studio.window
    session.set_setting("theme", "dark")
    graph = session.document.graph
    heavy = max(graph.op_rows(), key=lambda row: graph.flops[row])
    window.commands.show_panel("model")
    window.commands.show_panel("results")
    settle(0.5)
    session.view.select((graph.op_id[heavy],))
    settle(1.5)
    return window.grab()


def take_panels(window: Any, folder: Path, settle: Settle) -> None:
    """Save the pictures of the help."""
    for name, (file, height) in HELP_PICTURES.items():
        window.commands.show_panel(name)
        panel = window.workbench.panel(name)
        settle(0.5)
        panel.setFixedSize(HELP_WIDTH, height)  # a panel that is only resized is laid out anew with the window
        settle(0.1)
        panel.grab().save(str(folder / file))


def main() -> None:
    """Take the pictures in a temporary user folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "resources", help="folder for the pictures of the README")
    parser.add_argument("--help-out", type=Path, default=HELP, help="folder for the pictures of the help")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory(prefix="ace-screenshot-") as folder:
        isolate(Path(folder))
        take_pictures(options.out, folder=Path(folder), help_out=options.help_out)


if __name__ == "__main__":
    main()
