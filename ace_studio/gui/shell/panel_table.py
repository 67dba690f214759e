"""The panels: one row each. Tabs, the View menu, the command palette and the shortcuts are made from this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from ace_studio.gui.style import Theme, tr, translate_fields
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.words.problems import failed_targets
from ace_studio.session.document import Document
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
