"""A combo box of words: closed it shows the word alone; open, also what each word means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QSizePolicy, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import fill_combo
from ace_studio.gui.widgets.table_model import AnyIndex

_WHOLE = int(Qt.ItemDataRole.AccessibleTextRole)
_POPUP_MARGIN = 36
"""Frame, padding and scroll bar of the open list."""


class ChoiceBox(ComboBox):
    """A combo box of words and their meanings."""

    def __init__(self, options: Sequence[tuple[str, str]], choose: Callable[[str], object]) -> None:
        """Offer them.

        Args:
            options: Word and meaning; an empty word is shown as its meaning.
            choose: Gets the word.
        """
        super().__init__()
        self._options = tuple(options)
        self._meanings: Mapping[str, str] = {word: meaning for word, meaning in options if word}
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumContentsLength(4)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setItemDelegate(_WholeWords(self))
        self.activated.connect(lambda at: choose(str(self.itemData(at))))

    def show_choice(self, word: str) -> None:
        """Choose a word without a signal. One that is not offered is added."""
        fill_combo(self, [(one or meaning, one) for one, meaning in self._options], word)
        for at in range(self.count()):
            word_at = str(self.itemData(at))
            self.setItemData(at, self._whole(self.itemText(at), word_at), _WHOLE)

    def meaning(self) -> str:
        """What the chosen word means; may be empty."""
        return self._meanings.get(str(self.currentData()), "")

    def showPopup(self) -> None:  # noqa: N802 - Qt's name
        """Open the list as wide as its longest row."""
        self.fit_list()
        super().showPopup()

    def fit_list(self) -> None:
        """Set the width of the open list to that of its longest row."""
        rows = (str(self.itemData(at, _WHOLE)) for at in range(self.count()))
        widest = max((self.fontMetrics().horizontalAdvance(text) for text in rows), default=0)
        self.view().setMinimumWidth(widest + _POPUP_MARGIN)

    def _whole(self, text: str, word: str) -> str:
        meaning = self._meanings.get(word, "")
        return f"{text}: {meaning}" if meaning else text


class _WholeWords(QStyledItemDelegate):
    """Paints rows of the open list with their meaning."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)

    def initStyleOption(self, option: QStyleOptionViewItem, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Show word and meaning instead of the word alone."""
        super().initStyleOption(option, index)
        whole = index.data(_WHOLE)
        if whole:
            option.text = str(whole)
