"""The three areas of an open model: choices at the side, the graph in the middle, findings below."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QSplitter, QTabWidget, QVBoxLayout, QWidget

from ace_studio.gui.shell.panel_table import PANELS, Area, PanelRow
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.tab_order import go_to_neighbour
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

SIDE_WIDTH = 330
BOTTOM_HEIGHT = 290
CHOICES = ("model", "plan", "shapes", "advice")
"""Panels that change choices: grey while a past run is looked at."""

_GRAPH = PanelRow(
    id="graph",
    title="Graph",
    place=Area.SIDE,
    module="graph",
    panel_class="GraphPanel",
    tip="The captured graph",
)


class PanelSlot(QWidget):
    """Holds one panel.

    The panel is made when it is first seen, and updated only while it is visible.
    """

    failed = Signal(object)
    """A `Problem`, after an exception in the panel."""
    panel_wanted = Signal(str)
    """Id of the panel to show next."""
    about_to_open = Signal()
    """Another model is about to be opened."""

    def __init__(self, row: PanelRow, session: Session, theme: Theme) -> None:
        """Keep the place; nothing is imported yet."""
        super().__init__()
        self.row = row
        self.panel: Panel | None = None
        self._session = session
        self._theme = theme
        self._stale: frozenset[Part] = frozenset()
        self._fault = ""
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Show the changes, now or when the panel is seen again."""
        if self.panel is None:
            return
        if not self.isVisible():
            self._stale |= parts
        elif self.wants(parts):
            self._guarded(lambda: self._update(document))

    def wants(self, parts: frozenset[Part]) -> bool:
        """Whether the panel has to work now to show these changes."""
        return self.panel is not None and self.isVisible() and bool(parts & self.panel.shows)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Make the panel, or catch up.

        It is made in a turn of the event loop of its own: several that appear at once do not add up to a stall.
        """
        super().showEvent(event)
        if self.panel is None:
            QTimer.singleShot(0, self, lambda: self._guarded(self.build))
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
                what=f"The panel {self.row.title} could not show this",
                why=f"{type(error).__name__}: {error}",
                remedy="The rest of the window still works. Please report this with the details",
                details=traceback.format_exc(),
            )
            if problem.why != self._fault:
                self._fault = problem.why
                self.failed.emit(problem)

    def build(self) -> Panel:
        """Make the panel if that was not done yet."""
        if self.panel is None:
            self.panel = self.row.build(self._session, self._theme)
            self.panel.panel_wanted.connect(self.panel_wanted)
            self.panel.about_to_open.connect(self.about_to_open)
            self._layout.addWidget(self.panel)
            self.setFocusProxy(self.panel)
            self.panel.update_from(self._session.document)
        return self.panel


class Workbench(QWidget):
    """The panels of an open model, in tabs and splitters."""

    about_to_open = Signal()
    """Another model is about to be opened."""
    panel_shown = Signal(str)
    """Id of the panel whose tab came to the front."""

    def __init__(self, session: Session, theme: Theme) -> None:
        """Make the places of all panels, and the panels that are seen first."""
        super().__init__()
        self._session = session
        self._slots: dict[str, PanelSlot] = {row.id: PanelSlot(row, session, theme) for row in (*PANELS, _GRAPH)}
        for slot in self._slots.values():
            slot.failed.connect(session.report)
            slot.panel_wanted.connect(self.show_panel)
            slot.about_to_open.connect(self.about_to_open)
        self._tabs: dict[Area, QTabWidget] = {place: self._tab_widget(place) for place in Area}
        self._columns = QSplitter(Qt.Orientation.Horizontal)
        self._rows = QSplitter(Qt.Orientation.Vertical)
        self._is_laid_out = False
        self._model = ""
        self._hidden: tuple[QWidget, ...] = ()
        """What is hidden while one panel fills the window."""
        self._waiting: dict[PanelSlot, frozenset[Part]] = {}
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(self._refresh_next)
        self._assemble()

    def _tab_widget(self, place: Area) -> QTabWidget:
        tabs = QTabWidget()
        tabs.setDocumentMode(True)
        tabs.tabBar().setExpanding(False)
        tabs.tabBar().setUsesScrollButtons(True)
        tabs.tabBar().setDrawBase(False)
        name = "Choices" if place is Area.SIDE else "Findings"
        tabs.setAccessibleName(name)
        tabs.tabBar().setAccessibleName(f"{name}: panels")
        for row in PANELS:
            if row.place is place:
                at = tabs.addTab(self._slots[row.id], row.title)
                tabs.setTabToolTip(at, row.tip)
        tabs.currentChanged.connect(lambda _: self._tell_current(tabs))
        return tabs

    def _assemble(self) -> None:
        self._rows.addWidget(self._slots["graph"])
        self._rows.addWidget(self._tabs[Area.BOTTOM])
        self._columns.addWidget(self._tabs[Area.SIDE])
        self._columns.addWidget(self._rows)
        for splitter, sizes, stretchy in (
            (self._rows, (480, BOTTOM_HEIGHT), 0),
            (self._columns, (SIDE_WIDTH, 950), 1),
        ):
            splitter.setHandleWidth(1)
            splitter.setChildrenCollapsible(True)
            splitter.setSizes(list(sizes))
            splitter.setStretchFactor(stretchy, 1)
            splitter.setStretchFactor(1 - stretchy, 0)
        self._tabs[Area.SIDE].setMinimumWidth(230)
        self._tabs[Area.BOTTOM].setMinimumHeight(90)
        self._slots["graph"].setMinimumSize(160, 90)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._columns)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Set the first sizes of the areas; a restored layout stays."""
        super().showEvent(event)
        if not self._is_laid_out:
            self._is_laid_out = True
            side = min(SIDE_WIDTH, round(0.38 * self.width()))
            bottom = min(BOTTOM_HEIGHT, round(0.48 * self.height()))
            self._columns.setSizes([side, self.width() - side])
            self._rows.setSizes([self.height() - bottom, bottom])

    def _tell_current(self, tabs: QTabWidget) -> None:
        slot = tabs.currentWidget()
        if isinstance(slot, PanelSlot):
            self.panel_shown.emit(slot.row.id)

    # --- the document ---

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Pass changes to the panels, and update the numbers on the tabs.

        Each panel that has work to do gets a turn of the event loop of its own, the graph first: what a large graph
        costs them together would stop the window for longer than anybody should notice.
        """
        model = f"{document.folder}/{document.recipe.model.source}"
        for panel_id in CHOICES:
            self._slots[panel_id].setEnabled(document.past is None)
        for slot in (self._slots["graph"], *self._slots.values()):
            if model != self._model and slot.panel is not None:
                slot.panel.another_model()
            if slot in self._waiting or slot.wants(parts):
                self._waiting[slot] = self._waiting.get(slot, frozenset()) | parts
            else:
                slot.refresh(document, parts)
        self._model = model
        self._refresh_next()
        for tabs in self._tabs.values():
            for at in range(tabs.count()):
                page = tabs.widget(at)
                if isinstance(page, PanelSlot) and page.row.count is not None:
                    count = page.row.count(document)
                    tabs.setTabText(at, f"{page.row.title} ({count})" if count else page.row.title)

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

    def save_graph(self, path: Path) -> None:
        """Save the graph as it is shown. Raises: AceError if the ending is unknown or the file cannot be written."""
        self.panel("graph").save(path)

    def toggle_compare(self) -> None:
        """Open or close the second view of the graph."""
        self.panel("graph").toggle_compare()

    def show_chart(self, chart_id: str) -> None:
        """Choose a chart of the charts panel."""
        self.panel("charts").show_part(chart_id)

    def show_panel(self, panel_id: str, *, focus: bool = False) -> None:
        """Bring a panel to the front."""
        slot = self._slots[panel_id]
        if panel_id != "graph":
            tabs = self._tabs[slot.row.place]
            tabs.setVisible(True)
            tabs.setCurrentWidget(slot)
        if focus:
            panel = slot.build()
            panel.setFocus(Qt.FocusReason.ShortcutFocusReason)
            QTimer.singleShot(0, panel, lambda: _focus_inside(panel))  # what stands for it may be grey or hidden

    def current(self, place: Area) -> str:
        """Id of the panel at the front of an area."""
        slot = self._tabs[place].currentWidget()
        return slot.row.id if isinstance(slot, PanelSlot) else ""

    def toggle(self, place: Area) -> None:
        """Hide or show an area."""
        tabs = self._tabs[place]
        tabs.setVisible(tabs.isHidden())

    def is_shown(self, place: Area) -> bool:
        """Whether an area is not hidden."""
        return not self._tabs[place].isHidden()

    def toggle_fill(self) -> bool:
        """Let the panel that has the keyboard, or the graph, take all the room, or give it back. Returns: which."""
        is_filled = not self._hidden
        if is_filled:
            inside = (area for area in self._tabs.values() if area.isAncestorOf(QApplication.focusWidget() or area))
            kept = next(inside, self._slots["graph"])
            side, bottom = self._tabs[Area.SIDE], self._tabs[Area.BOTTOM]
            others = (self._rows,) if kept is side else (side, self._slots["graph"] if kept is bottom else bottom)
            self._hidden = tuple(area for area in others if area.isVisible())
        for area in self._hidden:
            area.setVisible(not is_filled)
        self._hidden = self._hidden if is_filled else ()
        return is_filled

    # --- saved layout ---

    def save_layout(self) -> dict[str, str]:
        """Sizes, hidden areas and front tabs, for `restore_layout`."""
        if self._hidden:
            self.toggle_fill()
        state = {place.value: self.current(place) for place in Area}
        state |= {f"{place}-shown": "yes" if self.is_shown(place) else "" for place in Area}
        for name, splitter in (("columns", self._columns), ("rows", self._rows)):
            state[name] = bytes(splitter.saveState().toBase64().data()).decode("ascii")
        return state

    def restore_layout(self, state: Mapping[str, object]) -> None:
        """Restore the result of `save_layout`; invalid entries are ignored."""
        for name, splitter in (("columns", self._columns), ("rows", self._rows)):
            text = state.get(name)
            if isinstance(text, str):
                splitter.restoreState(QByteArray.fromBase64(QByteArray(text.encode())))
                splitter.setHandleWidth(1)
                self._is_laid_out = True
        for place in Area:
            front = state.get(place.value)
            if front in self._slots:
                self._tabs[place].setCurrentWidget(self._slots[str(front)])
            self._tabs[place].setVisible(bool(state.get(f"{place}-shown", "yes")))


def _focus_inside(panel: Panel) -> None:
    here = QApplication.focusWidget()
    if here is None or not (here is panel or panel.isAncestorOf(here)):
        go_to_neighbour(panel, forward=True)
