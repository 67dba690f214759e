"""A tour of everything that the window shows: each panel, each chart and each dialog, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.charts.kinds import CHARTS
from ace_studio.gui.panels.plan.section import Section
from ace_studio.gui.shell.panel_table import PANELS

DIALOGS = ("settings", "catch", "open-named", "help", "about")
"""Actions that open a dialog."""


def tour_of_panels(desk) -> Iterator[tuple[str, QWidget]]:
    """Each panel at the front, with its sections open, and each chart."""
    yield "graph", desk.window.workbench.panel("graph")
    for row in PANELS:
        panel = desk.panel(row.id)
        for section in panel.findChildren(Section):
            section.head.setChecked(True)
        desk.settle()
        yield row.id, panel
    charts = desk.panel("charts")
    for chart in CHARTS:
        charts.show_chart(chart.id)
        desk.settle()
        yield f"chart {chart.id}", charts


def tour_of_dialogs(desk) -> Iterator[tuple[str, QWidget]]:
    """Each dialog, open until the next one."""
    for action in DIALOGS:
        desk.do(action)
        dialog = next(one for one in desk.window.findChildren(QDialog) if one.isVisible())
        yield action, dialog
        dialog.close()
        desk.bot.wait(1)


def tour(desk) -> Iterator[tuple[str, QWidget]]:
    """Panels, charts, dialogs, and the frame around them."""
    yield from tour_of_panels(desk)
    yield from tour_of_dialogs(desk)
    yield "window", desk.window
