"""Breaks and fixes with a real engine."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QPushButton

from ace_studio.gui.shell.app import Studio
from ace_studio.records.fixes import FixKind, FixStatus
from ace_studio.session.document import EngineState
from ace_studio.session.kept.folders import UserFolders

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        x = self.first(x)
        if x.sum() > 0:
            x = x * 2
        else:
            x = x - 1
        return self.second(torch.relu(x))

def make_model():
    torch.manual_seed(0)
    return Net()

def tracing_inputs():
    return [(torch.ones(2, 4),), (-torch.ones(3, 4),)]
"""


LINE = MODEL.splitlines().index("        if x.sum() > 0:") + 1


@pytest.mark.slow
@pytest.mark.usefixtures("forked_engines")
def test_a_branch_on_a_value_is_a_seam_whose_fix_is_tried_and_proven(qtbot, qapp, tmp_path):
    path = tmp_path / "branching.py"
    path.write_text(MODEL, encoding="utf-8")
    studio = Studio(qapp, UserFolders.inside(tmp_path / "user"))
    session, window = studio.session, studio.window
    try:
        window.resize(1400, 900)
        window.show()
        session.files.open_path(path)
        qtbot.waitUntil(lambda: session.document.file is not None, timeout=60_000)
        session.trust.trust_file()
        session.choices.set_rungs(["export", "partial"])
        # The window shows changes a moment later; until then the action is grey, and to trigger it does nothing.
        trace = window.actions_.by_id["trace"]
        qtbot.waitUntil(trace.isEnabled, timeout=10_000)
        trace.trigger()
        qtbot.waitUntil(lambda: bool(session.document.graph or session.document.problems), timeout=120_000)
        assert session.document.graph is not None, session.document.problems
        assert session.document.capture.rung == "partial"
        (one,) = session.document.capture.graph_breaks
        assert (one.file, one.line) == (str(path), LINE)
        window.commands.show_panel("breaks")
        view = window.workbench.panel("graph").view
        qtbot.waitUntil(lambda: view.picture is not None, timeout=10_000)
        (row,) = view.picture.partial.seams
        view.fit()
        scene, camera = view.picture.scene, view.canvas.camera
        x, y = camera.to_screen(scene.x[row] + scene.width[row] / 2, scene.y[row] + scene.height[row] / 2)
        qtbot.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(x), round(y)))
        panel = window.workbench.panel("breaks")
        qtbot.waitUntil(lambda: session.document.selection.seam == 0 and panel.try_button.isEnabled(), timeout=30_000)
        qtbot.mouseClick(panel.try_button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: session.document.activity.is_working, timeout=10_000)
        qtbot.waitUntil(lambda: session.document.activity.state is EngineState.IDLE, timeout=200_000)
        green = [fix for fix in session.document.fixes if fix.status is FixStatus.GREEN]
        assert FixKind.WHERE in {fix.kind for fix in green}
        assert all(fix.inputs_compared > 2 for fix in green)
        assert path.read_text(encoding="utf-8") == MODEL
        assert session.document.problems == ()
        apply = "Apply to a copy"
        offered = [one for one in panel.findChildren(QPushButton) if one.isVisible() and one.text() == apply]
        qtbot.mouseClick(offered[0], Qt.MouseButton.LeftButton)
        # The copy is traced by itself, and whole.
        qtbot.waitUntil(lambda: session.document.capture.rung == "export", timeout=200_000)
        assert session.document.recipe.model.source != path.name
        assert session.document.problems == ()
        assert path.read_text(encoding="utf-8") == MODEL
        window.actions_.by_id["undo"].trigger()
        qtbot.waitUntil(lambda: session.document.file.path == str(path), timeout=60_000)
        assert session.document.recipe.model.source == path.name
        assert session.document.is_trusted
        assert session.document.is_capture_stale
    finally:
        window.hide()
        studio.close()
