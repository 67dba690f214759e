"""The examples and verdicts of A and B in one table: what differs is marked in its cell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QTableView

from ace_studio.gui.panels.shapes.cells import ShapeTable
from ace_studio.gui.panels.shapes.rows import Row, shape_columns
from ace_studio.gui.panels.shapes.table_model import CHIP, ShapesModel
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.differences import beside_text, beside_tip, differs_words
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.gui.words.formatting import NOTHING, plural
from ace_studio.session.comparison.findings import Beside, Change, rows_beside
from ace_studio.session.comparison.sides import NAMES, PinnedPair, PinnedSide

_ONE_SIDED = (Change.ONLY_FIRST, Change.ONLY_SECOND)


class ComparedModel(ShapesModel):
    """The cells of B, with those of A behind them. Read only."""

    def __init__(self, parent: QTableView) -> None:
        super().__init__(parent)
        self.first = ShapesModel(parent)
        """The same rows and columns with what A has there; empty rows where it has none."""
        self.pairs: tuple[Beside[Row], ...] = ()
        self.mark = QColor()
        """The colour of what differs."""
        self._are_known = self._are_traced = False

    def show_sides(self, first: PinnedSide, second: PinnedSide, *, with_sizes: bool) -> None:
        """Show what is known of both. A side without choices has no examples; then the other one is shown alone."""
        recipes = [side.recipe for side in (first, second)]
        self._are_known = all(recipes)
        if recipes[1] is None:
            second = first
        rows = [side.recipe.inputs.rows if side.recipe else None for side in (first, second)]
        found = [side.capture.inputs if side.capture else () for side in (first, second)]
        self._are_traced = all(side.capture is not None for side in (first, second))
        self.pairs = rows_beside(rows[0], rows[1])
        every = [row for each in rows for row in each or ()]
        names = {name for row in every for name in row}
        unseen = {one.name: one for one in (*found[0], *found[1]) if one.name not in names}
        columns = shape_columns(every, (), folded=self.folded) if every else ()
        columns += shape_columns((), tuple(unseen.values()), folded=self.folded)
        columns = tuple(dict.fromkeys(columns))  # a folded group may be in both
        sides = ((self.first, first, 0), (self, second, 1))
        for model, side, at in sides:
            inputs = side.recipe.inputs if side.recipe else None
            chosen: Mapping[str, tuple[int, ...]] = side.recipe.targets.sizes if side.recipe else {}
            padded = [(one.second if at else one.first) or {} for one in self.pairs]
            if not self._are_known:
                padded = [one.shown for one in self.pairs]
            model.fill(
                padded, found[at], inputs.dims if inputs else {}, chosen if with_sizes else None, columns=columns
            )

    def pair_of(self, row: int) -> Beside[Row] | None:
        """The example of a row; None below the examples, and without any."""
        return self.pairs[row] if row < len(self.pairs) else None

    def texts(self, row: int, at: int) -> tuple[str, str]:
        """What the cell says in A and in B: twice the same where there is nothing to compare."""
        pair, column = self.pair_of(row), self.columns[at]
        own = self.text_of(row, column, self.chips[at])
        before = self.first.text_of(row, column, self.first.chips[at])
        if pair is not None and pair.change is Change.ONLY_FIRST:
            return before, before
        if pair is not None and pair.change is Change.ONLY_SECOND:
            return own, own
        is_finding = row in (self.example_rows, self.example_rows + 1) or not self.rows
        if not self._are_known or (is_finding and not self._are_traced):
            shown = own or before
            return shown, shown
        return before, own

    @property
    def differing(self) -> int:
        """How many cells of examples and verdicts differ, an example of one side alone as one."""
        alone = sum(pair.change in _ONE_SIDED for pair in self.pairs)
        cells = ((row, at) for row in range(self.rowCount()) for at in range(len(self.columns)))
        return alone + sum(one != other for one, other in (self.texts(row, at) for row, at in cells))

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Text, tooltip, colour and chip of a cell, with A's where it differs."""
        row, at = index.row(), index.column()
        before, own = self.texts(row, at)
        pair = self.pair_of(row)
        one_sided = pair.change if pair is not None and pair.change in _ONE_SIDED else None
        differs = before != own
        if role == Qt.ItemDataRole.DisplayRole:
            return beside_text(before, own)
        if role == CHIP and self.is_verdict(row):
            chip = self.chips[at] or self.first.chips[at]
            if chip is None or not differs:
                return chip
            return replace(chip, text=beside_text(before, own), mood="unknown")  # in the colour of what differs
        if role == Qt.ItemDataRole.ForegroundRole:
            return QBrush(self.mark) if differs or one_sided else None
        if role == Qt.ItemDataRole.ToolTipRole:
            chip = self.chips[at] if self.is_verdict(row) else None
            tip = chip.tip if chip else differs_words(tr(one_sided)) if one_sided else None
            return "\n".join(part for part in (beside_tip(before, own), tip) if part) if differs else tip
        if role == Qt.ItemDataRole.AccessibleTextRole:
            name = self.columns[at].title
            if differs:
                return f"{name}: {differs_words(beside_tip(before, own).replace(chr(10), ', '))}"
            return f"{name}: {own}, {differs_words(tr(one_sided))}" if one_sided else f"{name}: {own}"
        return super().data(index, role) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Title of a row: the number of the example, and whether one side alone has it."""
        pair = self.pair_of(section) if orientation is Qt.Orientation.Vertical else None
        if pair is None:
            return super().headerData(section, orientation, role)
        is_one_sided = pair.change in _ONE_SIDED
        if role == Qt.ItemDataRole.ForegroundRole and is_one_sided:
            return QBrush(self.mark)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        is_of_first = pair.second is None
        number = sum((one.first if is_of_first else one.second) is not None for one in self.pairs[: section + 1])
        title = tr("example {number}", number=number)
        return f"{title}, {tr(pair.change)}" if is_one_sided else title

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        """Nothing can be edited."""
        return super().flags(index) & ~Qt.ItemFlag.ItemIsEditable


class ComparedTable(ShapeTable):
    """The widget over `ComparedModel`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, ComparedModel)
        self.setAccessibleName(tr("Examples and verdicts of A and B"))

    @property
    def pairs(self) -> ComparedModel:
        """The model."""
        assert isinstance(self._model, ComparedModel)
        return self._model

    def show_pair(self, found: PinnedPair, *, with_sizes: bool) -> None:
        """Show the examples of both sides."""
        self.pairs.mark = QColor(self._chips.colours.warn)
        self.pairs.show_sides(*found.sides, with_sizes=with_sizes)
        self.pairs.headerDataChanged.emit(Qt.Orientation.Vertical, 0, self.pairs.rowCount(QModelIndex()) - 1)
        self.groups.viewport().update()


def compared_words(differing: int, sources: Sequence[str]) -> str:
    """How many cells differ, and where the examples of A and of B come from: once, if that is the same."""
    count = tr("A and B differ in {cells}", cells=plural(differing, "cell")) if differing else tr("No difference")
    if sources[0] == sources[1]:
        return f"{count}. {sources[0]}".rstrip()
    each = (f"{name}: {words or NOTHING}" for name, words in zip(NAMES, sources, strict=True))
    return "  ·  ".join([count, *each])
