"""Draw one frame: the visible part, in as much detail as its size on the screen allows."""

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from ace_studio.gui.graph_layout import SegmentKind
from ace_studio.gui.graph_layout.marking import leads_to
from ace_studio.gui.graph_view.boxes import draw_boxes
from ace_studio.gui.graph_view.colours import blend
from ace_studio.gui.graph_view.frames import draw_frame_names, draw_frames
from ace_studio.gui.graph_view.primitives import draw_lines
from ace_studio.gui.graph_view.seams import draw_seam_lines
from ace_studio.gui.graph_view.stage import LINES_FROM, ROUND_FROM, Stage
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.style import Colours, tr

EMPTY_TEXT = tr("No graph yet")
EMPTY_HINT = tr("Open a model and trace it; its graph appears here.")


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


MAX_CURVES = 2500
MAX_SMOOTH = 9000
MAX_ARROWS = 900
STEPS_CLOSE, STEPS_FAR = 14, 7
ARROW = 7.5
"""Length of an arrowhead in the scene."""


def draw_edges(stage: Stage) -> None:
    """Draw the visible segments of all edges; those at the selection last and stronger.

    From far away only highlighted edges are drawn.
    """
    scene = stage.picture.scene
    ends, index = _visible(stage)
    if not len(index):
        return
    edges = stage.picture.edges
    strong = _strong(stage)[index] if edges is None else edges.segments(scene)[index]
    kind, arrow = scene.segment_kind[index], scene.segment_arrow[index]
    colour, accent = stage.colours.edge, stage.colours.accent if edges is None else stage.colours.match
    if edges is not None or strong.any():
        colour = blend(colour, stage.colours.window, share=0.62 if edges is None else 0.3)
    for mask, shade, width in ((~strong, colour, 1.3), (strong, accent, 2.2 if edges is None else 2.8)):
        if mask.any() and (mask is strong or stage.op_height >= LINES_FROM):
            _draw(stage, ends[mask], (kind[mask], arrow[mask]), colour=shade, width=width)


def _visible(stage: Stage) -> tuple[np.ndarray, np.ndarray]:
    """Segments that touch the window, in pixels, and their indices."""
    segments, camera = stage.picture.scene.segments, stage.camera
    if stage.culls:
        left, top, right, bottom = stage.exposed_scene(margin=12.0)
        lefts, tops, rights, bottoms = stage.picture.segment_bounds
        index = np.flatnonzero((bottoms > top) & (tops < bottom) & (rights > left) & (lefts < right))
        # Ends within 0.5 px are one point on the screen.
        long = (rights[index] - lefts[index] + bottoms[index] - tops[index]) * camera.scale > 0.5
        index = index[long | (stage.picture.scene.segment_arrow[index] != 0)]
    else:
        index = np.arange(len(segments))
    offset = np.array([camera.dx, camera.dy, camera.dx, camera.dy])
    return segments[index] * camera.scale + offset, index


def _strong(stage: Stage) -> np.ndarray:
    """Which segments belong to the selected boxes or to the one under the pointer."""
    picture, scene = stage.picture, stage.picture.scene
    marked = np.zeros(picture.tree.node_count + 1, dtype=bool)
    selected = picture.selected
    if selected.any() and not selected.all():
        whole = picture.share_of(selected, scene.boxes) >= 1.0
        marked[scene.boxes[whole]] = True
    if stage.hovered >= 0 and scene.visible[stage.hovered] and not picture.arrangement.is_open(stage.hovered):
        marked[stage.hovered] = True
    if not marked.any():
        return np.zeros(len(scene.segments), dtype=bool)
    last = marked[scene.segment_target] & (scene.segment_target >= 0)
    leading = leads_to(scene, last, node_count=picture.tree.node_count)
    return marked[scene.segment_source] | marked[scene.segment_target] | leading


def _draw(stage: Stage, ends: np.ndarray, marks: tuple[np.ndarray, np.ndarray], *, colour: str, width: float) -> None:
    kind, arrow = marks
    painter = stage.painter
    close = stage.op_height >= ROUND_FROM
    pen = QPen(QColor(colour), max(1.0, width * min(1.6, max(0.55, stage.camera.scale))))
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, close or len(ends) < MAX_SMOOTH)
    curved = (kind == SegmentKind.CURVE) & (np.abs(ends[:, 0] - ends[:, 2]) > 1.0)
    if not close or curved.sum() > MAX_CURVES:
        draw_lines(painter, ends)
    else:
        draw_lines(painter, ends[~curved])
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        draw_lines(painter, bend(ends[curved], STEPS_CLOSE if curved.sum() < 400 else STEPS_FAR))
    if close and np.count_nonzero(arrow) <= MAX_ARROWS:
        _draw_arrows(stage, ends, arrow, colour=colour)


def bend(ends: np.ndarray, steps: int) -> np.ndarray:
    """Curves that leave and arrive vertically, as short straight lines.

    Shapes: ends [curves, 4] -> [curves * steps, 4].
    """
    t = np.linspace(0.0, 1.0, steps + 1)
    x0, y0, x1, y1 = (ends[:, at, None] for at in range(4))
    # A cubic Bezier curve whose control points lie half way down, straight below and above the ends.
    ease = 3 * t**2 - 2 * t**3
    fall = 1.5 * t * (1 - t) ** 2 + 1.5 * t**2 * (1 - t) + t**3
    x, y = x0 + (x1 - x0) * ease, y0 + (y1 - y0) * fall
    return np.stack([x[:, :-1], y[:, :-1], x[:, 1:], y[:, 1:]], axis=-1).reshape(-1, 4)


def _draw_arrows(stage: Stage, ends: np.ndarray, arrow: np.ndarray, *, colour: str) -> None:
    """Small triangles: at the end pointing down, or at the start pointing up."""
    painter = stage.painter
    size = min(11.0, max(4.0, ARROW * stage.camera.scale))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    for at in np.flatnonzero(arrow):
        x, y = (ends[at, 2], ends[at, 3]) if arrow[at] > 0 else (ends[at, 0], ends[at, 1])
        back = y - size if arrow[at] > 0 else y + size
        painter.drawPolygon(QPolygonF([QPointF(x, y), QPointF(x - size * 0.46, back), QPointF(x + size * 0.46, back)]))
