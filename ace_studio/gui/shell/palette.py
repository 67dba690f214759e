"""The command palette: type a few letters of what you want, Enter does it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QFrame, QListWidget, QListWidgetItem, QWidget
from shiboken6 import isValid

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, column
from ace_studio.gui.widgets.small import text_field

_SHOWN = 12
_MOVES = frozenset({Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown})


class CommandPalette(QFrame):
    """A field over the window, and the commands that match it, best first. It closes when it loses the focus."""

    def __init__(self, commands: Callable[[], Sequence[tuple[str, QAction, str]]], parent: QWidget) -> None:
        """List these commands: words, action, and why it cannot be done now; asked for again when one changes."""
        super().__init__(parent)
        self.setAccessibleName(tr("Command palette"))
        self.setProperty("role", "palette")
        self.setProperty("help", "keyboard")
        self._ask = commands
        self._commands = commands()
        self._had_focus: QWidget | None = None
        self.field = text_field(tr("Command"), tr("What do you want to do?"))
        self.field.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Commands"))
        self.list.setUniformItemSizes(True)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setLayout(column(self.field, self.list, margin=GAP, gap=CLOSE))
        self.field.textChanged.connect(self._filter)
        self.field.returnPressed.connect(self._do)
        self.field.installEventFilter(self)
        self.list.itemClicked.connect(lambda _: self._do())
        self._filter("")
        later = QTimer(self, interval=0, singleShot=True)
        later.timeout.connect(self._list_anew)
        for _, action, _ in self._commands:
            action.changed.connect(later.start)
        width = min(560, parent.width() - 40)
        self.resize(width, min(380, parent.height() - 80))
        self.move((parent.width() - width) // 2, 70)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def open(self) -> None:
        """Show the palette and take the focus, until it closes."""
        self._had_focus = QApplication.focusWidget()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def _filter(self, text: str) -> None:
        ranked = sorted(
            (rank[0], bool(why), rank[1], at)
            for at, (words, _, why) in enumerate(self._commands)
            if (rank := match_rank(text, words)) is not None
        )
        self.list.clear()
        for *_, at in ranked:
            words, action, why = self._commands[at]
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            item = QListWidgetItem("    ".join(part for part in (words, keys, why and f"({why})") if part))
            if why:
                item.setForeground(self.palette().placeholderText())
            item.setData(Qt.ItemDataRole.UserRole, at)
            self.list.addItem(item)
        if self.list.count():
            self.list.setCurrentRow(0)
        else:
            nothing = QListWidgetItem(tr("No command has these letters in its name"))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(nothing)

    def _list_anew(self) -> None:
        """What can be done has changed while the palette is open; the line that was chosen stays chosen."""
        chosen = self.list.currentItem()
        at = chosen.data(Qt.ItemDataRole.UserRole) if chosen is not None else None
        self._commands = self._ask()
        self._filter(self.field.text())
        rows = range(self.list.count())
        self.list.setCurrentRow(
            next((row for row in rows if self.list.item(row).data(Qt.ItemDataRole.UserRole) == at), 0)
        )

    def _do(self) -> None:
        item = self.list.currentItem()
        if item is not None and item.flags():
            _, action, why = self._commands[item.data(Qt.ItemDataRole.UserRole)]
            if not why:
                self._leave()
                action.trigger()

    def _leave(self) -> None:
        """Close, and give the keyboard back to where it was: commands act on what has it."""
        if self._had_focus is not None and isValid(self._had_focus):
            self._had_focus.setFocus(Qt.FocusReason.PopupFocusReason)
        self.close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Arrow keys walk the list while the field has the keyboard; Esc, or a click elsewhere, ends it."""
        if event.type() == QEvent.Type.FocusOut:
            self.close()
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            # The override comes before the window's own Esc, which would cancel the job.
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self._leave()
            return True
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in _MOVES:
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -_SHOWN}.get(Qt.Key(event.key()), _SHOWN)
            last = self.list.count() - 1
            self.list.setCurrentRow(max(0, min(last, self.list.currentRow() + step)))
            return True
        return super().eventFilter(watched, event)


def match_rank(typed: str, words: str) -> tuple[int, int] | None:
    """Rank of a match: smaller is better, None is no match.

    All letters must occur in order; the words themselves rank before letters spread over them.
    """
    needle, text = typed.lower().strip(), words.lower()
    if not needle:
        return (0, 0)
    at = text.find(needle)
    if at >= 0:
        starts_word = at == 0 or not text[at - 1].isalnum()
        return (0 if starts_word else 1, at)
    place, gaps = -1, 0
    for letter in needle.replace(" ", ""):
        found = text.find(letter, place + 1)
        if found < 0:
            return None
        gaps += found - place - 1
        place = found
    return (2, gaps)
