"""The details panel: everything known of the selected op, or sums over several."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QTreeWidget, QTreeWidgetItem

from ace_studio.gui.ops.details import Detail, Group, as_text, details_of
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.layouts import box, column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, ElidedLabel, allow, button, on_key, tip_text
from ace_studio.gui.words.formatting import NOTHING
from ace_studio.gui.words.steps import why_not
from ace_studio.records.spreadsheet import spreadsheet_text
from ace_studio.session.comparison.sides import NAMES, PinnedPair
from ace_studio.session.document import Document, Part, Selection
from ace_studio.session.session import Session

_OP = int(Qt.ItemDataRole.UserRole)


class DetailsPanel(Panel):
    """A tree of two columns. A line about another op leads to it; everything can be copied."""

    title = "Details"
    shows = frozenset({Part.GRAPH, Part.RUNS, Part.RECIPE, Part.SELECTION, Part.ACTIVITY, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.groups: tuple[Group, ...] = ()
        self._folded: set[str] = set()
        """Titles of the groups that the user folded."""
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(tr("Details of the selected ops"))
        self.tree.setHeaderHidden(True)
        self.tree.setColumnCount(2)
        self.tree.setRootIsDecorated(True)
        self.tree.setIndentation(12)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.tree.header().setStretchLastSection(True)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        self.tree.header().resizeSection(0, self.fontMetrics().horizontalAdvance(tr("not supported by")) + 30)
        self.tree.itemActivated.connect(lambda item, _: self._go_to(item))
        self.tree.itemCollapsed.connect(lambda item: self._folded.add(item.text(0)))
        self.tree.itemExpanded.connect(lambda item: self._folded.discard(item.text(0)))
        on_key(self.tree, QKeySequence.StandardKey.Copy, self.copy)  # Qt copies a cell
        self.about = ElidedLabel()
        self.copy_button = button(
            tr("Copy"), self.copy_all, tip=tr("Copy everything that is shown (Ctrl+C: selected lines)")
        )
        self.values_button = button(tr("Show values"), self._show_values)
        head = row(self.about, self.values_button, self.copy_button, margin=GAP, stretch=0)
        self.show_pages("table", box(column(head, self.tree, gap=0)))
        self._empty.say(tr("Nothing selected"), tr("Select an op or a block in the graph to see everything about it."))
        self.setFocusProxy(self.tree)

    def update_from(self, document: Document) -> None:
        """Show the selected ops."""
        why = why_not(document) or ("" if len(document.selection.op_ids) == 1 else tr("Select a single op"))
        allow(self.values_button, why, tr("What the op gives for an example, and its weights: float and compressed"))
        if not self.has_changed(
            document.graph, document.selection, document.recipe, document.runs, document.result, document.values,
            document.sensitivity, document.capture, document.comparison,
        ):  # fmt: skip
            return
        is_compared = document.comparison is not None
        groups = details_beside(document, details_of) if is_compared else details_of(document)
        self._pages.setCurrentIndex(1 if groups else 0)
        if groups == self.groups:
            return
        self.groups = groups
        folded = set(self._folded)
        self.tree.clear()
        for group in groups:
            heading = QTreeWidgetItem([group.title])
            self.tree.addTopLevelItem(heading)
            heading.setFirstColumnSpanned(True)
            for line in group.lines:
                item = QTreeWidgetItem([line.name, line.value])
                leads = tr("{value}\nDouble-click, or press Enter, to go there", value=line.value)
                item.setToolTip(1, tip_text(leads if line.op_id else line.value))
                item.setData(0, _OP, line.op_id)
                heading.addChild(item)
            heading.setExpanded(group.title not in folded)
        self._folded = folded
        op_ids = document.selection.op_ids
        self.about.setText(
            "" if not op_ids else op_ids[0] if len(op_ids) == 1 else tr("{count} selected", count=len(op_ids))
        )

    def _show_values(self) -> None:
        """Ask for the values; the chart shows them when they are there."""
        self.session.jobs.show_values(self.session.document.selection.op_ids[0])
        self.panel_wanted.emit("charts")

    def copy(self) -> None:
        """Copy the selected lines."""
        chosen = [item for item in self.tree.selectedItems() if item.parent() is not None]
        if chosen:
            lines = ((item.text(0), item.text(1)) for item in chosen)
            QApplication.clipboard().setText(spreadsheet_text(lines, separator="\t").rstrip("\n"))

    def copy_all(self) -> None:
        """Copy everything that is shown."""
        QApplication.clipboard().setText(as_text(self.groups))

    def _go_to(self, item: QTreeWidgetItem) -> None:
        if item.data(0, _OP):
            self.session.view.select((item.data(0, _OP),))


def details_beside(document: Document, details_of: Callable[[Document], tuple[Group, ...]]) -> tuple[Group, ...]:
    """The groups of both sides about the selected ops. ``details_of`` gives those of one."""
    found = document.comparison
    if found is None or found.merged is None:
        return ()
    first, second = (details_of(_document_of(document, found, side)) for side in (0, 1))
    titles = dict.fromkeys(group.title for group in (*first, *second))
    lines = [{group.title: group.lines for group in groups} for groups in (first, second)]
    return tuple(Group(title, tuple(_beside(*(side.get(title, ()) for side in lines)))) for title in titles)


def _document_of(document: Document, found: PinnedPair, side: int) -> Document:
    """One side as a document of its own, with its own ids and the selected ops."""
    own, merged = found.sides[side], found.merged
    if own.graph is None or merged is None:
        return replace(document, comparison=None, graph=None)
    op_ids = merged.ids(document.selection.op_ids)[side]
    run = found.partners(document.selection.run)[side]
    at = None if run is None else next(at for at, each in enumerate(found.runs) if each is run) - side * found.run_count
    return replace(
        document,
        comparison=None,
        graph=own.graph,
        recipe=own.recipe or document.recipe,
        runs=own.result.runs if own.result else (),
        result=own.result,
        selection=Selection(op_ids=op_ids, run=at),
    )


def _beside(first: Sequence[Detail], second: Sequence[Detail]) -> Iterator[Detail]:
    one, other = _by_key(first), _by_key(second)
    for key in {**one, **other}:
        mine, theirs = one.get(key), other.get(key)
        if mine is not None and theirs is not None and mine.value == theirs.value:
            yield theirs
        else:
            for at, (name, line) in enumerate(zip(NAMES, (mine, theirs), strict=True)):
                yield Detail("" if at else key[0], f"{name}: {line.value if line else NOTHING}")


def _by_key(lines: Sequence[Detail]) -> dict[tuple[str, int], Detail]:
    """Name of a line, and how many lines of that name come before it -> the line."""
    found: dict[tuple[str, int], Detail] = {}
    for line in lines:
        found[line.name, sum(name == line.name for name, _ in found)] = line
    return found
