"""The window with an engine that replays a recorded run."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from ace_studio.gui.graph_view.canvas import GraphCanvas
from ace_studio.gui.shell.main_window import MainWindow
from ace_studio.gui.style.theme import Theme
from ace_studio.records.messages import AttemptEnded, JobFinished, ModelCaptured
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import Document
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session
from tests.gui.graph_tables import layered_table, partial_capture
from tests.gui.replay import ReplayEngine
from tests.gui.run_results import REPORT, TABLE, show_result
from tests.gui.two_targets import two_targets


@dataclass
class Desk:
    """A window, its session, and the engine behind it."""

    window: MainWindow
    session: Session
    engine: ReplayEngine
    bot: QtBot

    @property
    def document(self) -> Document:
        return self.session.document

    def settle(self) -> None:
        """Let everything that changed reach the screen, however busy the machine is."""
        self.bot.wait(15)
        self.bot.waitUntil(self._is_settled, timeout=20_000)
        self.bot.wait(1)

    def _is_settled(self) -> bool:
        if self.window._refresh_timer.isActive():
            return False
        workbench = self.window._workbench
        if workbench is None or not workbench.isVisible():
            return True
        slots = workbench._slots.values()
        if workbench._waiting or not all(slot.panel is not None for slot in slots if slot.isVisible()):
            return False
        return not any(canvas.placing for canvas in workbench.findChildren(GraphCanvas))

    def panel(self, panel_id: str):
        """A panel at the front, up to date."""
        self.window.commands.show_panel(panel_id)
        self.settle()
        return self.window.workbench.panel(panel_id)

    def do(self, action_id: str) -> None:
        self.window.actions_.by_id[action_id].trigger()
        self.settle()

    def open_example(self) -> None:
        self.window.commands.open_path(str(example_recipe()))
        self.settle()

    def trusted(self) -> Desk:
        self.open_example()
        self.session.trust.trust_file()
        self.settle()
        return self

    def traced(self) -> Desk:
        self.trusted().do("trace")
        return self

    def captured(self, table, capture, *, text: str = "") -> Desk:
        """A trace that gave this graph; the engine answers nothing by itself from then on."""
        self.trusted()
        self.engine.by_itself = False
        self.do("trace")
        job = self.engine.requests[-1].job
        for outcome in capture.rungs:
            self.session.apply(AttemptEnded(job=job, outcome=outcome))
        sources = dict.fromkeys(table.files, text or "x = 1\n" * 60)
        self.session.apply(ModelCaptured(job=job, fingerprint="f", capture=capture, graph=table, sources=sources))
        self.session.apply(JobFinished(job=job))
        self.settle()
        return self

    def ran(self) -> Desk:
        self.traced().do("run")
        return self

    def running(self) -> Desk:
        """A run that the engine has not answered yet; it answers nothing by itself from then on."""
        self.traced().engine.by_itself = False
        self.do("run")
        return self


@pytest.fixture(autouse=True)
def no_widgets_of_earlier_tests():
    """Delete what connections and Python's cycles keep of them: every style that is set goes through all widgets.

    Widgets that Qt made are Qt's to delete: each graphics layout has a hidden one, which it deletes itself.
    """
    application = QApplication.instance()
    if isinstance(application, QApplication):
        for widget in application.topLevelWidgets():
            if widget.parent() is None and shiboken6.createdByPython(widget):
                widget.deleteLater()
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@contextmanager
def open_desk(qtbot, qapp, folder: Path):
    """A window with the user's files in ``folder``, ready to be used."""
    engine = ReplayEngine()
    session = Session(engine, folders=UserFolders.inside(folder))
    engine.session = session
    theme = Theme(qapp, "dark")
    session.set_setting("theme", "dark")
    window = MainWindow(session, theme)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    engine.ready()
    made = Desk(window, session, engine, qtbot)
    made.settle()
    yield made
    window.leave()
    theme.setParent(None)


@pytest.fixture
def desk(qtbot, qapp, tmp_path):
    with open_desk(qtbot, qapp, tmp_path / "user") as made:
        yield made


@pytest.fixture
def compared_graph(desk):
    desk.window.resize(1600, 1000)
    desk.captured(TABLE, CaptureReport(rung="export", ops=1, seconds=1.0))
    panel = desk.window.workbench.panel("graph")
    show_result(desk, TABLE)
    desk.do("compare-graph")
    return panel


@pytest.fixture
def two_target_plan(desk):
    return two_targets(desk, layered_table(3))


@pytest.fixture
def layered_plan(desk):
    desk.captured(layered_table(3), REPORT)
    desk.session.plan.set_default_precision(Precision.FP32)
    desk.window.resize(1400, 1000)
    return desk.panel("plan")


@pytest.fixture
def example_plan(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    return desk.panel("plan")


@pytest.fixture
def charts(desk):
    desk.window.resize(1500, 1000)
    desk.captured(TABLE, REPORT)
    show_result(desk, TABLE)
    return desk.panel("charts")


@pytest.fixture
def broken(desk):
    """A capture in four subgraphs, two of whose three breaks are one line, and one subgraph of which stays eager."""
    return desk.captured(*partial_capture(4, lines=(10, 20, 10), eager=(2,)))
