"""The settings dialog, built from the table of settings. Every change takes effect at once."""

import re
from dataclasses import replace
from functools import partial
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QDialog, QFileDialog, QLabel, QLineEdit, QToolButton, QWidget

from ace_studio.gui.style import Theme, stroke_icon, tr
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, WholeBox
from ace_studio.gui.widgets.layouts import GAP, MARGIN, TIGHT, box, clear_layout, column, row, scrolling
from ace_studio.gui.widgets.small import (
    ElidedLabel,
    FilterField,
    button,
    fit_screen,
    label,
    quiet,
    show_words,
    tool_button,
)
from ace_studio.gui.words.formatting import bytes_text
from ace_studio.gui.words.problems import problem_text
from ace_studio.jobs.engine_packs import find_packs, remove
from ace_studio.records.errors import AceError
from ace_studio.session.document import Document, Part
from ace_studio.session.kept.settings import SETTINGS, Setting, Value
from ace_studio.session.session import Session

_PACKS = Setting(
    key="packs",
    group="Engine",
    label="Engine packs",
    help="Each is a Python with torch. If no Python is named above, the newest is used by an installed program.",
    default="",
)
"""A line of the dialog that is no setting."""


class SettingsDialog(QDialog):
    """One line per setting, in groups; typing words leaves those that contain all of them."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Settings"))
        self.setProperty("help", "window#settings")
        fit_screen(self, 600, 560)
        self._session, self._theme = session, theme
        rows = [*SETTINGS.values()]
        rows.insert(1 + max(at for at, row in enumerate(rows) if row.group == _PACKS.group), _PACKS)
        self._settings = [replace(row, group=tr(row.group), label=tr(row.label), help=tr(row.help)) for row in rows]
        self.search = FilterField(tr("Search the settings"), tr("Search the settings"))
        self.search.textChanged.connect(self._filter)
        self.nothing = label(tr("No setting contains all of these words."), "dim")
        self.editors: dict[str, QWidget] = {}
        self.resets: dict[str, QToolButton] = {}
        self._lines: dict[str, tuple[QWidget, QLabel, QLabel]] = {}
        self._headings: dict[str, QLabel] = {}
        lines = column(margin=MARGIN, gap=MARGIN)
        for setting in self._settings:
            if setting.group not in self._headings:
                self._headings[setting.group] = label(setting.group, "title")
                lines.addWidget(self._headings[setting.group])
            lines.addWidget(self._line(setting))
        lines.addWidget(self.nothing)
        lines.addStretch(1)
        content = box(lines)
        head = row(self.search, margin=(MARGIN, MARGIN, MARGIN, GAP))
        self.setLayout(
            column(head, scrolling(content), row(None, button(tr("Close"), self.accept), margin=MARGIN), gap=0)
        )
        unsubscribe = session.subscribe(self._follow)
        self.finished.connect(lambda _: unsubscribe())
        theme.changed.connect(self._restyle)
        self._restyle()
        self._filter("")
        self.search.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Return ends what is typed; Qt would press a button for it, the first one that opens a file dialog."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)

    def _line(self, setting: Setting) -> QWidget:
        name, words = label(setting.label, "heading"), label(setting.help, "dim")
        if setting.key == _PACKS.key:
            line = box(column(name, PackList(self._session), words, gap=TIGHT))
            self._lines[setting.key] = (line, name, words)
            return line
        editor = self._editor(setting)
        editor.setAccessibleName(setting.label)
        editor.setAccessibleDescription(setting.help)
        self.editors[setting.key] = editor
        name.setBuddy(editor)
        reset = self.resets[setting.key] = tool_button(
            tr("Reset {label} to the default", label=setting.label), partial(self._reset, setting),
            tip=tr("Reset to the default: {value}", value=_words(setting.default) or tr("empty")),
        )  # fmt: skip
        reset.setVisible(self._session.settings.get(setting.key) != setting.default)
        kept = reset.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        reset.setSizePolicy(kept)
        if setting.is_path:
            control = row(editor, button(tr("Browse…"), partial(self._browse, setting)), reset, stretch=0)
        else:
            control = row(editor, reset, None)
        line = box(column(name, control, words, gap=TIGHT))
        self._lines[setting.key] = (line, name, words)
        return line

    def _filter(self, text: str) -> None:
        """Show the settings that contain all words, with the words marked."""
        wanted = text.split()
        shown = set()
        for setting in self._settings:
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

    def _follow(self, _document: Document, parts: frozenset[Part]) -> None:
        """Show what was set here or elsewhere; the field that has the keyboard keeps what is typed."""
        for key, editor in self.editors.items() if Part.SETTINGS in parts else ():
            value = self._session.settings.get(key)
            self.resets[key].setVisible(value != SETTINGS[key].default)
            if not editor.hasFocus():
                _show(editor, value)

    def _editor(self, setting: Setting) -> QWidget:
        """A field that shows the value and sets what is chosen."""
        take = partial(self._set, setting)
        editor: ComboBox | QCheckBox | WholeBox | DecimalBox | QLineEdit
        if setting.choices:
            editor = combo = ComboBox(options=[(tr(_words(choice)), choice) for choice in setting.choices])
            combo.currentIndexChanged.connect(lambda _: take(combo.currentData()))
        elif setting.kind is bool:
            editor = QCheckBox(tr("On"))
            editor.toggled.connect(take)
        elif setting.kind is int:
            editor = WholeBox(int(setting.low or 0), int(setting.high or 1_000_000), minimumWidth=110)
            editor.valueChanged.connect(take)
        elif setting.kind is float:
            editor = DecimalBox(setting.low or 0.0, setting.high or 1e6, singleStep=0.5, minimumWidth=110)
            editor.valueChanged.connect(take)
        else:
            editor = line = QLineEdit()
            line.editingFinished.connect(lambda: take(line.text().strip()))
        _show(editor, self._session.settings.get(setting.key))
        return editor

    def _set(self, setting: Setting, value: Value) -> None:
        if self._session.settings.get(setting.key) != value:
            self._session.set_setting(setting.key, value)

    def _reset(self, setting: Setting) -> None:
        self._set(setting, setting.default)
        self.editors[setting.key].setFocus()

    def _browse(self, setting: Setting) -> None:
        now = str(self._session.settings.get(setting.key))
        if setting.key == "runs_folder":
            path = QFileDialog.getExistingDirectory(self, setting.label, now)
        else:
            as_named = QFileDialog.Option.DontResolveSymlinks  # the Python of an environment is a link
            path, _ = QFileDialog.getOpenFileName(self, setting.label, now, options=as_named)
        if path:
            self._set(setting, path)


def _words(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value.replace("-", " ").capitalize() if isinstance(value, str) else f"{value:g}"


def _show(editor: QWidget, value: Value) -> None:
    with quiet(editor):
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


class PackList(QWidget):
    """A line per installed pack; the user's own can be removed."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._lines, self._fault = column(gap=TIGHT), label("", "bad")
        self.setLayout(column(self._lines, self._fault, gap=TIGHT))
        self._fill()

    def _fill(self, fault: str = "") -> None:
        clear_layout(self._lines)
        show_words(self._fault, fault)
        packs, used_python = find_packs(), self._session.settings.interpreter(self._session.document.folder)
        for pack in packs:
            used = tr("in use") if pack.python == used_python else ""
            place = tr("beside the program") if pack.is_portable else ""
            words = ", ".join(filter(None, (pack.name, bytes_text(pack.bytes), place, pack.fault or used)))
            away = button(tr("Remove"), partial(self._remove, pack.name), tip=pack.folder)
            away.setAccessibleName(tr("Remove {name}", name=pack.name))
            away.setVisible(not pack.is_portable)
            self._lines.addWidget(box(row(ElidedLabel(words), away, stretch=0)))
        if not packs:
            self._lines.addWidget(label(tr("No engine pack is installed."), "dim"))

    def _remove(self, name: str) -> None:
        try:
            remove(name)
        except AceError as error:
            self._fill(problem_text(error.problem))
        else:
            self._fill()
