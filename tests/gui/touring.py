"""A tour of everything that the window shows: each panel, each chart and each dialog, one after the other."""

from collections.abc import Iterator

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.dialogs.changed_on_disk import ChangedOnDiskDialog
from ace_studio.gui.dialogs.measure import MeasureDialog
from ace_studio.gui.panels.charts import CHARTS
from ace_studio.gui.panels.plan.section import Section
from ace_studio.gui.shell.palette import CommandPalette
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.gui.shell.tour import Tour
from ace_studio.records.devices import THIS_MACHINE
from ace_studio.session.document import DiskChange
from tests.gui.comparing import two_plans

DIALOGS = ("settings", "catch", "open-named", "engine-host", "devices", "help", "about")
"""Actions that open a dialog."""
OTHERS = ("command palette", "changed on disk", "measure on a device", "chart in its own window", "tour")
"""What opens in another way: by a key, by itself, from a menu or by a button."""


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
    """Each dialog, open until the next one; with what is shown over the window."""
    for action in DIALOGS:
        desk.do(action)
        yield action, (dialog := _shown(desk, QDialog))
        _close(desk, dialog)
    for name in OTHERS:
        yield name, (dialog := _opened(desk, name))
        _close(desk, dialog)


def _opened(desk, name: str) -> QWidget:
    match name:
        case "command palette":
            desk.do("palette")
            return _shown(desk, CommandPalette)
        case "changed on disk":
            change = DiskChange(text="[measure]\nrounds = 70\n", mine="[measure]\nrounds = 50\n")
            dialog = ChangedOnDiskDialog(
                desk.session, desk.window.theme, desk.window, change=change, keep=bool, save_as=bool
            )
            dialog.show()
            return dialog
        case "measure on a device":
            dialog = MeasureDialog(desk.session, THIS_MACHINE, desk.window)
            dialog.show()
            desk.bot.waitUntil(dialog.bar.isHidden)
            return dialog
        case "chart in its own window":
            charts = desk.panel("charts")
            charts.show_chart(CHARTS[0].id)
            charts.enlarge_button.click()
            desk.settle()
            return _shown(desk, QDialog)
    desk.do("tour")
    return _shown(desk, Tour)


def _shown(desk, kind: type[QWidget]) -> QWidget:
    return next(one for one in desk.window.findChildren(kind) if one.isVisible())


def _close(desk, dialog: QWidget) -> None:
    dialog.close()
    desk.bot.wait(1)


def tour_of_difference(desk) -> Iterator[tuple[str, QWidget]]:
    """Each panel that shows the difference of A and B, two runs that are made for it. The recipe changes."""
    two_plans(desk)
    yield "graph of A and B", desk.window.workbench.panel("graph")
    for name in ("results", "ops", "plan", "history", "details", "charts"):
        yield f"{name} of A and B", desk.panel(name)
    yield "window with A and B", desk.window


def tour(desk) -> Iterator[tuple[str, QWidget]]:
    """Panels, charts, dialogs, and the frame around them."""
    yield from tour_of_panels(desk)
    yield from tour_of_dialogs(desk)
    yield "window", desk.window
