"""Which precision feeds which: a matrix of producers and consumers. A click shows these edges in the graph."""

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.graph_view.colours import blend, text_on
from ace_studio.gui.ops.facts import Transition, fates_of, op_facts, running_precisions, selected_run, transitions
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, column, row
from ace_studio.gui.widgets.small import ElidedLabel, label, quiet
from ace_studio.gui.words.formatting import plural
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.document import Document, EdgeChoice
from ace_studio.session.session import Session

_ORDER = {str(each): at for at, each in enumerate(Precision)}


def precisions_of(document: Document, which: str) -> Mapping[str, str]:
    """Op id -> precision, ``planned`` or ``actual``; empty if it is not known."""
    run, graph = selected_run(document), document.graph
    if which == "planned":
        return op_facts(document).planned
    if run is None or graph is None:
        return {}
    return running_precisions(fates_of(graph, run), run)


class Transitions(ChartView):
    """Rows feed columns."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.found: dict[tuple[int, int], Transition] = {}
        self._asked: tuple[object, ...] = ()
        offered = ((tr("actual, of the selected run"), "actual"), (tr("planned"), "planned"))
        self.which = ComboBox(tr("Planned or actual"), offered, chosen=self.draw_again)
        self._note = ElidedLabel(role="dim")
        tools = row(
            label(tr("Precisions"), "dim", wrap=False),
            self.which,
            self._note,
            stretch=2,
            margin=(GAP, CLOSE, GAP, CLOSE),
        )
        self.table = QTableWidget()
        self.table.setAccessibleName(tr("Precision changes: rows feed columns"))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setMinimumSectionSize(86)
        self.table.currentCellChanged.connect(lambda *_: self._select())
        self.table.cellClicked.connect(lambda *_: self._select())
        self.setLayout(column(tools, self.table, gap=0))

    def missing(self, document: Document) -> str:
        """Needs a graph."""
        return "" if document.graph is not None else tr("Trace the model first.")

    def update_from(self, document: Document) -> None:
        """Fill the matrix."""
        graph = document.graph
        if graph is None:
            return
        which = str(self.which.currentData())
        precisions = precisions_of(document, which)
        if which == "actual" and not precisions:
            self._note.setText(tr("The selected run does not report actual precisions: these are the planned ones"))
            precisions = precisions_of(document, "planned")
        else:
            self._note.setText("")
        wanted = (graph, tuple(precisions.items()), self.colours)
        if self._asked == wanted:
            return
        self._asked = wanted
        found = transitions(graph, precisions)
        with quiet(self.table):
            self._fill(found)
        changes = sum(one.edges for one in found if one.source != one.target)
        if not self._note.text():
            total = sum(one.edges for one in found)
            at, edges = plural(changes, "change"), plural(total, "edge")
            self._note.setText(tr("{changes} of precision at {edges}; a click shows them", changes=at, edges=edges))

    def figures(self) -> Iterator[Sequence[object]]:
        """A row per cell that has edges."""
        yield "from", "to", "edges"
        yield from ((one.source, one.target, one.edges) for one in self.found.values())

    def _fill(self, found: Sequence[Transition]) -> None:
        names = sorted(
            {*(one.source for one in found), *(one.target for one in found)}, key=lambda n: _ORDER.get(n, 99)
        )
        self.table.clear()
        self.table.setRowCount(len(names))
        self.table.setColumnCount(len(names))
        self.table.setHorizontalHeaderLabels([f"→ {name}" for name in names])
        self.table.setVerticalHeaderLabels(names)
        self.found = {(names.index(one.source), names.index(one.target)): one for one in found}
        top = max((one.edges for one in found), default=1)
        for at in range(len(names)):
            for to in range(len(names)):
                self.table.setItem(at, to, self._cell(self.found.get((at, to)), names[at], names[to], top))

    def _cell(self, one: Transition | None, source: str, target: str, top: int) -> QTableWidgetItem:
        item = QTableWidgetItem(str(one.edges) if one else "")
        item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
        count = one.edges if one else 0
        item.setToolTip(
            tr("{edges} from {source} to {target}", edges=plural(count, "edge"), source=source, target=target)
        )
        item.setData(
            int(Qt.ItemDataRole.AccessibleTextRole),
            tr("{count} edges from {source} to {target}", count=count, source=source, target=target),
        )
        if one is not None:
            strong = self.colours.warn if source != target else self.colours.accent
            fill = blend(strong, self.colours.surface, share=0.15 + 0.5 * one.edges / top)
            item.setBackground(QBrush(QColor(fill)))
            item.setForeground(QBrush(QColor(text_on(fill))))
        return item

    def _select(self) -> None:
        one = self.found.get((self.table.currentRow(), self.table.currentColumn()))
        if one is not None:
            words = (
                tr("from {source} to {target}", source=one.source, target=one.target)
                if one.source != one.target
                else tr("within {source}", source=one.source)
            )
            self.session.view.look_at_edges(EdgeChoice(edges=one.pairs, words=words))

    def restyle(self, colours: Colours) -> None:
        """Use another theme."""
        super().restyle(colours)
        self._asked = ()
