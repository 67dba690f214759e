"""What holds for everything in the window, checked in every panel, chart and dialog."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)

from tests.gui.touring import tour


def turn_wheel(widget: QWidget) -> None:
    """Turn the wheel by one notch over a widget."""
    place, keys = QPointF(widget.rect().center()), Qt.KeyboardModifier.NoModifier
    buttons, phase = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(
        place, QPointF(widget.mapToGlobal(place)), QPoint(), QPoint(0, -120), buttons, keys, phase, False
    )
    QApplication.sendEvent(widget, event)


def value_of(field: QWidget) -> object:
    if isinstance(field, QComboBox):
        return field.currentIndex()
    return field.text() if isinstance(field, QAbstractSpinBox) else field.value()


def test_the_wheel_over_any_field_of_any_panel_or_dialog_changes_no_value(desk):
    desk.ran()
    before, changed, seen = desk.document.recipe, [], set()
    for place, widget in tour(desk):
        for field in [
            *widget.findChildren(QComboBox),
            *widget.findChildren(QAbstractSpinBox),
            *widget.findChildren(QAbstractSlider),
        ]:
            if isinstance(field, QScrollBar):
                continue
            value = value_of(field)
            turn_wheel(field)
            if value_of(field) != value:
                changed.append((place, field.accessibleName()))
            seen.add(type(field).__name__)
    assert changed == []
    assert {"ComboBox", "WholeBox", "DecimalBox"} <= seen
    assert desk.document.recipe == before


def test_everything_that_takes_the_keyboard_has_a_name(desk):
    desk.ran()
    kinds = (QAbstractButton, QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit)
    nameless = set()
    for place, widget in tour(desk):
        for field in widget.findChildren(QWidget):
            inner = isinstance(field.parent(), QComboBox | QAbstractSpinBox | QAbstractItemView)
            takes_keyboard = field.focusPolicy() & Qt.FocusPolicy.TabFocus and field.isVisibleTo(widget)
            if isinstance(field, kinds) and takes_keyboard and not inner and field.focusProxy() is None:
                words = field.text() if isinstance(field, QAbstractButton) else ""
                if not (field.accessibleName() or words):
                    nameless.add((place, type(field).__name__, field.objectName()))
    assert nameless == set()
