"""Open blocks: framed areas with a title bar, and their names where the bar is too small to read."""

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ace_studio.gui.graph_layout.hierarchy import shorter_names
from ace_studio.gui.graph_layout.sizes import TITLE_HEIGHT
from ace_studio.gui.graph_view.primitives import draw_rects
from ace_studio.gui.graph_view.seams import outline_subgraph
from ace_studio.gui.graph_view.stage import FULL_TEXT_FROM, ROUND_FROM, TEXT_FROM, Stage
from ace_studio.gui.words.formatting import plural

_MAX_ROUND = 400
MAX_NAMES = 60
MAX_TRIED = 300
TITLE_PIXELS = 13.0


def draw_frames(stage: Stage) -> None:
    """Fill and outline the open blocks, outer ones first."""
    picture, painter = stage.picture, stage.painter
    frames = stage.inside(picture.scene.frames)
    rects = stage.rects(frames)
    large = (rects[:, 2] > 3) & (rects[:, 3] > 3)
    frames, rects = frames[large], rects[large]
    if stage.culls:
        rects = _clipped(rects, stage.width, stage.height)
    rounded = stage.op_height >= ROUND_FROM and len(frames) <= _MAX_ROUND
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, rounded)
    painter.setPen(QPen(QColor(stage.colours.border), 1))
    levels = np.minimum(picture.tree.depth[frames] - 1, len(stage.colours.frames) - 1)
    depths = picture.tree.depth[frames]
    for depth in np.unique(depths):
        same = np.flatnonzero(depths == depth)
        painter.setBrush(QColor(stage.colours.frames[int(levels[same[0]])]))
        draw_rects(painter, rects[same], radius=min(12.0, 9.0 * stage.camera.scale) if rounded else 0.0)
    if picture.partial:
        edge = min(12.0, 9.0 * stage.camera.scale) if stage.op_height >= ROUND_FROM else 0.0
        bar = TITLE_HEIGHT * stage.camera.scale
        for frame, rect in zip(frames.tolist(), rects, strict=True):
            outline_subgraph(stage, frame, QRectF(*rect), title=min(bar, rect[3] / 2), radius=edge)
    _outline_marked(stage, frames, rects)


def _clipped(rects: np.ndarray, width: float, height: float) -> np.ndarray:
    """Clip frames a little outside the window; filling invisible areas costs time."""
    margin = 40.0
    low = np.maximum(rects[:, :2], -margin)
    high = np.minimum(rects[:, :2] + rects[:, 2:], np.array([width + margin, height + margin]))
    return np.hstack([low, high - low])


def _outline_marked(stage: Stage, frames: np.ndarray, rects: np.ndarray) -> None:
    """Selected blocks and the one with the keyboard focus."""
    picture, painter = stage.picture, stage.painter
    chosen = np.zeros(len(frames), dtype=bool)
    if picture.selected.any():
        chosen = picture.share_of(picture.selected, frames) >= 1.0
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for at in np.flatnonzero(chosen | (frames == stage.current)):
        painter.setPen(QPen(QColor(stage.colours.accent), 2.0 if chosen[at] else 1.2))
        painter.drawRoundedRect(QRectF(*rects[at]).adjusted(1, 1, -1, -1), 6, 6)


def title_of_block(stage: Stage, block: int) -> tuple[str, str]:
    """Name and rest of a title bar: class, number of identical layers, number of ops."""
    tree = stage.picture.tree
    name, module_type = stage.picture.titles(block)
    repeats = tree.repeats[block - tree.root]
    ops = int(tree.ops_inside[block])
    if block in stage.picture.partial.subgraph_of_block and block not in stage.picture.partial.eager_blocks:
        module_type = ""  # the name holds the module; the number of captured ops matters more
    parts = [module_type, f"×{repeats}" if repeats else "", plural(ops, "op")]
    return name, "  ·  ".join(part for part in parts if part)


def draw_frame_names(stage: Stage) -> None:
    """Titles: in the bar of each block, or as small labels over the far picture."""
    frames = stage.inside(stage.picture.scene.frames)
    if not len(frames):
        return
    rects = stage.rects(frames)
    bar = TITLE_HEIGHT * stage.camera.scale
    # Where ops have names, a plate over the picture would hide some of them.
    if stage.op_height >= TEXT_FROM:
        wide = rects[:, 2] > 40
        for frame, rect in zip(frames[wide], rects[wide], strict=True):
            _draw_title(stage, int(frame), rect, bar)
    else:
        _draw_labels(stage, frames, rects)


def _draw_title(stage: Stage, frame: int, rect: np.ndarray, bar: float) -> None:
    left, top, width, _ = rect
    scale = stage.camera.scale
    larger = 1.0 if stage.op_height >= FULL_TEXT_FROM else 1.3
    pixels = max(7, round(min(TITLE_PIXELS * scale * larger, bar * 0.62)))
    # The title stays in the visible part of a wide frame.
    shift = min(max(0.0, -left), max(0.0, width - 160 * scale)) if stage.culls else 0.0
    start = left + shift + 12 * scale
    room = width - shift - 24 * scale
    name, rest = title_of_block(stage, frame)
    if stage.texts.font(pixels, bold=True)[1].horizontalAdvance(name) > room:
        # A smaller font before an ellipsis, while it is readable.
        pixels = max(7, round(pixels * 0.75))
        name = stage.texts.fitting(shorter_names(name), pixels, room=room, bold=True)
    middle = top + bar * 0.5
    used = stage.texts.draw(
        stage.painter, name, (start, middle, room), pixels=pixels, colour=QColor(stage.colours.text), bold=True
    )
    stage.texts.draw(
        stage.painter,
        rest,
        (start + used + pixels * 0.7, middle, room - used - pixels * 0.7),
        pixels=max(7, round(pixels * 0.86)),
        colour=QColor(stage.colours.text_dim),
    )


def _draw_labels(stage: Stage, frames: np.ndarray, rects: np.ndarray) -> None:
    """Names of large open blocks on small plates, outer blocks first, none over another."""
    painter = stage.painter
    taken: list[QRectF] = []
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    plate = QColor(stage.colours.surface)
    plate.setAlpha(225)
    large = (rects[:, 2] >= 64) & (rects[:, 3] >= 40)
    for frame, rect in zip(frames[large][:MAX_TRIED], rects[large], strict=False):
        left, top, width, _ = rect
        if len(taken) >= MAX_NAMES:
            break
        name, rest = title_of_block(stage, int(frame))
        left, top = max(left + 4, 4.0), max(top + 4, 4.0)
        room = min(width - 8, 260.0)
        name = stage.texts.fitting(shorter_names(name), 11, room=room - 10, bold=True)
        text = f"{name}  {rest.split('  ·  ')[0]}" if width > 150 else name
        _, length = stage.texts.get(text, 11, room=room - 10, bold=True, ratio=painter.device().devicePixelRatioF())
        label = QRectF(left, top, length + 10, 18)
        if any(label.intersects(other) for other in taken):
            continue
        taken.append(label)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(plate)
        painter.drawRoundedRect(label, 4, 4)
        stage.texts.draw(
            painter,
            text,
            (left + 5, label.center().y(), room - 10),
            pixels=11,
            colour=QColor(stage.colours.text),
            bold=True,
        )
