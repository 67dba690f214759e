"""The settings dialog, built from the table of settings. Every change takes effect at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QDialog, QFileDialog, QLabel, QLineEdit, QToolButton, QWidget

from ace_studio.gui.style.icons import stroke_icon
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, WholeBox
from ace_studio.gui.widgets.small import (
    GAP,
    MARGIN,
    FilterField,
    button,
    column,
    fit_screen,
    label,
    quiet,
    row,
    scrolling,
)
from ace_studio.session.kept.settings import SETTINGS, Setting, Value
from ace_studio.session.session import Session


class SettingsDialog(QDialog):
    """One line per setting, in groups; typing words leaves those that contain all of them."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        """Show the present values."""
        super().__init__(parent)
        self.setWindowTitle("Settings")
        self.setProperty("help", "window#settings")
        fit_screen(self, 600, 560)
        self._session, self._theme = session, theme
        self.search = FilterField("Search the settings", "Search the settings")
        self.search.textChanged.connect(self._filter)
        self.nothing = label("No setting contains all of these words.", "dim")
        self.editors: dict[str, QWidget] = {}
        self.resets: dict[str, QToolButton] = {}
        self._lines: dict[str, tuple[QWidget, QLabel, QLabel]] = {}
        self._headings: dict[str, QLabel] = {}
        lines = column(margin=MARGIN, gap=14)
        for setting in SETTINGS.values():
            if setting.group not in self._headings:
                self._headings[setting.group] = label(setting.group, "title")
                lines.addWidget(self._headings[setting.group])
            lines.addWidget(self._line(setting))
        lines.addWidget(self.nothing)
        lines.addStretch(1)
        content = QWidget()
        content.setLayout(lines)
        head = row(self.search)
        head.setContentsMargins(MARGIN, MARGIN, MARGIN, GAP)
        self.setLayout(column(head, scrolling(content), row(None, button("Close", self.accept), margin=MARGIN), gap=0))
        theme.changed.connect(self._restyle)
        self._restyle()
        self._filter("")
        self.search.setFocus()

    def _line(self, setting: Setting) -> QWidget:
        editor = self._editor(setting)
        editor.setAccessibleName(setting.label)
        editor.setAccessibleDescription(setting.help)
        self.editors[setting.key] = editor
        name, words = label(setting.label, "heading"), label(setting.help, "dim")
        name.setBuddy(editor)
        reset = self.resets[setting.key] = QToolButton()
        reset.setAutoRaise(True)
        reset.setToolTip(f"Reset to the default: {_words(setting.default) or 'empty'}")
        reset.setAccessibleName(f"Reset {setting.label} to the default")
        reset.clicked.connect(partial(self._reset, setting))
        reset.setVisible(self._session.settings.get(setting.key) != setting.default)
        kept = reset.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        reset.setSizePolicy(kept)
        line = QWidget()
        if setting.is_path:
            control = row(editor, button("Browse…", partial(self._browse, setting)), reset)
            control.setStretch(0, 1)
        else:
            control = row(editor, reset, None)
        line.setLayout(column(name, control, words, gap=3))
        self._lines[setting.key] = (line, name, words)
        return line

    def _filter(self, text: str) -> None:
        """Show the settings that contain all words, with the words marked."""
        wanted = text.split()
        shown = set()
        for setting in SETTINGS.values():
            line, *labels = self._lines[setting.key]
            texts = (setting.label, setting.help)
            everything = " ".join((setting.group, *texts, *setting.choices)).casefold()
            is_shown = all(word.casefold() in everything for word in wanted)
            line.setVisible(is_shown)
            if is_shown:
                shown.add(setting.group)
                for one, words in zip(labels, texts, strict=True):
                    one.setTextFormat(Qt.TextFormat.RichText if wanted else Qt.TextFormat.PlainText)
                    one.setText(self._marked(words, wanted) if wanted else words)
        for group, heading in self._headings.items():
            heading.setVisible(group in shown)
        self.nothing.setVisible(not shown)

    def _marked(self, text: str, words: list[str]) -> str:
        colours = self._theme.colours
        mark = f'<span style="background: {colours.accent}; color: {colours.on_accent}">'
        pieces = re.split(f"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
        return "".join(f"{mark}{escape(one)}</span>" if at % 2 else escape(one) for at, one in enumerate(pieces))

    def _restyle(self, *_: object) -> None:
        for reset in self.resets.values():
            reset.setIcon(stroke_icon("undo", self._theme.colours.text_dim, self._theme.colours.faded))
        self._filter(self.search.text())

    # --- values ---

    def _editor(self, setting: Setting) -> QWidget:
        editor = self._choice(setting) if setting.choices else _EDITORS[setting.kind](self, setting)
        _show(editor, self._session.settings.get(setting.key))
        return editor

    def _choice(self, setting: Setting) -> QWidget:
        combo = ComboBox()
        for choice in setting.choices:
            combo.addItem(_words(choice), choice)
        combo.currentIndexChanged.connect(lambda _: self._set(setting, combo.currentData()))
        return combo

    def _flag(self, setting: Setting) -> QWidget:
        box = QCheckBox("On")
        box.toggled.connect(lambda on: self._set(setting, on))
        return box

    def _whole(self, setting: Setting) -> QWidget:
        spin = WholeBox()
        spin.setRange(int(setting.low or 0), int(setting.high or 1_000_000))
        spin.setMinimumWidth(110)
        spin.valueChanged.connect(lambda number: self._set(setting, number))
        return spin

    def _number(self, setting: Setting) -> QWidget:
        spin = DecimalBox()
        spin.setRange(setting.low or 0.0, setting.high or 1e6)
        spin.setSingleStep(0.5)
        spin.setMinimumWidth(110)
        spin.valueChanged.connect(lambda number: self._set(setting, number))
        return spin

    def _text(self, setting: Setting) -> QWidget:
        line = QLineEdit()
        line.editingFinished.connect(lambda: self._set(setting, line.text().strip()))
        return line

    def _set(self, setting: Setting, value: Value) -> None:
        reset = self.resets.get(setting.key)
        if reset is not None and self._session.settings.get(setting.key) != value:
            self._session.set_setting(setting.key, value)
            reset.setVisible(value != setting.default)

    def _reset(self, setting: Setting) -> None:
        editor = self.editors[setting.key]
        with quiet(editor):
            _show(editor, setting.default)
        self._set(setting, setting.default)
        editor.setFocus()

    def _browse(self, setting: Setting) -> None:
        line = self.editors[setting.key]
        now = str(self._session.settings.get(setting.key))
        if setting.key == "runs_folder":
            path = QFileDialog.getExistingDirectory(self, setting.label, now)
        else:
            path, _ = QFileDialog.getOpenFileName(self, setting.label, now)
        if path:
            _show(line, path)
            self._set(setting, path)


def _words(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value.replace("-", " ").capitalize() if isinstance(value, str) else f"{value:g}"


def _show(editor: QWidget, value: Value) -> None:
    match editor:
        case ComboBox():
            editor.setCurrentIndex(editor.findData(value))
        case QCheckBox():
            editor.setChecked(bool(value))
        case WholeBox():
            editor.setValue(int(value))
        case DecimalBox():
            editor.setValue(float(value))
        case QLineEdit():
            editor.setText(str(value))


_EDITORS: dict[type, Callable[[SettingsDialog, Setting], QWidget]] = {
    bool: SettingsDialog._flag,
    int: SettingsDialog._whole,
    float: SettingsDialog._number,
    str: SettingsDialog._text,
}
