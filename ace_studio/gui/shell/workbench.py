"""The three areas of an open model: choices at the side, the graph in the middle, findings below."""

from collections.abc import Mapping

from PySide6.QtCore import QByteArray, QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QRubberBand, QSplitter, QWidget

from ace_studio.gui.shell.panel_table import PANELS, Area, PanelGroup, PanelRow, PanelSlot
from ace_studio.gui.shell.panel_tabs import GroupBar, PanelTabs
from ace_studio.gui.style import Theme
from ace_studio.gui.widgets.layouts import column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.tab_order import go_to_neighbour
from ace_studio.records.errors import one_line
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

SIDE_WIDTH = 330
BOTTOM_HEIGHT = 290
GRAPH_HEIGHT = 150
"""Of the graph, in a window that is too low for both: what was found needs the room more."""
CHOICES = ("model", "plan", "shapes", "advice")
"""Panels that change choices: grey while a past run is looked at."""
DIFFERENCES = frozenset(CHOICES) - {"model"}
"""Those of them that show what differs while A and B are compared."""

_GRAPH = PanelRow(PanelGroup.GRAPH, Area.SIDE, "GraphPanel", "graph", "Graph", "", "The captured graph")


class PanelWindow(QWidget):
    """A panel in a window of its own. Closing it puts the panel back where it was.

    It stays in front of the main window, and of no other program's: that is what a tool window is. The
    shortcuts of the main window work in it too, for the same reason.
    """

    closed = Signal(str)
    """Id of the panel, which is to be put back."""

    def __init__(self, slot: PanelSlot, parent: QWidget) -> None:
        flags = Qt.WindowType.Tool | Qt.WindowType.WindowMaximizeButtonHint | Qt.WindowType.WindowCloseButtonHint
        super().__init__(parent, flags)
        self.slot = slot
        self.setProperty("role", "surface")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setLayout(column(slot))
        slot.show()

    def show_title(self, of_what: str) -> None:
        """Put the panel and the model into the title."""
        self.setWindowTitle(f"{self.slot.row.title} – {one_line(of_what)}" if of_what else self.slot.row.title)

    def toggle_fill(self) -> None:
        """Take the whole screen, or give it back."""
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def event(self, event: QEvent) -> bool:
        """Keep Esc from the window's actions while it ends the full screen."""
        is_override = event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if is_override and self.isFullScreen() and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Esc ends the full screen."""
        if event.key() == Qt.Key.Key_Escape and self.isFullScreen():
            self.toggle_fill()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: N802 - Qt's name
        """Tab goes through the window as one reads it."""
        return go_to_neighbour(self, forward=next)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Put the panel back."""
        super().closeEvent(event)
        self.closed.emit(self.slot.row.id)


