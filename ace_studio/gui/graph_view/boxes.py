"""Boxes: ops and closed blocks, with text, letter badges and the mix bar where there is room."""

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from ace_studio.gui.graph_layout.hierarchy import Ints, shorter_names
from ace_studio.gui.graph_layout.sizes import STACK_LEAF
from ace_studio.gui.graph_view.colours import blend, luminance, text_on
from ace_studio.gui.graph_view.primitives import draw_rects
from ace_studio.gui.graph_view.seams import draw_seam, outline_subgraph
from ace_studio.gui.graph_view.stage import FULL_TEXT_FROM, IMAGE_BELOW, ROUND_FROM, TEXT_FROM, Stage
from ace_studio.gui.words.formatting import plural

_MAX_ROUND = 900
DIM = 0.16
"""Opacity of boxes that the legend filters out."""


def draw_boxes(stage: Stage) -> None:
    """Draw all visible boxes."""
    boxes = stage.inside(stage.picture.scene.boxes)
    if not len(boxes):
        return
    fills, style = _styles(stage, boxes)
    rects = stage.rects(boxes)
    if stage.op_height < IMAGE_BELOW and stage.culls:
        _draw_image(stage, rects, style, fills=fills)
    else:
        is_seam = _are_seams(stage, boxes)
        plain, at = (boxes[~is_seam], rects[~is_seam]), style[~is_seam]
        _fill(stage, plain, at, fills=fills)
        if stage.op_height >= TEXT_FROM:
            _write(stage, plain, at, fills=fills)
        for box, rect in zip(boxes[is_seam].tolist(), rects[is_seam], strict=True):
            draw_seam(stage, box, rect)
    _outline_marked(stage, boxes, rects)


def _are_seams(stage: Stage, boxes: Ints) -> np.ndarray:
    rows = boxes < stage.picture.tree.root
    found = np.zeros(len(boxes), dtype=bool)
    found[rows] = stage.picture.partial.is_break[boxes[rows]]
    return found


def _styles(stage: Stage, boxes: Ints) -> tuple[list[str], np.ndarray]:
    """The fills in use, and the fill of each box: categories, then the block's, then each of these dimmed."""
    picture, colours = stage.picture, stage.colours
    plain = [*picture.colouring.colours, colours.seam, colours.block]
    ground = colours.frames[0] if len(picture.scene.frames) else colours.window
    fills = plain + [blend(fill, ground, share=DIM) for fill in plain]
    style = np.full(len(boxes), len(plain) - 1)
    rows = boxes < picture.tree.root
    category = picture.category[boxes[rows]]
    style[rows] = np.where(category >= 0, category, len(plain) - 1)
    if stage.op_height < TEXT_FROM:
        mix = picture.mix[boxes[~rows] - picture.tree.root]
        style[~rows] = np.where(mix.any(axis=1), mix.argmax(axis=1) if mix.size else 0, len(plain) - 1)
    style[_are_seams(stage, boxes)] = len(plain) - 2
    style[picture.dimmed(boxes)] += len(plain)
    return fills, style


