"""Read-only code with line numbers, marks at lines, and highlighted Python."""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtWidgets import QPlainTextEdit, QToolTip, QWidget

from ace_studio.gui.style import Colours, Theme, monospace
from ace_studio.gui.widgets.small import tip_text
from ace_studio.records.errors import visible

_TOKENS = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<string>(?:\b[rbfuRBFU]{1,2})?(?:
        '{3}(?:[^\\]|\\.)*?(?:'{3}|\Z) | "{3}(?:[^\\]|\\.)*?(?:"{3}|\Z)
        | '(?:[^'\\\n]|\\.)*'? | "(?:[^"\\\n]|\\.)*"?))
    |(?P<number>\b\d[\d_.eE]*\b)
    |(?P<word>\b[A-Za-z_]\w*\b)""",
    re.DOTALL | re.VERBOSE,
)
"""Matched over the whole text, because a triple-quoted string may span lines. An open one ends with the text."""
_WORDS = frozenset(keyword.kwlist)


def coloured_spans(text: str) -> dict[int, list[tuple[int, int, str]]]:
    """The spans to colour in Python code: 0-based line -> (first column, length, kind).

    Columns are counted as Qt counts them, in UTF-16 units. Kinds are comment, string, number and word (a keyword).
    """
    spans: dict[int, list[tuple[int, int, str]]] = {}
    line, line_start = 0, 0
    for found in _TOKENS.finditer(text):
        kind = found.lastgroup or ""
        if kind == "word" and found.group() not in _WORDS:
            continue
        breaks = text.count("\n", line_start, found.start())
        if breaks:
            line, line_start = line + breaks, text.rindex("\n", 0, found.start()) + 1
        column = _qt_length(text[line_start : found.start()])
        for at, part in enumerate(found.group().split("\n")):
            if part:
                spans.setdefault(line + at, []).append((0 if at else column, _qt_length(part), kind))
    return spans


def _qt_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, kw_only=True)
class Badge:
    """A mark in the gutter: a diamond with the number of a break, or a triangle with an exclamation mark."""

    text: str
    tip: str
    is_break: bool = True


class _PythonColours(QtGui.QSyntaxHighlighter):
    """Colours Python. The view finds the spans, since Qt asks line by line and strings span lines."""

    def __init__(self, document: QtGui.QTextDocument, colours: Colours) -> None:
        super().__init__(document)
        self.formats: dict[str, QtGui.QTextCharFormat] = {}
        self.spans: dict[int, list[tuple[int, int, str]]] = {}
        self.set_colours(colours)

    def set_colours(self, colours: Colours) -> None:
        wanted = {"comment": colours.text_dim, "string": colours.good, "number": colours.warn, "word": colours.accent}
        for kind, colour in wanted.items():
            form = QtGui.QTextCharFormat()
            form.setForeground(QtGui.QColor(colour))
            self.formats[kind] = form

    def highlightBlock(self, text: str) -> None:  # noqa: N802 - Qt's name
        del text
        for start, length, kind in self.spans.get(self.currentBlock().blockNumber(), ()):
            self.setFormat(start, length, self.formats[kind])


class CodeView(QPlainTextEdit):
    """A view of code. Marked lines can be clicked, or chosen with Enter."""

    line_clicked = Signal(int)
    """1-based number of a line, after a click or Enter."""
    badge_clicked = Signal(int)
    """1-based number of a line, after a click on its badge."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(readOnly=True)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.path = ""
        self._theme = theme
        self.marks: Mapping[int, int] = {}
        """Line -> number beside it."""
        self.badges: Mapping[int, Badge] = {}
        """Line -> mark in the gutter."""
        self._gutter = _Gutter(self)
        self._python = _PythonColours(self.document(), theme.colours)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(monospace())
        self.updateRequest.connect(lambda *_: self._gutter.update())
        self.blockCountChanged.connect(lambda _: self._make_room())
        theme.changed.connect(self._restyle)

    def show_code(self, text: str, *, path: str = "") -> None:
        """Show another text."""
        self.path = path
        self.marks, self.badges = {}, {}
        self._python.spans = coloured_spans(text)
        self.setPlainText(visible(text))
        self._make_room()

    def set_marks(self, marks: Mapping[int, int]) -> None:
        """Mark lines, each with a number."""
        self.marks = marks
        self._make_room()
        self._gutter.update()

    def set_badges(self, badges: Mapping[int, Badge]) -> None:
        """Set the badges of lines; their tooltips explain them."""
        self.badges = badges
        self._make_room()
        self._gutter.update()

    def line_at(self, y: int) -> int:
        """1-based number of the line at a height of the view."""
        return self.cursorForPosition(QRect(0, y, 1, 1).topLeft()).blockNumber() + 1

    def scroll_to(self, line: int) -> None:
        """Bring a line into view, and the cursor onto it."""
        block = self.document().findBlockByNumber(line - 1)
        if block.isValid():
            self.setTextCursor(QtGui.QTextCursor(block))
            first = self.firstVisibleBlock().blockNumber() + 1
            shown = self.viewport().height() // max(1, self.fontMetrics().lineSpacing())
            if not first + 1 <= line <= first + shown - 2:
                self.centerCursor()

    def gutter_width(self) -> int:
        """Width of the strip for numbers and marks, px."""
        digits = len(str(max(1, self.blockCount())))
        counted = max(3, len(str(max(self.marks.values(), default=0))))
        badges = self._badge_size() + 6 if self.badges else 0
        return self.fontMetrics().horizontalAdvance("9") * (digits + counted + 1) + 14 + badges

    def _badge_size(self) -> int:
        return max(16, self.fontMetrics().height())

    def paint_gutter(self, painter: QtGui.QPainter, area: QRect) -> None:
        """Line numbers, and a bar with a count at marked lines."""
        colours = self._theme.colours
        painter.fillRect(area, QtGui.QColor(colours.raised))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        height = self.fontMetrics().height()
        width = self._gutter.width()
        while block.isValid() and top <= area.bottom():
            line = block.blockNumber() + 1
            bottom = top + self.blockBoundingRect(block).height()
            count = self.marks.get(line, 0)
            if count:
                painter.fillRect(QRect(width - 4, round(top), 4, round(bottom - top)), QtGui.QColor(colours.accent))
                painter.setPen(QtGui.QColor(colours.accent))
                painter.drawText(QRect(4, round(top), width, height), Qt.AlignmentFlag.AlignLeft, str(count))
            badge = self.badges.get(line)
            painter.setPen(QtGui.QColor(colours.text if count or badge else colours.text_dim))
            right = width - 10 - (self._badge_size() + 6 if self.badges else 0)
            painter.drawText(QRect(0, round(top), right, height), Qt.AlignmentFlag.AlignRight, str(line))
            if badge is not None:
                self._paint_badge(painter, badge, QPointF(right + 6, (top + bottom) / 2))
            block, top = block.next(), bottom

    def _paint_badge(self, painter: QtGui.QPainter, badge: Badge, place: QPointF) -> None:
        """Draw a diamond for a break, a triangle for a problem."""
        colours, size = self._theme.colours, float(self._badge_size())
        middle, half = QPointF(place.x() + size / 2, place.y()), size / 2
        painter.save()
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QtGui.QColor(colours.warn if badge.is_break else colours.bad))
        corners = ((0, -1), (1, 0), (0, 1), (-1, 0)) if badge.is_break else ((0, -1), (1, 0.85), (-1, 0.85))
        painter.drawPolygon(QtGui.QPolygonF([middle + QPointF(x * half, y * half) for x, y in corners]))
        font = painter.font()
        font.setPixelSize(round(size * (0.56 if len(badge.text) < 3 else 0.42)))
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QtGui.QColor(colours.window))
        box = QRectF(place.x(), place.y() - half + (0 if badge.is_break else size * 0.1), size, size)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, badge.text)
        painter.restore()

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A click without a drag chooses the line."""
        super().mouseReleaseEvent(event)
        if event.button() is Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self.line_clicked.emit(self.cursorForPosition(event.position().toPoint()).blockNumber() + 1)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter chooses the line of the cursor."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.line_clicked.emit(self.textCursor().blockNumber() + 1)
        else:
            super().keyPressEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Show the tooltip of a badge."""
        if isinstance(event, QtGui.QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self.show_tip(event)
            return True
        return super().viewportEvent(event)

    def show_tip(self, event: QtGui.QHelpEvent) -> None:
        """Show the tooltip of the line under the pointer, if it has a badge."""
        badge = self.badges.get(self.line_at(event.pos().y()))
        if badge is None:
            QToolTip.hideText()
        else:
            QToolTip.showText(event.globalPos(), tip_text(badge.tip), self)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep the numbers at the left."""
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        self.setViewportMargins(self.gutter_width(), 0, 0, 0)
        box = self.contentsRect()
        self._gutter.setGeometry(box.left(), box.top(), self.gutter_width(), box.height())

    def _restyle(self, colours: Colours) -> None:
        self._python.set_colours(colours)
        self._python.rehighlight()
        self._gutter.update()


class _Gutter(QWidget):
    """The strip at the left of the code."""

    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(self._view.gutter_width(), 0)

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:  # noqa: N802 - Qt's name
        line = self._view.line_at(round(event.position().y()))
        if event.button() is Qt.MouseButton.LeftButton:
            (self._view.badge_clicked if line in self._view.badges else self._view.line_clicked).emit(line)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QtGui.QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._view.show_tip(event)
            return True
        return super().event(event)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802 - Qt's name
        painter = QtGui.QPainter(self)
        self._view.paint_gutter(painter, event.rect())
        painter.end()
