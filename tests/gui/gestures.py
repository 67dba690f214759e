"""Gestures that several tests make."""

from __future__ import annotations

from PySide6.QtCore import Qt

LEFT = Qt.MouseButton.LeftButton


def choose(desk, combo, text):
    """Choose a row of a combo box by the keyboard, as a person would."""
    combo.setCurrentIndex(combo.findText(text))
    combo.activated.emit(combo.currentIndex())
    desk.settle()