def _draw_image(stage: Stage, rects: np.ndarray, style: np.ndarray, *, fills: list[str]) -> None:
    """One image in which every box is at least one pixel."""
    ratio = stage.painter.device().devicePixelRatioF()
    wide, tall = max(1, round(stage.width * ratio)), max(1, round(stage.height * ratio))
    pixels = np.zeros((tall, wide), dtype=np.uint32)
    shade = np.array([QColor(fill).rgba() for fill in fills], dtype=np.uint32)[style]
    left = np.floor(rects[:, 0] * ratio).astype(np.int64)
    top = np.floor(rects[:, 1] * ratio).astype(np.int64)
    widths = np.maximum(1, np.floor(rects[:, 2] * ratio)).astype(np.int64)
    heights = np.maximum(1, np.floor(rects[:, 3] * ratio)).astype(np.int64)
    flat = pixels.reshape(-1)
    for down in range(int(heights.max())):
        for right in range(int(widths.max())):
            x, y = left + right, top + down
            kept = (down < heights) & (right < widths) & (x >= 0) & (x < wide) & (y >= 0) & (y < tall)
            flat[y[kept] * wide + x[kept]] = shade[kept]
    image = QImage(pixels.data, wide, tall, wide * 4, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    stage.painter.drawImage(0, 0, image)


def _fill(stage: Stage, drawn: tuple[Ints, np.ndarray], style: np.ndarray, *, fills: list[str]) -> None:
    boxes, rects = drawn
    painter = stage.painter
    rounded = stage.op_height >= ROUND_FROM and len(boxes) <= _MAX_ROUND
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, rounded)
    if stage.op_height >= TEXT_FROM:
        _draw_leaves(stage, boxes, rects)
    radius = min(9.0, 6.0 * stage.camera.scale)
    for kind in np.unique(style):
        same = np.flatnonzero(style == kind)
        painter.setBrush(QColor(fills[int(kind)]))
        painter.setPen(_border(stage, fills[int(kind)]) if rounded else Qt.PenStyle.NoPen)
        draw_rects(painter, rects[same], radius=radius if rounded else 0.0)
    if stage.picture.partial:
        share = 0.68 if stage.op_height >= TEXT_FROM else 0.0  # the name is in the upper half
        for at in np.flatnonzero(boxes >= stage.picture.tree.root):
            rect = QRectF(*rects[at])
            title, edge = share * rect.height(), radius if rounded else 0.0
            outline_subgraph(stage, int(boxes[at]), rect, title=title, radius=edge)


def _border(stage: Stage, fill: str) -> QPen:
    """A thin edge a little darker or lighter than the fill."""
    if fill == stage.colours.block:
        return QPen(QColor(stage.colours.block_border), 1)
    colour = QColor(fill)
    dark_theme = luminance(stage.colours.window) < 0.2
    return QPen(colour.lighter(125) if dark_theme else colour.darker(118), 1)


def _draw_leaves(stage: Stage, boxes: Ints, rects: np.ndarray) -> None:
    """Draw the cards behind a block that stands for several identical layers; returns the front cards."""
    tree, painter = stage.picture.tree, stage.painter
    leaf = STACK_LEAF * stage.camera.scale
    radius = min(9.0, 6.0 * stage.camera.scale)
    painter.setPen(QPen(QColor(stage.colours.block_border), 1))
    for at in np.flatnonzero(boxes >= tree.root):
        if not tree.repeats[boxes[at] - tree.root]:
            continue
        rects[at, 2:] -= 2 * leaf
        painter.setBrush(QColor(blend(stage.colours.block, stage.colours.window, share=0.6)))
        for step in (2, 1):
            card = QRectF(*rects[at]).translated(step * leaf, step * leaf)
            painter.drawRoundedRect(card, radius, radius)


def _outline_marked(stage: Stage, boxes: Ints, rects: np.ndarray) -> None:
    """Selection, matches of a search, the box under the pointer and the one with the keyboard focus."""
    picture, painter, colours = stage.picture, stage.painter, stage.colours
    rounded = stage.op_height >= ROUND_FROM
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, rounded)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    radius = min(9.0, 6.0 * stage.camera.scale) + 2 if rounded else 0.0
    width = 2.5 if rounded else 1.5
    for mask, colour in ((picture.matched, colours.match), (picture.selected, colours.accent)):
        if not mask.any():
            continue
        share = picture.share_of(mask, boxes)
        for part, style in ((share >= 1.0, Qt.PenStyle.SolidLine), ((share > 0) & (share < 1), Qt.PenStyle.DashLine)):
            painter.setPen(QPen(QColor(colour), width, style))
            is_round = rounded and part.sum() <= _MAX_ROUND
            wider = np.array([-2, -2, 4, 4] if is_round else [-1, -1, 2, 2])
            draw_rects(painter, rects[part] + wider, radius=radius if is_round else 0.0)
    for node, colour, pixels in ((stage.hovered, colours.text_dim, 1.5), (stage.current, colours.text, 1.2)):
        for at in np.flatnonzero(boxes == node):
            painter.setPen(QPen(QColor(colour), pixels, Qt.PenStyle.SolidLine))
            painter.drawRoundedRect(QRectF(*rects[at]).adjusted(-4, -4, 4, 4), radius + 2, radius + 2)


