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
from tests.gui.comparing import compare_with_another_plan
from tests.gui.graph_tables import layered_table, partial_capture
from tests.gui.replay import ReplayEngine
from tests.gui.run_results import REPORT, TABLE, show_result
from tests.gui.touring import tour_of_panels
from tests.gui.two_targets import two_targets
from tests.gui.zygotes import pytest_collection_finish, pytest_runtest_protocol, pytest_timeout_set_timer

__all__ = ["pytest_collection_finish", "pytest_runtest_protocol", "pytest_timeout_set_timer"]  # hooks


@dataclass
class Desk:
    """A window, its session, and the engine behind it."""

    window: MainWindow
    session: Session
    engine: ReplayEngine
    bot: QtBot
    begun: str = ""
    """What the first act of a test would bring about, if it is so already: ``opened``, ``trusted``, ``traced``, ..."""

    def go_on_in(self, request: pytest.FixtureRequest, *, begun: str) -> None:
        """Belong to another test from now on, for whose process this one was copied."""
        request.node.qt_widgets = self.bot._request.node.qt_widgets
        self.bot._request = request
        self.begun = begun

    def rest(self) -> None:
        """Settle, and let happen what waits for a moment of quiet."""
        self.settle()
        self.bot.wait(200)

    def has_begun(self, place: str) -> bool:
        begun, self.begun = self.begun, ""
        return begun == place

    @property
    def document(self) -> Document:
        return self.session.document

    def settle(self) -> None:
        """Let everything that changed reach the screen, however busy the machine is."""
        self.bot.wait(1)
        self.bot.waitUntil(self._is_settled, timeout=20_000)
        self.bot.wait(1)

    def _is_settled(self) -> bool:
        if self.window._refresh_timer.isActive():
            return False
        workbench = self.window._workbench
        if workbench is None or not workbench.isVisible():
            return True
        slots = workbench._slots.values()
        if workbench._waiting or any(slot._next_turn.isActive() for slot in slots):
            return False
        graph = workbench._slots["graph"].panel
        return graph is None or not any(canvas.placing for canvas in graph.findChildren(GraphCanvas))

    def panel(self, panel_id: str):
        """A panel at the front, up to date."""
        self.window.commands.show_panel(panel_id)
        self.settle()
        return self.window.workbench.panel(panel_id)

    def do(self, action_id: str) -> None:
        self.window.actions_.by_id[action_id].trigger()
        self.settle()

    def open_example(self) -> None:
        if not self.has_begun("opened"):
            self.window.commands.open_path(str(example_recipe()))
            self.settle()

    def trusted(self) -> Desk:
        if not self.has_begun("trusted"):
            self.open_example()
            self.trust()
        return self

    def trust(self) -> None:
        self.session.trust.trust_file()
        self.settle()

    def traced(self) -> Desk:
        if not self.has_begun("traced"):
            self.trusted().do("trace")
        return self

    def captured(self, table, capture, *, text: str = "") -> Desk:
        """A trace of the example that gave this graph; the engine answers nothing by itself from then on."""
        return self.trusted().capture(table, capture, text=text)

    def capture(self, table, capture, *, text: str = "") -> Desk:
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
        if not self.has_begun("ran"):
            self.traced().do("run")
        return self

    def running(self) -> Desk:
        """A run that the engine has not answered yet; it answers nothing by itself from then on."""
        return self if self.has_begun("running") else self.traced().run_unanswered()

    def run_unanswered(self) -> Desk:
        self.engine.by_itself = False
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
def opened(desk):
    desk.open_example()
    return desk


@pytest.fixture
def trusted(opened):
    opened.trust()
    return opened


@pytest.fixture
def traced(trusted):
    trusted.do("trace")
    return trusted


@pytest.fixture
def ran(traced):
    traced.do("run")
    return traced


@pytest.fixture
def compared_plans(ran):
    """Two runs of the example with different plans, and their difference."""
    compare_with_another_plan(ran)
    return ran


@pytest.fixture
def toured(ran):
    """A run after which every panel and every chart was looked at."""
    for _ in tour_of_panels(ran):
        pass
    return ran


@pytest.fixture
def running(traced):
    return traced.run_unanswered()


@pytest.fixture
def compared_graph(trusted):
    trusted.window.resize(1600, 1000)
    trusted.capture(TABLE, CaptureReport(rung="export", ops=1, seconds=1.0))
    panel = trusted.window.workbench.panel("graph")
    show_result(trusted, TABLE)
    trusted.do("compare-graph")
    return panel


@pytest.fixture
def two_target_plan(trusted):
    return two_targets(trusted, layered_table(3))


@pytest.fixture
def layered_plan(trusted):
    trusted.capture(layered_table(3), REPORT)
    trusted.session.plan.set_default_precision(Precision.FP32)
    trusted.window.resize(1400, 1000)
    return trusted.panel("plan")


@pytest.fixture
def example_plan(traced):
    traced.session.jobs.request_environment()
    return traced.panel("plan")


@pytest.fixture
def charts(trusted):
    trusted.window.resize(1500, 1000)
    trusted.capture(TABLE, REPORT)
    show_result(trusted, TABLE)
    return trusted.panel("charts")


@pytest.fixture
def broken(trusted):
    """A capture in four subgraphs, two of whose three breaks are one line, and one subgraph of which stays eager."""
    return trusted.capture(*partial_capture(4, lines=(10, 20, 10), eager=(2,)))
