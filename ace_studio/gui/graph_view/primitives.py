"""Thousands of rectangles or lines in one call of QPainter, from a numpy array."""

import numpy as np
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QPainter

_rects = PrimitiveArray(QRectF, 4)
_lines = PrimitiveArray(QLineF, 4)


def draw_rects(painter: QPainter, rects: np.ndarray, *, radius: float = 0.0) -> None:
    """Draw rectangles, with round corners one by one. Shape: [n, 4] left, top, width, height."""
    if radius:
        for rect in rects:
            painter.drawRoundedRect(QRectF(*rect), radius, radius)
    elif len(rects):
        _rects.resize(len(rects))
        _rects.ndarray()[:] = rects
        painter.drawRects(*_rects.drawargs())


def draw_lines(painter: QPainter, lines: np.ndarray) -> None:
    """Draw lines. Shape: [n, 4] x and y of the start, x and y of the end."""
    if len(lines):
        _lines.resize(len(lines))
        _lines.ndarray()[:] = lines
        painter.drawLines(*_lines.drawargs())
