"""The settings dialog, built from the table of settings. Every change takes effect at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QWidget,
)

from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, WholeBox
from ace_studio.gui.widgets.small import MARGIN, button, column, fit_screen, label, row, scrolling
from ace_studio.session.kept.settings import SETTINGS, Setting, Value
from ace_studio.session.session import Session


class SettingsDialog(QDialog):
    """One line per setting."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        """Show the present values."""
        super().__init__(parent)
        self.setWindowTitle("Settings")
        self.setProperty("help", "window#settings")
        fit_screen(self, 560, 520)
        self._session = session
        self.editors: dict[str, QWidget] = {}
        lines = []
        for setting in SETTINGS.values():
            editor = self._editor(setting)
            editor.setAccessibleName(setting.label)
            editor.setAccessibleDescription(setting.help)
            self.editors[setting.key] = editor
            name = label(setting.label, "heading")
            name.setBuddy(editor)
            control = row(editor, None)
            if setting.is_path:
                control = row(editor, button("Browse…", partial(self._browse, editor)))
                control.setStretch(0, 1)
            lines.append(column(name, control, label(setting.help, "dim"), gap=3))
        content = QWidget()
        content.setLayout(column(*lines, None, margin=MARGIN, gap=14))
        self.setLayout(column(scrolling(content), row(None, button("Close", self.accept), margin=MARGIN), gap=0))

    def _editor(self, setting: Setting) -> QWidget:
        value = self._session.settings.get(setting.key)
        if setting.choices:
            return self._choice(setting, str(value))
        return _EDITORS[setting.kind](self, setting, value)

    def _choice(self, setting: Setting, value: str) -> QWidget:
        combo = ComboBox()
        for choice in setting.choices:
            combo.addItem(choice.replace("-", " ").capitalize(), choice)
        combo.setCurrentIndex(setting.choices.index(value))
        combo.currentIndexChanged.connect(lambda _: self._set(setting, combo.currentData()))
        return combo

    def _flag(self, setting: Setting, value: Value) -> QWidget:
        box = QCheckBox("On")
        box.setChecked(bool(value))
        box.toggled.connect(lambda on: self._set(setting, on))
        return box

    def _whole(self, setting: Setting, value: Value) -> QWidget:
        spin = WholeBox()
        spin.setRange(int(setting.low or 0), int(setting.high or 1_000_000))
        spin.setValue(int(value))
        spin.setMinimumWidth(110)
        spin.valueChanged.connect(lambda number: self._set(setting, number))
        return spin

    def _number(self, setting: Setting, value: Value) -> QWidget:
        spin = DecimalBox()
        spin.setRange(setting.low or 0.0, setting.high or 1e6)
        spin.setSingleStep(0.5)
        spin.setValue(float(value))
        spin.setMinimumWidth(110)
        spin.valueChanged.connect(lambda number: self._set(setting, number))
        return spin

    def _text(self, setting: Setting, value: Value) -> QWidget:
        line = QLineEdit(str(value))
        line.editingFinished.connect(lambda: self._set(setting, line.text().strip()))
        return line

    def _set(self, setting: Setting, value: Value) -> None:
        if self._session.settings.get(setting.key) != value:
            self._session.set_setting(setting.key, value)

    def _browse(self, line: QWidget) -> None:
        if not isinstance(line, QLineEdit):
            return
        key = next(key for key, editor in self.editors.items() if editor is line)
        if key == "runs_folder":
            path = QFileDialog.getExistingDirectory(self, SETTINGS[key].label, line.text())
        else:
            path, _ = QFileDialog.getOpenFileName(self, SETTINGS[key].label, line.text())
        if path:
            line.setText(path)
            self._set(SETTINGS[key], path)


_EDITORS: dict[type, Callable[[SettingsDialog, Setting, Value], QWidget]] = {
    bool: SettingsDialog._flag,
    int: SettingsDialog._whole,
    float: SettingsDialog._number,
    str: SettingsDialog._text,
}
