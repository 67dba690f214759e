"""The tabs of one area, and the bar of groups: a button for each thing that a person does brings its panels forward.

Only the tabs of one group show; a tab can be dragged out, or moved by its menu.
"""

from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QMenu, QTabWidget, QToolButton

from ace_studio.gui.shell.panel_table import PANELS, Area, PanelGroup, PanelSlot
from ace_studio.gui.style import Colours, Theme, stroke_icon, tr
from ace_studio.gui.widgets.layouts import TIGHT, column
from ace_studio.gui.widgets.small import short_lived_menu
from ace_studio.session.document import Document

_DRAG_PX = 16
"""A tab that is dragged so far out of the tabs leaves them."""


class PanelTabs(QTabWidget):
    """The panels of one area, in the order of the table of panels."""

    move_wanted = Signal(str, object)
    """Id of a panel, and the area that it shall go to; None: a window of its own."""
    dragged = Signal(str, QPoint, bool)
    """Id of a panel whose tab is outside of the tabs, where the mouse is on the screen, and whether it was released."""

    def __init__(self, area: Area, theme: Theme) -> None:
        super().__init__(documentMode=True)
        self.area = area
        self._fronts: dict[PanelGroup, PanelSlot] = {}
        """The panel of each group that was last in front."""
        self._pressed: PanelSlot | None = None
        self._is_out = False
        self.setAccessibleName(area.words)
        bar = self.tabBar()
        bar.setAccessibleName(tr("{words}: panels", words=area.words))
        bar.setExpanding(False)
        bar.setUsesScrollButtons(True)
        bar.setDrawBase(False)
        bar.installEventFilter(self)
        self.places = QToolButton(autoRaise=True, popupMode=QToolButton.ToolButtonPopupMode.InstantPopup)
        self.places.setProperty("role", "menu")
        self.places.setAccessibleName(tr("{words}: move the panel", words=area.words))
        self.places.setToolTip(
            tr("Show this panel in a window of its own, or elsewhere. A tab can also be dragged out")
        )
        menu = QMenu(self.places)
        menu.aboutToShow.connect(lambda: self._fill_menu(menu, self.currentIndex()))
        self.places.setMenu(menu)
        self.setCornerWidget(self.places)
        self.currentChanged.connect(self._remember_front)
        theme.changed.connect(self._restyle)
        self._restyle(theme.colours)

    def slots_here(self) -> list[PanelSlot]:
        """All panels here, also those whose tabs do not show."""
        return [page for at in range(self.count()) if isinstance(page := self.widget(at), PanelSlot)]

    def front(self) -> PanelSlot | None:
        """The panel in front; None if there is none."""
        page = self.currentWidget()
        return page if isinstance(page, PanelSlot) else None

    def add(self, slot: PanelSlot) -> None:
        """Add a panel in the order of the table."""
        place = PANELS.index(slot.row)
        at = sum(PANELS.index(other.row) < place for other in self.slots_here())
        self.setTabToolTip(self.insertTab(at, slot, slot.row.title), slot.row.tip)

    def take(self, slot: PanelSlot) -> None:
        """Remove a panel; another one of its group comes to the front."""
        self.removeTab(self.indexOf(slot))
        if self.count() and not self.show_group(slot.row.group):
            self.bring(self.slots_here()[0])

    def show_group(self, group: PanelGroup) -> bool:
        """Bring a group to the front. Returns: False, and nothing changes, if none of its panels is here."""
        here = [slot for slot in self.slots_here() if slot.row.group is group]
        if here:
            front = self._fronts.get(group)
            self.bring(front if front in here else here[0])
        return bool(here)

    def bring(self, front: PanelSlot) -> None:
        """Bring a panel to the front; only the tabs of its group show."""
        shown = [slot.row.group is front.row.group for slot in self.slots_here()]
        for at in sorted(range(len(shown)), key=lambda at: not shown[at]):  # one tab shows at any time
            self.setTabVisible(at, shown[at])
            self.setCurrentWidget(front)

    def update_counts(self, document: Document) -> None:
        """Show the numbers on the tabs."""
        for at, slot in enumerate(self.slots_here()):
            if slot.row.count is not None:
                self.setTabText(at, slot.row.words(document))

    def _remember_front(self, _at: int) -> None:
        if (slot := self.front()) is not None:
            self._fronts[slot.row.group] = slot

    def _fill_menu(self, menu: QMenu, at: int) -> None:
        menu.clear()
        for area in (None, *Area):
            words = area.place if area is not None else tr("In a window of its own")
            action = menu.addAction(words, partial(self.move_wanted.emit, self.slots_here()[at].row.id, area))
            action.setEnabled(area is not self.area)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Follow a tab that is dragged out of the tabs, and open the menu of a tab."""
        bar = self.tabBar()
        if watched is bar and isinstance(event, QContextMenuEvent):
            is_key = event.reason() is QContextMenuEvent.Reason.Keyboard
            at = self.currentIndex() if is_key else bar.tabAt(event.pos())
            if at >= 0:
                menu = short_lived_menu(self)
                self._fill_menu(menu, at)
                menu.popup(event.globalPos())
        elif watched is bar and isinstance(event, QMouseEvent):
            self._follow_mouse(event)
        return super().eventFilter(watched, event)

    def _follow_mouse(self, event: QMouseEvent) -> None:
        bar, place = self.tabBar(), event.position().toPoint()
        if event.type() is QEvent.Type.MouseButtonPress:
            at = bar.tabAt(place) if event.button() is Qt.MouseButton.LeftButton else -1
            self._pressed, self._is_out = self.slots_here()[at] if at >= 0 else None, False
        elif self._pressed is not None and event.type() in (QEvent.Type.MouseMove, QEvent.Type.MouseButtonRelease):
            room = bar.rect().adjusted(-_DRAG_PX, -_DRAG_PX, _DRAG_PX, _DRAG_PX)
            self._is_out = self._is_out or not room.contains(place)
            panel_id, is_released = self._pressed.row.id, event.type() is QEvent.Type.MouseButtonRelease
            if is_released:
                self._pressed = None
            if self._is_out:
                self.dragged.emit(panel_id, event.globalPosition().toPoint(), is_released)

    def _restyle(self, colours: Colours) -> None:
        self.places.setIcon(stroke_icon("window", colours.text_dim, colours.text_dim))


_ICONS = {
    PanelGroup.MODEL: "file",
    PanelGroup.GRAPH: "graph",
    PanelGroup.PLAN: "settings",
    PanelGroup.RESULTS: "chart",
    PanelGroup.HISTORY: "clock",
}
_ICON_PX = 20


class GroupBar(QFrame):
    """One of the buttons is pressed; the arrow keys go from one to the next."""

    wanted = Signal(object)
    """A `PanelGroup` that was clicked."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("role", "groups")
        self.setAccessibleName(tr("Groups of panels"))
        self._exclusive = QButtonGroup(self)
        layout = column(margin=(0, TIGHT, 0, TIGHT), gap=0)
        self.setLayout(layout)
        self.buttons: dict[PanelGroup, QToolButton] = {}
        for group in PanelGroup:
            made = self.buttons[group] = QToolButton()
            made.setCheckable(True)
            made.setIconSize(QSize(_ICON_PX, _ICON_PX))
            made.setProperty("role", "group")
            made.setText(group.short)
            made.clicked.connect(lambda _=False, group=group: self.wanted.emit(group))
            self._exclusive.addButton(made)
            layout.addWidget(made, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(1)
        theme.changed.connect(self._restyle)
        self._restyle(theme.colours)

    def mark(self, group: PanelGroup) -> None:
        """Show which group came to the front last."""
        self.buttons[group].setChecked(True)

    def update_from(self, document: Document) -> None:
        """Name what each group holds, with the numbers of its tabs."""
        for group, made in self.buttons.items():
            inside = ", ".join(row.words(document) for row in PANELS if row.group is group)
            made.setToolTip(f"{group.words}: {inside}")
            made.setAccessibleName(f"{group.words}: {inside}")

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """In a low window there is room for the icons alone."""
        super().resizeEvent(event)
        with_words = len(self.buttons) * (_ICON_PX + self.fontMetrics().height() + 16)
        is_high = self.height() >= with_words
        style = Qt.ToolButtonStyle.ToolButtonTextUnderIcon if is_high else Qt.ToolButtonStyle.ToolButtonIconOnly
        for group, made in self.buttons.items():
            made.setToolButtonStyle(style)
            words_px = max(60, made.fontMetrics().horizontalAdvance(group.short) + 18)
            made.setFixedWidth(words_px if is_high else _ICON_PX + 18)

    def _restyle(self, colours: Colours) -> None:
        for group, made in self.buttons.items():
            made.setIcon(stroke_icon(_ICONS[group], colours.text, colours.faded))
