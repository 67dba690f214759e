"""The panels: one row each. Tabs, the View menu, the command palette and the shortcuts are made from this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.session.document import Document
from ace_studio.session.session import Session


class Place(StrEnum):
    """Where a panel lives."""

    SIDE = "side"
    """Beside the graph: what is asked for."""
    BOTTOM = "bottom"
    """Under the graph: what there is."""


@dataclass(frozen=True, kw_only=True)
class PanelRow:
    """One panel, loaded when it is first seen."""

    id: str
    title: str
    place: Place
    module: str
    """Module in ``ace_studio.gui.panels``; its class is ``panel_class``."""
    panel_class: str
    tip: str
    shortcut: str = ""
    count: Callable[[Document], int] | None = None
    """A number for the tab, if it is not 0."""

    def build(self, session: Session, theme: Theme) -> Panel:
        """Import and make the panel."""
        module = import_module(f"ace_studio.gui.panels.{self.module}")
        panel: Panel = getattr(module, self.panel_class)(session, theme)
        return panel


def _row(
    id_: str,
    title: str,
    place: Place,
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
        Place.SIDE,
        "ModelPanel",
        "The file, what it would run, and which of its functions to use",
        "1",
    ),
    _row("plan", "Plan", Place.SIDE, "PlanPanel", "Precisions, goal, targets and how to measure", "2"),
    _row("modules", "Modules", Place.SIDE, "ModulesPanel", "The model's modules as a tree", "3"),
    _row(
        "shapes",
        "Inputs",
        Place.BOTTOM,
        "ShapesPanel",
        "Examples to trace with, and the verdict on every dimension",
        "4",
    ),
    _row(
        "capture", "Capture", Place.BOTTOM, "CapturePanel", "The ways to capture, how each ended, and the controls", "C"
    ),
    _row(
        "breaks",
        "Breaks",
        Place.BOTTOM,
        "BreaksPanel",
        "Where the capture stops, what it costs, and fixes that are tried",
        key="B",
        count=lambda document: len(document.capture.graph_breaks) if document.capture else 0,
    ),
    _row("ops", "Ops", Place.BOTTOM, "OpsPanel", "Every op with its planned and actual precision", "5"),
    _row("source", "Source", Place.BOTTOM, "SourcePanel", "Your code, with the lines that became ops", "6"),
    _row("run", "Run", Place.BOTTOM, "RunPanel", "Progress, the steps so far, and the log", "7"),
    _row(
        "results",
        "Results",
        Place.BOTTOM,
        "ResultsPanel",
        "The comparison of targets",
        key="8",
        count=lambda document: len(document.runs),
    ),
    _row("charts", "Charts", Place.BOTTOM, "ChartsPanel", "Latency with its spread, accuracy and size", "9"),
    _row(
        "advice",
        "Advice",
        Place.BOTTOM,
        "AdvicePanel",
        "What to try next, with what it should give",
        key="A",
        count=lambda document: len(document.result.advice) if document.result else 0,
    ),
    _row(
        "problems",
        "Problems",
        Place.BOTTOM,
        "ProblemsPanel",
        "What went wrong, why, and what to do",
        count=lambda document: len(document.problems),
    ),
    _row("history", "History", Place.BOTTOM, "HistoryPanel", "The runs that were made on this machine", "Y"),
    _row("code", "Code", Place.BOTTOM, "CodePanel", "The same as Python and as a command line"),
)
