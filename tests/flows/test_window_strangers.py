"""What a stranger made is dropped onto a window with a real engine: it is looked at, and nothing of it runs."""

import json
import os
import pickle
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, QUrl
from PySide6.QtGui import QDropEvent, Qt
from PySide6.QtWidgets import QWidget

from ace_studio.gui.shell.app import Studio
from ace_studio.session.document import EngineState
from ace_studio.session.kept.folders import UserFolders
from tests.corpus.files import Calls, torch_zip

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_engines")]
HOSTILE = "net\n<b>trusted<br>\x1b[2J.pt"


def write_gifts(here: Path, mark: Path) -> list[str]:
    """Files and folders with a payload, for which trust is asked for; the last one is no model."""
    code, payload = f"open({str(mark)!r}, 'w')\n", pickle.dumps(Calls(f"touch {mark}"), 2)
    (here / "bare.pkl").write_bytes(payload)
    torch_zip(here / HOSTILE, payload)
    (here / "net.py").write_text(code)
    (here / "recipe.toml").write_text('format = 1\n[model]\nsource = "net.py"\nentry = "make"\n')
    (here / "llm").mkdir()
    (here / "llm" / "config.json").write_text(
        json.dumps({"model_type": "own", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}})
    )
    (here / "llm" / "code.py").write_text(code)
    (here / "code").mkdir()
    (here / "code" / "__init__.py").write_text(code)
    return ["bare.pkl", HOSTILE, "net.py", "recipe.toml", "llm", "code"]


def drop(studio: Studio, *files: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    everywhere = Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    studio.window.dropEvent(QDropEvent(QPointF(5, 5), *everywhere))


def forged(window: QWidget) -> list[str]:
    """What the widgets say that a name steers; in a tooltip, which stands alone, it may have its line end."""
    widgets = [window, *window.findChildren(QWidget)]
    texts = [str(one.property(name) or "") for one in widgets for name in ("text", "windowTitle", "accessibleName")]
    tips = [one.toolTip() for one in widgets]
    made_rich = [tip for tip in tips if Qt.mightBeRichText(tip) and not tip.startswith("<span style=")]
    return [one for one in (*texts, *tips) if "\x1b" in one or ("net\n" in one and one not in tips)] + made_rich


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
def test_what_is_dropped_is_looked_at_and_nothing_of_it_runs(qtbot, qapp, tmp_path):
    here, mark = tmp_path / "gift", tmp_path / "ran"
    here.mkdir()
    gifts = write_gifts(here, mark)
    studio = Studio(qapp, UserFolders.inside(tmp_path / "user"))
    qtbot.addWidget(studio.window)
    studio.window.show()
    session = studio.session
    try:
        qtbot.waitUntil(lambda: session.document.environment is not None, timeout=90_000)
        for name in gifts:
            drop(studio, here / name)
            qtbot.waitUntil(lambda: session.document.activity.state is EngineState.IDLE, timeout=20_000)
            for action in ("trace", "run"):
                studio.window.actions_.by_id[action].trigger()
                qtbot.wait(20)
                qtbot.waitUntil(lambda: session.document.activity.state is EngineState.IDLE, timeout=20_000)
            assert not mark.exists(), f"{name} ran"
            assert name == gifts[-1] or studio.window.step_line.buttons["trust"].isEnabled(), name
            assert forged(studio.window) == []
    finally:
        studio.window.leave()
        studio.close()