def _write(stage: Stage, drawn: tuple[Ints, np.ndarray], style: np.ndarray, *, fills: list[str]) -> None:
    """Text on every box that is wide enough."""
    boxes, rects = drawn
    inks = [QColor(text_on(fill)) for fill in fills]
    plain = len(fills) // 2
    for dim in range(plain, len(fills)):
        inks[dim] = QColor(blend(text_on(fills[dim]), fills[dim], share=0.45))
    stage.painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    wide = rects[:, 2] > 18
    if stage.op_height < ROUND_FROM:
        _write_titles(stage, (boxes, rects), wide & (boxes < stage.picture.tree.root), style=style, inks=inks)
        wide &= boxes >= stage.picture.tree.root
    for at in np.flatnonzero(wide):
        node, look = int(boxes[at]), int(style[at])
        if node < stage.picture.tree.root:
            _write_op(stage, node, rects[at], ink=inks[look])
        else:
            _write_block(stage, node, rects[at], ink=inks[look])


def _write_titles(
    stage: Stage, drawn: tuple[Ints, np.ndarray], which: np.ndarray, *, style: np.ndarray, inks: list[QColor]
) -> None:
    """Write only the names of many small ops, with one font and one pen for all."""
    boxes, rects = drawn
    painter, texts, titles = stage.painter, stage.texts, stage.picture.titles
    scale, ratio = stage.camera.scale, stage.painter.device().devicePixelRatioF()
    pixels = max(7, round(min(13.0 * scale * 1.35, stage.op_height * 0.62)))
    font, metrics = texts.font(pixels)
    painter.setFont(font)
    side, up = 10 * scale, metrics.height() / 2
    for look in np.unique(style[which]):
        painter.setPen(inks[int(look)])
        same = which & (style == look)
        for node, (left, top, width, height) in zip(boxes[same].tolist(), rects[same].tolist(), strict=True):
            static, _ = texts.get(titles(node)[0], pixels, room=width - 2 * side, ratio=ratio)
            painter.drawStaticText(QPointF(left + side, round(top + height / 2 - up)), static)


def _write_op(stage: Stage, row: int, rect: np.ndarray, *, ink: QColor) -> None:
    left, top, width, height = rect
    title, detail = stage.picture.titles(row)
    full = stage.op_height >= FULL_TEXT_FROM and detail
    scale = stage.camera.scale
    side = 10 * scale
    room = width - 2 * side
    letter = _letter(stage, row)
    if letter and stage.op_height >= ROUND_FROM:
        room -= _badge(stage, letter, (left + width, top + height / 2), ink=ink) + 4 * scale
    if not full:
        larger = 1.0 if stage.op_height >= FULL_TEXT_FROM else 1.35
        pixels = max(7, round(min(13.0 * scale * larger, height * 0.62)))
        stage.texts.draw(stage.painter, title, (left + side, top + height / 2, room), pixels=pixels, colour=ink)
        return
    pixels = round(13.0 * scale)
    middle = top + height * 0.34
    used = stage.texts.draw(stage.painter, title, (left + side, middle, room), pixels=pixels, colour=ink, bold=True)
    soft = QColor(ink)
    soft.setAlphaF(ink.alphaF() * 0.78)
    small = max(7, round(10.5 * scale))
    name = stage.picture.tree.row_names[row]
    rest = (left + side + used + 7 * scale, middle + scale, room - used - 7 * scale)
    stage.texts.draw(stage.painter, name, rest, pixels=small, colour=soft)
    stage.texts.draw(stage.painter, detail, (left + side, top + height * 0.71, room), pixels=small, colour=soft)


