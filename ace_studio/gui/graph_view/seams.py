"""Draws breaks as numbered seams across the picture, and subgraphs as frames, hatched if they stay eager."""

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from ace_studio.gui.graph_view.colours import blend, text_on
from ace_studio.gui.graph_view.partial import Seam
from ace_studio.gui.graph_view.primitives import draw_lines
from ace_studio.gui.graph_view.stage import FULL_TEXT_FROM, ROUND_FROM, TEXT_FROM, Stage

HATCH_SHARE = 0.36
HATCH_STEP = 7.0
"""Pixels from line to line, measured along an edge."""
DASHES = [5.0, 3.5]


def draw_seam_lines(stage: Stage) -> None:
    """A dashed line as wide as the subgraphs that each break separates. It is drawn at every scale."""
    spans = stage.picture.seam_spans
    if not len(spans):
        return
    camera, painter = stage.camera, stage.painter
    pen = QPen(QColor(stage.colours.seam), min(2.4, max(1.2, 2.2 * camera.scale)))
    pen.setDashPattern(DASHES)
    painter.setPen(pen)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for _, left, right, middle in spans.tolist():
        y = round(middle * camera.scale + camera.dy) + 0.5
        if not stage.culls or -4 <= y <= stage.height + 4:
            painter.drawLine(QLineF(left * camera.scale + camera.dx, y, right * camera.scale + camera.dx, y))


def draw_seam(stage: Stage, row: int, rect: np.ndarray) -> None:
    """The box of a break: its number in a diamond, the reason, and below it the place and the cost."""
    seam = stage.picture.partial.seams[row]
    painter, colours, scale = stage.painter, stage.colours, stage.camera.scale
    left, top, width, height = rect
    fill = blend(colours.seam, colours.window, share=0.2)
    pen = QPen(QColor(colours.seam), 1.0 if stage.op_height < ROUND_FROM else 1.6)
    pen.setDashPattern(DASHES)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(pen)
    painter.setBrush(QColor(fill))
    notch = min(height / 2, 14 * scale)
    # Pointed at both ends, so that it cannot be taken for an op.
    painter.drawPolygon(
        QPolygonF(
            [
                QPointF(left, top + height / 2),
                QPointF(left + notch, top),
                QPointF(left + width - notch, top),
                QPointF(left + width, top + height / 2),
                QPointF(left + width - notch, top + height),
                QPointF(left + notch, top + height),
            ]
        )
    )
    if stage.op_height < TEXT_FROM:
        return
    used = _number(stage, seam, (left + notch, top + height / 2))
    start = left + notch + used + 10 * scale
    _words(stage, seam, (start, top, left + width - notch - start, height), fill=fill)


def _number(stage: Stage, seam: Seam, place: tuple[float, float]) -> float:
    """A filled diamond with the number; returns its width."""
    painter, colours, scale = stage.painter, stage.colours, stage.camera.scale
    left, middle = place
    half = max(7.0, 15.0 * scale)
    if seam.number == 0:
        return 0.0
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colours.seam))
    centre = left + half
    painter.drawPolygon(
        QPolygonF(
            [
                QPointF(centre, middle - half), QPointF(centre + half, middle),
                QPointF(centre, middle + half), QPointF(centre - half, middle),
            ]
        )
    )  # fmt: skip
    text = str(seam.number)
    pixels = max(7, round(half * (0.86 if len(text) < 3 else 0.62)))
    length = stage.texts.font(pixels, bold=True)[1].horizontalAdvance(text)
    ink = QColor(text_on(colours.seam))
    stage.texts.draw(
        painter, text, (centre - length / 2, middle, length + 6), pixels=pixels, colour=ink, bold=True
    )  # fmt: skip
    return 2 * half


def _words(stage: Stage, seam: Seam, box: tuple[float, float, float, float], *, fill: str) -> None:
    left, top, room, height = box
    scale = stage.camera.scale
    ink = QColor(stage.colours.text)
    if stage.op_height < FULL_TEXT_FROM or not seam.facts:
        pixels = max(7, round(min(14.0 * scale * 1.25, height * 0.55)))
        stage.texts.draw(
            stage.painter, seam.about.reason, (left, top + height / 2, room), pixels=pixels, colour=ink, bold=True
        )
        return
    pixels = round(13.0 * scale)
    stage.texts.draw(
        stage.painter, seam.about.reason, (left, top + height * 0.33, room), pixels=pixels, colour=ink, bold=True
    )
    soft = QColor(blend(stage.colours.text, fill, share=0.78))
    small = max(7, round(10.5 * scale))
    stage.texts.draw(stage.painter, seam.facts, (left, top + height * 0.71, room), pixels=small, colour=soft)


def hatch(stage: Stage, rect: QRectF, radius: float) -> None:
    """Slanted lines over a subgraph that stays eager; a pattern brush would ignore the scale of the screen."""
    painter = stage.painter
    colour = QColor(stage.colours.eager)
    colour.setAlphaF(HATCH_SHARE)
    seen = rect
    if stage.culls:
        seen = rect.intersected(
            QRectF(-HATCH_STEP, -HATCH_STEP, stage.width + 2 * HATCH_STEP, stage.height + 2 * HATCH_STEP)
        )
    if seen.isEmpty():
        return
    # Counted from the corner of the subgraph, so that the lines move with it.
    first = np.floor((seen.left() + seen.top() - rect.left() - rect.top()) / HATCH_STEP)
    last = (seen.right() + seen.bottom() - rect.left() - rect.top()) / HATCH_STEP
    total = rect.left() + rect.top() + np.arange(first, last + 1) * HATCH_STEP
    lines = np.column_stack([total - seen.top(), np.full(len(total), seen.top()),
                             total - seen.bottom(), np.full(len(total), seen.bottom())])  # fmt: skip
    painter.save()
    outline = QPainterPath()
    outline.addRoundedRect(rect, radius, radius)
    painter.setClipPath(outline)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(QPen(colour, 1.2))
    draw_lines(painter, lines)
    painter.restore()


def outline_subgraph(stage: Stage, block: int, rect: QRectF, *, title: float, radius: float) -> None:
    """Draw the edge of a subgraph, stronger than that of a module; nothing for a module.

    One that stays eager is dotted, and hatched below its ``title``, which is so many pixels high and stays readable.
    """
    painter, partial = stage.painter, stage.picture.partial
    if block not in partial.looks_like_subgraph:
        return
    is_eager = block in partial.looks_eager
    pen = QPen(QColor(stage.colours.eager if is_eager else stage.colours.subgraph), 1.6)
    if is_eager:
        hatch(stage, rect.adjusted(0, title, 0, 0), radius)
        pen.setStyle(Qt.PenStyle.DotLine)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(rect, radius, radius)
