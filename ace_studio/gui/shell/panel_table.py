"""The panels: one row each, from which tabs, the View menu, the command palette and the shortcuts are made.

A row says what a panel is; its slot is its place, wherever that is docked: there it is made when it is first seen, or
when its row says so.
"""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from ace_studio.gui.style import Theme, tr, translate_fields
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.words.problems import failed_targets
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.session.document import Document, Part
from ace_studio.session.run_warnings import is_told, job_warnings
from ace_studio.session.session import Session

_Count = Callable[[Document], int]
_Condition = Callable[[Document], bool]


class Area(StrEnum):
    """Where a panel is docked."""

    SIDE = "side"
    BOTTOM = "bottom"
    RIGHT = "right"
    """Empty until the user moves panels there."""

    @property
    def place(self) -> str:
        """Where it lies, in words."""
        return {
            Area.SIDE: tr("Left of the graph"),
            Area.BOTTOM: tr("Under the graph"),
            Area.RIGHT: tr("Right of the graph"),
        }[self]

    @property
    def words(self) -> str:
        """What is found there."""
        return {Area.SIDE: tr("Choices"), Area.BOTTOM: tr("Findings"), Area.RIGHT: tr("Panels at the right")}[self]


class PanelGroup(StrEnum):
    """What a person does; the panels for it are shown together."""

    MODEL = "model"
    GRAPH = "graph"
    PLAN = "plan"
    RESULTS = "results"
    HISTORY = "history"

    @property
    def short(self) -> str:
        """The word on its button."""
        return tr(self.value.capitalize())

    @property
    def words(self) -> str:
        """Its name in menus."""
        return {
            PanelGroup.MODEL: tr("Model and inputs"),
            PanelGroup.GRAPH: tr("Graph and source"),
            PanelGroup.PLAN: tr("Plan"),
            PanelGroup.RESULTS: tr("Run and results"),
            PanelGroup.HISTORY: tr("History, sweep and code"),
        }[self]


@dataclass(frozen=True)
class PanelRow:
    """One panel, loaded when it is first seen, or before."""

    group: PanelGroup
    place: Area
    """Where it is docked at first."""
    panel_class: str
    """In the module of ``ace_studio.gui.panels`` that the id names."""
    id: str
    title: str
    key: str
    """Alt with this key shows it; empty for no shortcut."""
    tip: str
    count: _Count | None = None
    """A number for the tab; 0 is not shown."""
    made_when: _Condition | None = None
    """The panel is made as soon as the document is so, before anybody looks: its many parts take longer than a click
    should. None: it is made when it is first seen."""

    def __post_init__(self) -> None:
        translate_fields(self, "title", "tip")

    @property
    def shortcut(self) -> str:
        """Its keys; empty if it has none."""
        return f"Alt+{self.key}" if self.key else ""

    def words(self, document: Document) -> str:
        """What its tab says: the title, with its number."""
        count = self.count(document) if self.count is not None else 0
        return f"{self.title} ({count})" if count else self.title

    def build(self, session: Session, theme: Theme) -> Panel:
        """Import and make the panel."""
        module = import_module(f"ace_studio.gui.panels.{self.id}")
        panel: Panel = getattr(module, self.panel_class)(session, theme)
        return panel


def _breaks(document: Document) -> int:
    return len(document.capture.graph_breaks) if document.capture else 0


def _advice(document: Document) -> int:
    return len(document.result.advice) if document.result else 0


def _problems(document: Document) -> int:
    return sum(map(is_told, document.problems)) + len(failed_targets(document)) + len(job_warnings(document))


PANELS: tuple[PanelRow, ...] = (
    PanelRow(PanelGroup.MODEL, Area.SIDE, "ModelPanel", "model", "Model", "1",
             "The file, the code that it would run, and the functions to use"),
    PanelRow(PanelGroup.MODEL, Area.BOTTOM, "ShapesPanel", "shapes", "Inputs", "4",
             "Examples to trace with, and the verdict on every dimension"),
    PanelRow(PanelGroup.GRAPH, Area.SIDE, "ModulesPanel", "modules", "Modules", "3", "The model's modules as a tree"),
    PanelRow(PanelGroup.GRAPH, Area.SIDE, "DetailsPanel", "details", "Details", "D",
             "Everything known of the selected op or block"),
    PanelRow(PanelGroup.GRAPH, Area.BOTTOM, "OpsPanel", "ops", "Ops", "5",
             "Every op with its planned and actual precision"),
    PanelRow(PanelGroup.GRAPH, Area.BOTTOM, "SourcePanel", "source", "Source", "6",
             "Your code, with the lines that became ops"),
    PanelRow(PanelGroup.GRAPH, Area.BOTTOM, "CapturePanel", "capture", "Capture", "C",
             "The capture methods, their results, and the controls"),
    PanelRow(PanelGroup.GRAPH, Area.BOTTOM, "BreaksPanel", "breaks", "Breaks", "B",
             "Where the capture stops, what that costs, and the fixes tried", _breaks),
    PanelRow(PanelGroup.PLAN, Area.SIDE, "PlanPanel", "plan", "Plan", "2",
             "Precisions, goal, targets and how to measure", made_when=lambda document: document.graph is not None),
    PanelRow(PanelGroup.RESULTS, Area.BOTTOM, "RunPanel", "run", "Run", "7", "Progress, the steps so far, and the log"),
    PanelRow(PanelGroup.RESULTS, Area.BOTTOM, "ResultsPanel", "results", "Results", "8", "The comparison of targets",
             lambda document: len(document.runs)),
    PanelRow(PanelGroup.RESULTS, Area.BOTTOM, "ChartsPanel", "charts", "Charts", "9",
             "Charts of latency, accuracy, size, errors and sensitivity",
             made_when=lambda document: bool(document.runs)),
    PanelRow(PanelGroup.RESULTS, Area.BOTTOM, "AdvicePanel", "advice", "Advice", "A",
             "What to try next, with the expected gain", _advice),
    PanelRow(PanelGroup.RESULTS, Area.BOTTOM, "ProblemsPanel", "problems", "Problems", "",
             "What went wrong, why, and what to do", _problems),
    PanelRow(PanelGroup.HISTORY, Area.BOTTOM, "HistoryPanel", "history", "History", "Y", "Past runs on this machine"),
    PanelRow(PanelGroup.HISTORY, Area.BOTTOM, "SweepPanel", "sweep", "Sweep", "W",
             "Many runs: every combination of plans, targets, threads and shapes, compared",
             lambda document: len(document.sweep.rows)),
    PanelRow(PanelGroup.HISTORY, Area.BOTTOM, "CodePanel", "code", "Code", "",
             "The recipe as Python and as a command line"),
)  # fmt: skip