def _letter(stage: Stage, row: int) -> str:
    category = int(stage.picture.category[row])
    return stage.picture.colouring.letters[category] if category >= 0 else ""


def _badge(stage: Stage, letter: str, place: tuple[float, float], *, ink: QColor) -> float:
    """A letter on a soft plate at the right edge; returns the room it takes."""
    right, middle = place
    painter, scale = stage.painter, stage.camera.scale
    size = 18.0 * scale
    pixels = max(7, round(11 * scale))
    width = max(size, stage.texts.font(pixels, bold=True)[1].horizontalAdvance(letter) + 7 * scale)
    plate = QColor(ink)
    plate.setAlphaF(0.17)
    box = QRectF(right - width - 8 * scale, middle - size / 2, width, size)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(plate)
    painter.drawRoundedRect(box, 4 * scale, 4 * scale)
    length = stage.texts.font(pixels, bold=True)[1].horizontalAdvance(letter)
    stage.texts.draw(
        painter, letter, (box.center().x() - length / 2, middle, width + 4), pixels=pixels, colour=ink, bold=True
    )
    return float(width)


def _write_block(stage: Stage, block: int, rect: np.ndarray, *, ink: QColor) -> None:
    left, top, width, height = rect
    picture, scale = stage.picture, stage.camera.scale
    name, module_type = picture.titles(block)
    side = 12 * scale
    room = width - 2 * side
    repeats = picture.tree.repeats[block - picture.tree.root]
    if stage.op_height < FULL_TEXT_FROM * 0.6:
        pixels = max(7, round(min(16.0 * scale * 1.2, height * 0.4)))
        names = [f"{each} ×{repeats}" if repeats else each for each in shorter_names(name)]
        text = stage.texts.fitting(names, pixels, room=room, bold=True)
        middle = top + height * 0.46
        stage.texts.draw(stage.painter, text, (left + side, middle, room), pixels=pixels, colour=ink, bold=True)
        _draw_mix(stage, block, (left + side, top + height - 9 * scale, room))
        return
    used = 0.0
    if repeats:
        used = _badge(stage, f"×{repeats}", (left + width, top + height * 0.27), ink=ink) + 4 * scale
    pixels = max(8, round(13.5 * scale))
    name = stage.texts.fitting(shorter_names(name), pixels, room=room - used, bold=True)
    stage.texts.draw(
        stage.painter, name, (left + side, top + height * 0.27, room - used), pixels=pixels, colour=ink, bold=True
    )
    soft = QColor(ink)
    soft.setAlphaF(ink.alphaF() * 0.72)
    small = max(7, round(10.5 * scale))
    ops = int(picture.tree.ops_inside[block])
    count = plural(ops, "op")
    length = stage.texts.font(small)[1].horizontalAdvance(count)
    middle = top + height * 0.56
    stage.texts.draw(
        stage.painter, module_type, (left + side, middle, room - length - 8 * scale), pixels=small, colour=soft
    )
    place = (left + width - side - length, middle, length + 8)
    stage.texts.draw(stage.painter, count, place, pixels=small, colour=soft)
    _draw_mix(stage, block, (left + side, top + height - 15 * scale, room))


def _draw_mix(stage: Stage, block: int, place: tuple[float, float, float]) -> None:
    """A bar of the categories inside a block, in the legend's order; filtered ones are left faint."""
    picture, painter = stage.picture, stage.painter
    counts = picture.mix[block - picture.tree.root]
    total = int(counts.sum())
    left, top, width = place
    tall = max(3.0, 6.0 * stage.camera.scale)
    if not total or width < 8:
        return
    painter.setPen(Qt.PenStyle.NoPen)
    for category in np.flatnonzero(counts):
        part = width * int(counts[category]) / total
        colour = picture.colouring.colours[category]
        if int(category) in picture.hidden_categories:
            colour = blend(colour, stage.colours.block, share=DIM)
        painter.setBrush(QColor(colour))
        painter.drawRect(QRectF(left, top, max(part - 1.0, 0.8), tall))
        left += part
