"""The legend of the colouring; a click on an entry dims its ops, another restores them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QLabel, QToolButton, QVBoxLayout, QWidget

from ace_studio.gui.graph_view.colours import Colouring, text_on
from ace_studio.gui.graph_view.partial import Partial
from ace_studio.gui.style import STRONG, Colours, number, tr
from ace_studio.gui.widgets.layouts import GAP, HAIR, LETTER_PX, MARGIN, TIGHT, row
from ace_studio.gui.words.formatting import plural

SWATCH = 16


@dataclass(frozen=True, kw_only=True)
class LegendNote:
    """A legend entry that does not depend on the colouring: a break, a subgraph, an eager subgraph."""

    shape: str
    """``diamond``, ``frame`` or ``hatch``."""
    colour: str
    text: str


def legend_notes(partial: Partial, colours: Colours) -> tuple[LegendNote, ...]:
    """Legend entries of a partial capture; none for a whole graph."""
    breaks, subgraphs, eager = len(partial.seams), len(partial.subgraph_of_block), len(partial.eager_blocks)
    captured = subgraphs - eager
    notes = (
        (breaks, "diamond", colours.seam, tr("break: Python runs here  {breaks}", breaks=breaks)),
        (captured, "frame", colours.subgraph, tr("captured subgraph  {number}", number=captured)),
        (eager, "hatch", colours.eager, tr("subgraph that stays eager  {eager}", eager=eager)),
    )
    return tuple(LegendNote(shape=shape, colour=colour, text=text) for count, shape, colour, text in notes if count)


class Legend(QWidget):
    """One switch per category that occurs in the graph."""

    filter_changed = Signal(frozenset)
    """Indices of the categories that are switched off."""
    resized = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, accessibleName=tr("Legend"))
        self._colours: Colours | None = None
        self.title = QToolButton(self)
        """The switch that folds the legend."""
        self.title.setCheckable(True)
        self.title.setChecked(True)
        self.title.setToolTip(tr("Show or hide the entries"))
        self.title.toggled.connect(lambda _: self._fold())
        self._name = ""
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(MARGIN, GAP, MARGIN, GAP)
        self._box.setSpacing(HAIR)
        self._box.addWidget(self.title)
        self.entries: dict[int, QToolButton] = {}
        """The switches by category index."""
        self._notes: list[QWidget] = []
        self.hide()

    @property
    def has_content(self) -> bool:
        """Whether there is anything to explain."""
        return bool(self.entries or self._notes)

    def show_colouring(
        self, colouring: Colouring, category: np.ndarray, *, colours: Colours, notes: Sequence[LegendNote] = ()
    ) -> None:
        """Make an entry for every category that some op has.

        Args:
            colouring: What the colours mean.
            category: [rows] category of each row, -1 for none.
            colours: Of the theme.
            notes: Entries beside the categories.
        """
        for old in (*self.entries.values(), *self._notes):
            self._box.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.entries.clear()
        self._colours = colours
        self._name = colouring.label[:1].upper() + colouring.label[1:]
        self.title.setStyleSheet(
            f"QToolButton {{ color: {colours.text}; font-weight: {STRONG}; padding: 0 2px 3px 2px; border: none }}"
            f"QToolButton:hover, QToolButton:focus {{ color: {colours.accent} }}"
        )
        counts = np.bincount(category[category >= 0], minlength=len(colouring.categories))
        for at in np.flatnonzero(counts):
            self.entries[int(at)] = button = self._entry(colouring, int(at), count=int(counts[at]))
            self._box.addWidget(button)
        self._notes = [self._note(note) for note in notes]
        for line in self._notes:
            self._box.addWidget(line)
        self.setVisible(self.has_content)
        self._fold()

    def _note(self, note: LegendNote) -> QWidget:
        line = QWidget(self)
        picture, words = QLabel(line), QLabel(note.text, line)
        picture.setPixmap(_note_icon(note, self.devicePixelRatioF()))
        if self._colours is not None:
            words.setStyleSheet(f"color: {self._colours.text}; background: transparent")
        line.setLayout(row(picture, words, margin=(TIGHT, HAIR, TIGHT, HAIR), gap=TIGHT, stretch=1))
        return line

    def _fold(self) -> None:
        is_open = self.title.isChecked()
        self.title.setText(f"{self._name}  {'▾' if is_open else '▸'}")
        for entry in (*self.entries.values(), *self._notes):
            entry.setVisible(is_open)
        self._box.activate()
        self.resize(self.sizeHint())
        self.resized.emit()

    def _entry(self, colouring: Colouring, at: int, *, count: int) -> QToolButton:
        button = QToolButton(self, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon, autoRaise=True)
        button.setCheckable(True)
        button.setChecked(True)
        button.setIcon(self._icon(colouring.colours[at], colouring.letters[at]))
        button.setIconSize(QSize(SWATCH, SWATCH))
        button.setText(f"{colouring.categories[at]}  {number(count, ',')}")
        button.setAccessibleName(f"{colouring.categories[at]}, {plural(count, 'op')}")
        button.setToolTip(tr("Dim or show these ops"))
        if self._colours is not None:
            button.setStyleSheet(
                "QToolButton { border: 1px solid transparent; border-radius: 4px; padding: 1px 5px 1px 2px;"
                f" color: {self._colours.text}; text-align: left; background: transparent }}"
                f"QToolButton:hover, QToolButton:focus {{ border-color: {self._colours.accent} }}"
            )
        button.toggled.connect(lambda shown: self._mark(button, shown=shown))
        return button

    def _icon(self, colour: str, letter: str) -> QIcon:
        ratio = self.devicePixelRatioF()
        pixmap = QPixmap(QSize(SWATCH, SWATCH) * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colour))
        square = QRectF(1, 1, SWATCH - 2, SWATCH - 2)
        painter.drawRoundedRect(square, 4, 4)
        font = painter.font()
        font.setPixelSize(LETTER_PX)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QPen(QColor(text_on(colour))))
        painter.drawText(square, Qt.AlignmentFlag.AlignCenter, letter)
        painter.end()
        return QIcon(pixmap)

    def _mark(self, button: QToolButton, *, shown: bool) -> None:
        """Strike the name out; a style sheet cannot set the font by state."""
        font = button.font()
        font.setStrikeOut(not shown)
        button.setFont(font)
        self.filter_changed.emit(frozenset(at for at, button in self.entries.items() if not button.isChecked()))

    def paintEvent(self, event: object) -> None:  # noqa: N802 - Qt's name
        """The plate behind the entries."""
        del event
        if self._colours is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        plate = QColor(self._colours.surface)
        plate.setAlpha(236)
        painter.setPen(QPen(QColor(self._colours.border), 1))
        painter.setBrush(plate)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7)
        painter.end()


def _note_icon(note: LegendNote, ratio: float) -> QPixmap:
    pixmap = QPixmap(QSize(SWATCH, SWATCH) * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    colour = QColor(note.colour)
    middle, square = SWATCH / 2, QRectF(1.5, 2.5, SWATCH - 3, SWATCH - 5)
    if note.shape == "diamond":
        painter.setPen(QPen(colour, 1.2, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(0, middle), QPointF(SWATCH, middle))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        corners = ((middle, 2), (SWATCH - 2, middle), (middle, SWATCH - 2), (2, middle))
        painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in corners]))
    else:
        is_eager = note.shape == "hatch"
        painter.setPen(QPen(colour, 1.4, Qt.PenStyle.DotLine if is_eager else Qt.PenStyle.SolidLine))
        painter.setBrush(QBrush(colour, Qt.BrushStyle.BDiagPattern) if is_eager else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(square, 2, 2)
    painter.end()
    return pixmap