_NO_MORE = object()


class PanelSlot(QWidget):
    """Holds one panel.

    The panel is made when it is first seen, or before as its row says, and updated only while it is visible.
    """

    failed = Signal(object)
    """A `Problem`, after an exception in the panel."""
    panel_wanted = Signal(str)
    """Id of the panel to show next."""
    dialog_wanted = Signal(str, tuple)
    about_to_open = Signal()
    """Another model is about to be opened."""

    def __init__(self, row: PanelRow, session: Session, theme: Theme) -> None:
        super().__init__()
        self.row = row
        self.panel: Panel | None = None
        self._empty: Panel | None = None
        """The panel as it was made, before it is filled."""
        self._parts: Iterator[None] = iter(())
        # A timer of its own: what `QTimer.singleShot` posts comes before the keys and clicks that wait.
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(lambda: self._guarded(self._begin))
        self._session = session
        self._theme = theme
        self._stale: frozenset[Part] = frozenset()
        self._fault = ""
        self._layout = column()
        self.setLayout(self._layout)
        theme.changed.connect(self._restyled)

    def _restyled(self, *_: object) -> None:
        """What is not seen now is drawn in the new colours when it is seen again."""
        self._stale = frozenset(Part)

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Show the changes, now or when the panel is seen again."""
        if self.panel is None:
            if self._empty is None and self.row.made_when is not None and self.row.made_when(document):
                self._next_turn.start()
        elif not self.isVisible():
            self._stale |= parts
        elif self.wants(parts):
            self._guarded(lambda: self._update(document))

    def wants(self, parts: frozenset[Part]) -> bool:
        """Whether the panel has to work now to show these changes."""
        return self.panel is not None and self.isVisible() and bool(parts & self.panel.shows)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Make the panel, or catch up.

        It is made in a turn of the event loop of its own, each of its parts in another, and it is filled in the last:
        several that appear at once do not add up to a stall.
        """
        super().showEvent(event)
        if self.panel is None:
            self._next_turn.start()
        elif self._stale & self.panel.shows:
            self._guarded(lambda: self._update(self._session.document))
        self._stale = frozenset()

    def _update(self, document: Document) -> None:
        if self.panel is not None:
            self.panel.update_from(document)

    def _guarded(self, work: Callable[[], object]) -> None:
        """Run an update. An exception in one panel is reported as a problem; the window goes on."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the top of the window: behind it is only Qt, which would abort
            problem = Problem(
                code=ErrorCode.INTERNAL,
                what=tr("The panel {title} could not show this", title=self.row.title),
                why=f"{type(error).__name__}: {error}",
                remedy=tr("The rest of the window still works. Please report this with the details"),
                details=traceback.format_exc(),
            )
            if problem.why != self._fault:
                self._fault = problem.why
                self.failed.emit(problem)

    def _begin(self) -> None:
        """Make the panel, the next of its parts, or fill it; the rest follows in other turns of the event loop."""
        if self.panel is not None:
            return
        if self._empty is None:
            self._make()
        elif next(self._parts, _NO_MORE) is _NO_MORE:
            if not self.isVisible():
                return  # it is filled when it is seen
            self.build()
        if self.panel is None:
            self._next_turn.start()

    def _make(self) -> Panel:
        if self._empty is None:
            self._empty = panel = self.row.build(self._session, self._theme)
            self._parts = panel.make_parts()
            panel.panel_wanted.connect(self.panel_wanted)
            panel.dialog_wanted.connect(self.dialog_wanted)
            panel.about_to_open.connect(self.about_to_open)
            self._layout.addWidget(panel)
            self.setFocusProxy(panel)
        return self._empty

    def build(self) -> Panel:
        """Make the panel and fill it, if that was not done yet."""
        if self.panel is None:
            made = self._make()
            for _ in self._parts:
                pass
            self.panel = made
            self.panel.update_from(self._session.document)
        return self.panel