class Workbench(QWidget):
    """The panels of an open model: docked as tabs in three areas around the graph, or in windows of their own."""

    dialog_wanted = Signal(str, tuple)
    """A dialog that a panel asks for."""
    about_to_open = Signal()
    """Another model is about to be opened."""
    filled = Signal(bool)
    """Whether one panel fills the window now."""

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._slots: dict[str, PanelSlot] = {each.id: PanelSlot(each, session, theme) for each in (*PANELS, _GRAPH)}
        for slot in self._slots.values():
            slot.failed.connect(session.report)
            slot.panel_wanted.connect(self.show_panel)
            slot.dialog_wanted.connect(self.dialog_wanted)
            slot.about_to_open.connect(self.about_to_open)
        self._homes: dict[str, Area] = {each.id: each.place for each in PANELS}
        """The area of each panel; one in a window of its own goes back there."""
        self._windows: dict[str, PanelWindow] = {}
        self._groups = GroupBar(theme)
        self._groups.wanted.connect(self.show_group)
        self._tabs: dict[Area, PanelTabs] = {area: self._tab_widget(area, theme) for area in Area}
        self._landing = QRubberBand(QRubberBand.Shape.Rectangle, self)
        """Where a dragged tab would go."""
        self._columns = QSplitter(Qt.Orientation.Horizontal)
        self._rows = QSplitter(Qt.Orientation.Vertical)
        self._kept: QSize | None = QSize()
        """Of the window that the sizes of the areas are from, empty for the first ones; None once they fit this one."""
        self._model = ""
        self._hidden: tuple[QWidget, ...] = ()
        """What is hidden while one panel fills the window."""
        self._waiting: dict[PanelSlot, frozenset[Part]] = {}
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(self._refresh_next)
        self._assemble()

    def _tab_widget(self, area: Area, theme: Theme) -> PanelTabs:
        tabs = PanelTabs(area, theme)
        for each in PANELS:
            if each.place is area:
                tabs.add(self._slots[each.id])
        tabs.show_group(PanelGroup.MODEL)
        tabs.move_wanted.connect(self.move_panel)
        tabs.dragged.connect(self._drag)
        tabs.tabBarClicked.connect(lambda at: self._groups.mark(tabs.slots_here()[at].row.group) if at >= 0 else None)
        return tabs

    def _assemble(self) -> None:
        self._groups.mark(PanelGroup.MODEL)
        self._rows.addWidget(self._slots["graph"])
        self._rows.addWidget(self._tabs[Area.BOTTOM])
        for part in (self._tabs[Area.SIDE], self._rows, self._tabs[Area.RIGHT]):
            self._columns.addWidget(part)
        self._tabs[Area.RIGHT].hide()
        for splitter, sizes, stretchy in (
            (self._rows, (480, BOTTOM_HEIGHT), 0),
            (self._columns, (SIDE_WIDTH, 950, SIDE_WIDTH), 1),
        ):
            splitter.setHandleWidth(1)
            splitter.setChildrenCollapsible(True)
            splitter.setSizes(list(sizes))
            for at in range(splitter.count()):
                splitter.setStretchFactor(at, int(at == stretchy))
        for area, tabs in self._tabs.items():
            if area is Area.BOTTOM:
                tabs.setMinimumHeight(90)
            else:  # both and the graph fit a window of 512 pixels
                tabs.setMinimumWidth(190 if area is Area.SIDE else 120)
        self._slots["graph"].setMinimumSize(160, 90)
        self.setLayout(row(self._groups, self._columns, gap=0, stretch=1))

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Set the first sizes of the areas. A restored layout stays; in a window of another size it nears these.

        Else the graph alone would get what is more, and lose what is less, down to nothing at a larger scale.
        """
        super().showEvent(event)
        parent = self.parentWidget()
        whole = parent.size() if parent is not None else self.size()  # at first its own is none yet
        (kept, self._kept), now = (self._kept, None), self.window().size()
        if kept is None or kept == now:
            return
        room = whole.width() - self._groups.sizeHint().width()
        side = min(SIDE_WIDTH, round(0.38 * room))
        bottom = min(BOTTOM_HEIGHT, max(round(0.48 * whole.height()), whole.height() - GRAPH_HEIGHT))
        left, _, right = (_fitted(each, kept.width(), now.width(), side) for each in self._columns.sizes())
        bottom = _fitted(self._rows.sizes()[1], kept.height(), now.height(), bottom)
        self._columns.setSizes([left, room - left - (right if self.is_shown(Area.RIGHT) else 0), right])
        self._rows.setSizes([whole.height() - bottom, bottom])

    # --- the document ---

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Pass changes to the panels, and update the numbers on the tabs.

        Each panel that has work to do gets a turn of the event loop of its own, the graph first: what a large graph
        costs them together would stop the window for longer than anybody should notice.
        """
        model = f"{document.folder}/{document.recipe.model.source}"
        for panel_id in CHOICES:
            shows_difference = document.comparison is not None and panel_id in DIFFERENCES
            self._slots[panel_id].setEnabled(document.read_only is None or shows_difference)
        for slot in (self._slots["graph"], *self._slots.values()):
            if model != self._model and slot.panel is not None:
                slot.panel.another_model()
            if slot in self._waiting or slot.wants(parts):
                self._waiting[slot] = self._waiting.get(slot, frozenset()) | parts
            else:
                slot.refresh(document, parts)
        self._model = model
        if self._waiting:
            self._next_turn.start()
        for tabs in self._tabs.values():
            tabs.update_counts(document)
        for window in self._windows.values():
            window.show_title(document.title)
        self._groups.update_from(document)

    def _refresh_next(self) -> None:
        """Update the panel that has waited longest, then the next in another turn of the event loop."""
        if self._waiting:
            slot = next(iter(self._waiting))
            slot.refresh(self._session.document, self._waiting.pop(slot))
        if self._waiting:
            self._next_turn.start()

    # --- navigation ---

    def panel(self, panel_id: str) -> Panel:
        """A panel by its id; it is made at the first call."""
        return self._slots[panel_id].build()

    def show_panel(self, panel_id: str, *, focus: bool = False) -> None:
        """Bring a panel to the front."""
        slot = self._slots[panel_id]
        window = self._windows.get(panel_id)
        place = window or (slot if panel_id == "graph" else self._tabs[self._homes[panel_id]])
        if self._hidden and not place.isVisible():
            self._fill(is_filled=False)
        if window is not None:
            window.raise_()
            window.activateWindow()
        elif panel_id != "graph":
            tabs = self._tabs[self._homes[panel_id]]
            tabs.setVisible(True)
            tabs.bring(slot)
        if panel_id != "graph":
            self._groups.mark(slot.row.group)
        if focus:
            panel = slot.build()
            panel.setFocus(Qt.FocusReason.ShortcutFocusReason)
            QTimer.singleShot(0, panel, lambda: _focus_inside(panel))  # what stands for it may be grey or hidden

    def show_group(self, group: PanelGroup) -> None:
        """Bring the panels of a group to the front, in every area that holds some; the other areas stay."""
        self._groups.mark(group)
        for tabs in self._tabs.values():
            if tabs.show_group(group):
                tabs.setVisible(True)
        for window in self._windows.values():
            if window.slot.row.group is group:
                window.raise_()

    def current(self, area: Area) -> str:
        """Id of the panel at the front of an area."""
        slot = self._tabs[area].front()
        return slot.row.id if slot is not None else ""

    def toggle(self, area: Area) -> None:
        """Hide or show an area; an empty one stays hidden."""
        self._tabs[area].setVisible(self._tabs[area].isHidden() and self._tabs[area].count() > 0)

    def is_shown(self, area: Area) -> bool:
        """Whether an area is not hidden."""
        return not self._tabs[area].isHidden()

    def toggle_fill(self) -> None:
        """Let the panel that has the keyboard, or the graph, take all the room, or give it back.

        A panel in a window of its own takes the whole screen.
        """
        window = self._focused_window()
        if window is not None:
            window.toggle_fill()
        else:
            self._fill(is_filled=not self._hidden)

    def _fill(self, *, is_filled: bool) -> None:
        if is_filled:
            inside = (area for area in self._tabs.values() if area.isAncestorOf(QApplication.focusWidget() or area))
            kept = next(inside, self._slots["graph"])
            is_column = kept in (self._tabs[Area.SIDE], self._tabs[Area.RIGHT])
            parts = (*self._tabs.values(), self._slots["graph"], self._groups, *((self._rows,) if is_column else ()))
            self._hidden = tuple(part for part in parts if part is not kept and part.isVisible())
        for part in self._hidden:
            part.setVisible(not is_filled)
        self._hidden = self._hidden if is_filled else ()
        self.filled.emit(is_filled)

    # --- docking ---

    def move_panel(self, panel_id: str, area: Area | None, at: QPoint | None = None) -> None:
        """Dock a panel in an area, or give it a window of its own, with its corner at a point of the screen."""
        slot, window = self._slots[panel_id], self._windows.pop(panel_id, None)
        if window is None:
            size = slot.size()
            home = self._tabs[self._homes[panel_id]]
            home.take(slot)
            home.setVisible(home.count() > 0 and not home.isHidden())
        else:
            size = window.size()
            window.hide()
            window.deleteLater()
        if area is None:
            window = self._windows[panel_id] = PanelWindow(slot, self)
            window.closed.connect(self._put_back)
            window.show_title(self._session.document.title)
            window.resize(size.expandedTo(QSize(480, 320)))
            window.move(at or self.mapToGlobal(QPoint(80, 80)))
            window.show()
        else:
            self._homes[panel_id] = area
            self._tabs[area].add(slot)
            self.show_panel(panel_id)

    def _put_back(self, panel_id: str) -> None:
        if panel_id in self._windows:
            self.move_panel(panel_id, self._homes[panel_id])

    def toggle_window(self) -> None:
        """Give the panel that has the keyboard a window of its own, or put it back."""
        window, here = self._focused_window(), QApplication.focusWidget()
        if window is not None:
            window.close()
            return
        for area, tabs in self._tabs.items():
            if tabs.isAncestorOf(here or self):
                self.move_panel(self.current(area), None)
                return

    def reset_places(self) -> None:
        """Dock every panel where it was at first, and show all areas."""
        for each in PANELS:
            if each.id in self._windows or self._homes[each.id] is not each.place:
                self.move_panel(each.id, each.place)
        for area in (Area.SIDE, Area.BOTTOM):
            self._tabs[area].show()

    def hide_windows(self) -> None:
        """Hide what is in windows of its own: the main window closes."""
        for window in self._windows.values():
            window.hide()

    def _focused_window(self) -> PanelWindow | None:
        here = QApplication.focusWidget()
        return next((each for each in self._windows.values() if here is not None and each.isAncestorOf(here)), None)

    def _drag(self, panel_id: str, at: QPoint, is_released: bool) -> None:
        """Show where a dragged tab would go, or let it go there."""
        here = self.mapFromGlobal(at)
        places = {area: tabs for area, tabs in self._tabs.items() if tabs.isVisible()}
        area = next((each for each, tabs in places.items() if tabs.rect().contains(tabs.mapFromGlobal(at))), None)
        if is_released:
            self._landing.hide()
            if area is not self._homes[panel_id]:
                self.move_panel(panel_id, area, at)
            return
        landing = QRect(here, self._slots[panel_id].size())
        if area is not None:
            landing = QRect(places[area].mapTo(self, QPoint()), places[area].size())
        self._landing.setGeometry(landing)
        self._landing.show()

    # --- saved layout ---

    def save_layout(self) -> dict[str, str]:
        """Sizes, hidden areas, front tabs, places and windows of panels, for `restore_layout`."""
        if self._hidden:
            self._fill(is_filled=False)
        state = {area.value: self.current(area) for area in Area}
        state |= {f"{area}-shown": "yes" if self.is_shown(area) else "" for area in Area}
        state |= {f"place-{each.id}": home for each in PANELS if (home := self._homes[each.id]) is not each.place}
        for panel_id, window in self._windows.items():
            state[f"window-{panel_id}"] = _text(window.saveGeometry())
        for name, splitter in (("columns", self._columns), ("rows", self._rows)):
            state[name] = _text(splitter.saveState())
        return {**state, "width": str(self.window().width()), "height": str(self.window().height())}

    def restore_layout(self, state: Mapping[str, object]) -> None:
        """Restore the result of `save_layout`; invalid entries are ignored. Windows come to a screen that is there."""
        for each in PANELS:
            place = state.get(f"place-{each.id}", each.place)
            if place in list(Area) and (place != self._homes[each.id] or each.id in self._windows):
                self.move_panel(each.id, Area(str(place)))
            geometry = state.get(f"window-{each.id}")
            if isinstance(geometry, str):
                self.move_panel(each.id, None)
                self._windows[each.id].restoreGeometry(_bytes(geometry))
        sizes = [str(state.get(name)) for name in ("width", "height")]
        for name, splitter in (("columns", self._columns), ("rows", self._rows)):
            text = state.get(name)
            if isinstance(text, str):
                splitter.restoreState(_bytes(text))
                splitter.setHandleWidth(1)
                self._kept = QSize(*(int(each) for each in sizes)) if all(map(str.isdecimal, sizes)) else None
        for area, tabs in self._tabs.items():
            front = state.get(area.value)
            if front in self._homes and self._homes[str(front)] is area and front not in self._windows:
                tabs.bring(self._slots[str(front)])
                self._groups.mark(self._slots[str(front)].row.group)
            tabs.setVisible(tabs.count() > 0 and bool(state.get(f"{area}-shown", "yes")))


def _fitted(size: int, then: int, now: int, first: int) -> int:
    """The size now of an area that had ``size`` of ``then``: ``first``, or as much or such a share as it had."""
    return sorted((size, size * now // then, first))[1] if size and then > 0 else first


def _text(data: QByteArray) -> str:
    return bytes(data.toBase64().data()).decode("ascii")


def _bytes(text: str) -> QByteArray:
    return QByteArray.fromBase64(QByteArray(text.encode()))


def _focus_inside(panel: Panel) -> None:
    here = QApplication.focusWidget()
    if here is None or not (here is panel or panel.isAncestorOf(here)):
        go_to_neighbour(panel, forward=True)
