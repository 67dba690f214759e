"""The order in which Tab goes through a window: as one reads it, whatever the order in which its parts were made.

Qt goes by the order of making. Panels that are made late, and widgets that have a focus proxy, break that order.
"""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QScrollArea, QWidget


def go_to_neighbour(window: QWidget, *, forward: bool) -> bool:
    """Give the keyboard to the next or the previous stop inside a widget. Returns: whether there is one."""
    here = QApplication.focusWidget()
    stops = tab_stops(window, here)
    while here is not None and here not in stops:
        here = here.parentWidget()
    if not any(stop.isEnabled() for stop in stops):
        return False
    at = stops.index(here) if here is not None else -1 if forward else 0
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    stops[(at + (1 if forward else -1)) % len(stops)].setFocus(reason)
    return True


def tab_stops(parent: QWidget, here: QWidget | None = None) -> list[QWidget]:
    """The widgets inside that take the keyboard by Tab: row by row, and from left to right in a row.

    ``here`` is one of them though it is disabled now: from there, the keyboard goes to its neighbour.
    """
    stops = []
    for child in _as_read(parent):
        is_stop = child.focusPolicy() & Qt.FocusPolicy.TabFocus and child.focusProxy() is None
        if is_stop and (child.isEnabled() or child is here):
            stops.append(child)
        if isinstance(child, QScrollArea) or not isinstance(child, QAbstractScrollArea):
            stops += tab_stops(child, here)
        else:
            stops += tab_stops(child.viewport(), here)
    return stops


def _as_read(parent: QWidget) -> list[QWidget]:
    """The visible children, sorted into rows: one that begins above the middle of a row belongs to it."""
    shown = [one for one in parent.children() if isinstance(one, QWidget) and one.isVisible() and not one.isWindow()]
    rows: list[list[QWidget]] = []
    for child in sorted(shown, key=lambda one: one.y()):
        if rows and child.y() < rows[-1][0].geometry().center().y():
            rows[-1].append(child)
        else:
            rows.append([child])
    return [child for row in rows for child in sorted(row, key=lambda one: one.x())]
