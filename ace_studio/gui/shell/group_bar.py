"""The bar at the left edge: one button for each thing that a person does, which brings its panels to the front."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QToolButton

from ace_studio.gui.shell.panel_table import PANELS, PanelGroup
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.icons import stroke_icon
from ace_studio.gui.style.language import tr
from ace_studio.gui.style.sizes import TIGHT
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.layouts import column
from ace_studio.session.document import Document

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
