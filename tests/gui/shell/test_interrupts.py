"""Signals end the window properly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ace_studio.session.kept.folders import UserFolders

WINDOW = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from ace_studio.gui.shell import app
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.kept.folders import UserFolders

app.UserFolders.of_user = lambda: UserFolders.inside(Path(sys.argv[1]))
made = app.Studio.open_first


def open_first(studio, paths):
    made(studio, paths)
    studio.session.plan.set_default_precision(Precision.BF16)
    QTimer.singleShot(300, lambda: print("open", flush=True))


app.Studio.open_first = open_first
sys.exit(app.run_window(sys.argv[2:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_window_and_keeps_choices_and_layout(tmp_path, number):
    model = tmp_path / "net.py"
    model.write_text("def make_model(): ...")
    command = [sys.executable, "-c", WINDOW, str(tmp_path / "user"), str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        process.send_signal(number)
        began_s = time.monotonic()
        assert process.wait(timeout=30) == 128 + number, time.monotonic() - began_s
    folders = UserFolders.inside(tmp_path / "user")
    assert "window.geometry" in json.loads(folders.settings.read_text())
    (saved,) = folders.autosave.glob("*.json")
    assert '"default":"bf16"' in saved.read_text()
