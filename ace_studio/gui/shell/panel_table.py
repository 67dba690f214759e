"""The panels: one row each. Tabs, the View menu, the command palette and the shortcuts are made from this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.session.document import Document
from ace_studio.session.run_warnings import job_warnings
from ace_studio.session.session import Session


class Area(StrEnum):
    """The area of a panel."""

    SIDE = "side"
    """Beside the graph: choices."""
    BOTTOM = "bottom"
    """Under the graph: findings."""


@dataclass(frozen=True, kw_only=True)
class PanelRow:
    """One panel, loaded when it is first seen."""

    id: str
    title: str
    place: Area
    module: str
    """Module in ``ace_studio.gui.panels``; its class is ``panel_class``."""
    panel_class: str
    tip: str
    shortcut: str = ""
    count: Callable[[Document], int] | None = None
    """A number for the tab; 0 is not shown."""

    def build(self, session: Session, theme: Theme) -> Panel:
        """Import and make the panel."""
        module = import_module(f"ace_studio.gui.panels.{self.module}")
        panel: Panel = getattr(module, self.panel_class)(session, theme)
        return panel


def _row(
    id_: str,
    title: str,
    place: Area,
    panel_class: str,
    tip: str,
    key: str = "",
    count: Callable[[Document], int] | None = None,
) -> PanelRow:
    return PanelRow(
        id=id_, title=title, place=place, module=id_, panel_class=panel_class, tip=tip,
        shortcut=f"Alt+{key}" if key else "", count=count,
    )  # fmt: skip


PANELS: tuple[PanelRow, ...] = (
    _row(
        "model",
        "Model",
        Area.SIDE,
        "ModelPanel",
        "The file, the code that it would run, and the functions to use",
        "1",
    ),
    _row("plan", "Plan", Area.SIDE, "PlanPanel", "Precisions, goal, targets and how to measure", "2"),
    _row("modules", "Modules", Area.SIDE, "ModulesPanel", "The model's modules as a tree", "3"),
    _row("details", "Details", Area.SIDE, "DetailsPanel", "Everything known of the selected op or block", "D"),
    _row(
        "shapes",
        "Inputs",
        Area.BOTTOM,
        "ShapesPanel",
        "Examples to trace with, and the verdict on every dimension",
        "4",
    ),
    _row(
        "capture", "Capture", Area.BOTTOM, "CapturePanel", "The capture methods, their results, and the controls", "C"
    ),
    _row(
        "breaks",
        "Breaks",
        Area.BOTTOM,
        "BreaksPanel",
        "Where the capture stops, what that costs, and the fixes tried",
        key="B",
        count=lambda document: len(document.capture.graph_breaks) if document.capture else 0,
    ),
    _row("ops", "Ops", Area.BOTTOM, "OpsPanel", "Every op with its planned and actual precision", "5"),
    _row("source", "Source", Area.BOTTOM, "SourcePanel", "Your code, with the lines that became ops", "6"),
    _row("run", "Run", Area.BOTTOM, "RunPanel", "Progress, the steps so far, and the log", "7"),
    _row(
        "results",
        "Results",
        Area.BOTTOM,
        "ResultsPanel",
        "The comparison of targets",
        key="8",
        count=lambda document: len(document.runs),
    ),
    _row(
        "charts", "Charts", Area.BOTTOM, "ChartsPanel", "Charts of latency, accuracy, size, errors and sensitivity", "9"
    ),
    _row(
        "advice",
        "Advice",
        Area.BOTTOM,
        "AdvicePanel",
        "What to try next, with the expected gain",
        key="A",
        count=lambda document: len(document.result.advice) if document.result else 0,
    ),
    _row(
        "problems",
        "Problems",
        Area.BOTTOM,
        "ProblemsPanel",
        "What went wrong, why, and what to do",
        count=lambda document: len(document.problems) + len(job_warnings(document)),
    ),
    _row("history", "History", Area.BOTTOM, "HistoryPanel", "Past runs on this machine", "Y"),
    _row("code", "Code", Area.BOTTOM, "CodePanel", "The recipe as Python and as a command line"),
)
