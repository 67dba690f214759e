"""Draw one frame: the visible part, in as much detail as its size on the screen allows."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPainter

from ace_studio.gui.graph_view.boxes import draw_boxes
from ace_studio.gui.graph_view.frames import draw_frame_names, draw_frames
from ace_studio.gui.graph_view.lines import draw_edges
from ace_studio.gui.graph_view.seams import draw_seam_lines
from ace_studio.gui.graph_view.stage import LINES_FROM, Stage
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.style.colours import Colours

EMPTY_TEXT = "No graph yet"
EMPTY_HINT = "Open a model and trace it; its graph appears here."


def paint_scene(stage: Stage) -> None:
    """Draw everything of one frame, back to front."""
    paint_ground(stage)
    draw_frame_names(stage)


def paint_ground(stage: Stage) -> None:
    """Draw what moves with the picture: everything but the names of open blocks, which keep to the window."""
    stage.texts.begin_frame()
    draw_seam_lines(stage)
    draw_frames(stage)
    if stage.op_height >= LINES_FROM or stage.picture.edges is not None:
        draw_edges(stage)
    draw_boxes(stage)


def draw_empty(painter: QPainter, texts: TextCache, colours: Colours, width: int, height: int) -> None:
    """Draw the text that there is no graph, and how to get one."""
    for text, pixels, colour, down in (
        (EMPTY_TEXT, 17, colours.text, -14),
        (EMPTY_HINT, 13, colours.text_dim, 14),
    ):
        font, metrics = texts.font(pixels, bold=pixels > 14)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(round((width - metrics.horizontalAdvance(text)) / 2), height // 2 + down, text)
