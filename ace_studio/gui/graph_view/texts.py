"""Texts on boxes, laid out once per text, size and screen."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QPainter, QStaticText

MAX_CACHED = 12_000
_WIDTH_STEP = 4


class TextCache:
    """Static texts by (text, size, boldness, room). The pixel ratio is part of the key, so that each is crisp."""

    def __init__(self) -> None:
        self._fonts: dict[tuple[int, bool], tuple[QFont, QFontMetricsF]] = {}
        self._texts: dict[tuple[str, int, bool, int, float], tuple[QStaticText, float]] = {}
        self._family = ""

    def begin_frame(self) -> None:
        """Empty the cache if the application font changed."""
        family = QGuiApplication.font().family()
        if family != self._family:
            self._fonts.clear()
            self._texts.clear()
            self._family = family

    def font(self, pixels: int, *, bold: bool = False) -> tuple[QFont, QFontMetricsF]:
        """The application's font at a height in pixels."""
        known = self._fonts.get((pixels, bold))
        if known is None:
            font = QFont(QGuiApplication.font())
            font.setPixelSize(pixels)
            font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
            known = self._fonts[pixels, bold] = (font, QFontMetricsF(font))
        return known

    def fitting(self, texts: Sequence[str], pixels: int, *, room: float, bold: bool = False) -> str:
        """The first of these texts that fits; the last one if none does."""
        metrics = self.font(pixels, bold=bold)[1]
        return next((text for text in texts if metrics.horizontalAdvance(text) <= room), texts[-1])

    def get(
        self, text: str, pixels: int, *, room: float, bold: bool = False, ratio: float = 1.0
    ) -> tuple[QStaticText, float]:
        """The text shortened to its room, and its width."""
        font, metrics = self.font(pixels, bold=bold)
        key = (text, pixels, bold, int(room) // _WIDTH_STEP, ratio)
        known = self._texts.get(key)
        if known is None:
            if len(self._texts) >= MAX_CACHED:
                self._texts.clear()
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, key[3] * _WIDTH_STEP + _WIDTH_STEP - 1)
            static = QStaticText(shown)
            static.setTextFormat(Qt.TextFormat.PlainText)
            static.prepare(font=font)
            known = self._texts[key] = (static, metrics.horizontalAdvance(shown))
        return known

    def draw(
        self,
        painter: QPainter,
        text: str,
        place: tuple[float, float, float],
        *,
        pixels: int,
        colour: QColor,
        bold: bool = False,
    ) -> float:
        """Draw a text; returns its width.

        Args:
            painter: On the widget or on an export page.
            text: What to write.
            place: Left edge, vertical middle and room to the right.
            pixels: Height of the font.
            colour: Of the text.
            bold: For names.
        """
        left, middle, room = place
        if room < pixels * 0.7 or not text:
            return 0.0
        font, metrics = self.font(pixels, bold=bold)
        static, width = self.get(text, pixels, room=room, bold=bold, ratio=painter.device().devicePixelRatioF())
        painter.setFont(font)
        painter.setPen(colour)
        painter.drawStaticText(QPointF(left, round(middle - metrics.height() / 2)), static)
        return width
