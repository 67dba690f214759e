"""Make ``resources/screenshot.png`` from the real window, with the shipped example run by the real engine.

``.venv/bin/python packaging/screenshot.py [--theme dark] [--out FILE] [--help-out FOLDER]``; needs no screen and takes
about a minute. The pictures of the help are single panels, as narrow as a page of the help.
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
PICTURE = ROOT / "resources" / "screenshot.png"
SIZE = (1600, 1000)
HELP = ROOT / "resources" / "help"
HELP_PICTURES = {"results": ("report.png", 240), "shapes": ("shapes.png", 240)}
"""Panel -> its picture beside the pages of the help, and the height of that."""
HELP_WIDTH = 620
RUN_LIMIT_S = 300.0


def isolate(folder: Path) -> None:
    """Keep the user's settings, history and trust out of the picture. Must run before Qt is imported."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())


def take_picture(out: Path, *, theme: str, folder: Path, help_out: Path) -> None:
    """Open the example, trust it, run it, select an op, and save what the window and single panels show."""
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
        session.set_setting("theme", theme)
        window.resize(*SIZE)
        window.show()
        session.files.open_path(str(example / "recipe.toml"))
        wait(lambda: session.document.file is not None, "the inspection of the example")
        session.trust.trust_file()
        session.jobs.run(str(folder / "out"))
        wait(lambda: session.document.result is not None, "the run of the example")
        graph = session.document.graph
        assert graph is not None
        heavy = max(graph.op_rows(), key=lambda row: graph.flops[row])
        session.view.select((graph.op_id[heavy],))
        window.commands.show_panel("results")
        settle(1.5)
        window.grab().save(str(out))
        take_panels(window, help_out, settle)
    finally:
        window.hide()
        studio.close()
    print(f"{out}: {SIZE[0]} x {SIZE[1]}")


def take_panels(window: Any, folder: Path, settle: Callable[[float], None]) -> None:
    """Save the pictures of the help."""
    for name, (file, height) in HELP_PICTURES.items():
        window.commands.show_panel(name)
        panel = window.workbench.panel(name)
        settle(0.5)
        panel.setFixedSize(HELP_WIDTH, height)  # a panel that is only resized is laid out anew with the window
        settle(0.1)
        panel.grab().save(str(folder / file))


def main() -> None:
    """Take the picture in a temporary user folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=PICTURE)
    parser.add_argument("--help-out", type=Path, default=HELP, help="folder for the pictures of the help")
    parser.add_argument("--theme", default="dark")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory(prefix="ace-screenshot-") as folder:
        isolate(Path(folder))
        take_picture(options.out, theme=options.theme, folder=Path(folder), help_out=options.help_out)


if __name__ == "__main__":
    main()
