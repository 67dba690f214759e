"""Many rectangles and lines in one call."""

import numpy as np
from PySide6.QtGui import QColor, QImage, QPainter

from ace_studio.gui.graph_view.primitives import draw_lines, draw_rects


def test_rectangles_and_lines_are_drawn_where_the_array_says(qapp):
    image = QImage(40, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    painter.setPen(QColor("red"))
    painter.setBrush(QColor("red"))
    draw_rects(painter, np.array([[2.0, 2.0, 6.0, 6.0], [20.0, 2.0, 6.0, 6.0]]))
    painter.setPen(QColor("lime"))
    draw_lines(painter, np.array([[0.0, 15.0, 39.0, 15.0]]))
    draw_lines(painter, np.zeros((0, 4)))
    painter.end()
    assert [image.pixelColor(x, 5).name() for x in (5, 15, 23)] == ["#ff0000", "#000000", "#ff0000"]
    assert image.pixelColor(30, 15).name() == "#00ff00"
