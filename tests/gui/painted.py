"""Contrast measured from what is painted, by the formula of WCAG 2.2."""

from collections.abc import Iterator

import numpy as np
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListView,
    QPushButton,
    QWidget,
)

TEXT_CONTRAST = 4.5
CONTROL_CONTRAST = 3.0
AROUND = 3
"""Pixels on either side of the edge of a control in which its border is looked for."""


def faint_texts(shown: QWidget) -> set[tuple[str, str, float]]:
    """Kind, text and contrast of what is enabled and stands out less than 4.5 : 1: labels, buttons, items of views."""
    pixels, found = _pixels(shown), set()
    for part in _seen(shown, QLabel, QPushButton, QAbstractItemView):
        for words, place in _items_of(part) if isinstance(part, QAbstractItemView) else [(part.text(), part.rect())]:
            if len(words) < 4 or "<" in words:
                continue
            base = part.viewport() if isinstance(part, QAbstractItemView) else part
            contrast = _most(_inside(pixels, place.translated(base.mapTo(shown, QPoint(0, 0)))))
            if contrast < TEXT_CONTRAST:
                found.add((type(part).__name__, words, round(contrast, 2)))
    return found


def _items_of(view: QAbstractItemView) -> Iterator[tuple[str, QRect]]:
    """Text and place of each enabled item that is in sight, where the view itself paints it."""
    model, sight = view.model(), view.viewport().rect()
    if isinstance(view, QHeaderView) or model is None:
        return
    for at in range(min(model.rowCount(view.rootIndex()), 60)):
        for across in range(1 if isinstance(view, QListView) else model.columnCount(view.rootIndex())):
            index = model.index(at, across, view.rootIndex())
            place, words = view.visualRect(index), str(index.data() or "")
            if words and index.flags() & Qt.ItemFlag.ItemIsEnabled and sight.contains(place) and place.width() > 20:
                yield words, place


def faint_controls(shown: QWidget) -> set[tuple[str, str, float]]:
    """Kind, name and contrast of each enabled field whose edge stands out less than 3 : 1 from what is around it."""
    pixels, found = _pixels(shown), set()
    for part in _seen(shown, QLineEdit, QComboBox, QAbstractSpinBox):
        if isinstance(part.parent(), QComboBox | QAbstractSpinBox):
            continue
        place = QRect(part.mapTo(shown, QPoint(0, 0)), part.size())
        row, left = place.center().y(), place.left()
        if left < AROUND or not 0 <= row < pixels.shape[0]:
            continue
        contrast = _most(pixels[row : row + 1, left - AROUND : left + AROUND])
        if contrast < CONTROL_CONTRAST:
            found.add((type(part).__name__, part.accessibleName(), round(contrast, 2)))
    return found


def _seen(shown: QWidget, *kinds: type[QWidget]) -> Iterator[QWidget]:
    for part in shown.findChildren(QWidget):
        whole = isinstance(part, QAbstractItemView) or part.visibleRegion().boundingRect() == part.rect()
        if isinstance(part, kinds) and part.isVisibleTo(shown) and part.isEnabled() and whole:
            yield part


def _inside(pixels: np.ndarray, place: QRect) -> np.ndarray:
    """What is inside of a place without its edge, a pixel wide."""
    rows, across = slice(max(place.top() + 1, 0), place.bottom()), slice(max(place.left() + 1, 0), place.right())
    return pixels[rows, across]


def _most(colours: np.ndarray) -> float:
    """Contrast between the commonest colour and the one that differs most from it."""
    flat = colours.reshape(-1, 3)
    if not len(flat):
        return np.inf
    kinds, counts = np.unique(flat, axis=0, return_counts=True)
    light = _luminance(kinds)
    ground = light[np.argmax(counts)]
    return float(max((max(one, ground) + 0.05) / (min(one, ground) + 0.05) for one in light))


def _luminance(colours: np.ndarray) -> np.ndarray:
    part = colours / 255.0
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def _pixels(shown: QWidget) -> np.ndarray:
    """Red, green and blue of every pixel of a widget at scale 1."""
    image = shown.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), dtype=np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 4 * image.width()].reshape(image.height(), image.width(), 4)[..., 2::-1].copy()
