"""The examples that a run does worst on, as a table."""

from collections.abc import Iterator, Sequence

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.charts.points import run_names
from ace_studio.gui.style import Colours, number, tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, column
from ace_studio.gui.widgets.small import label
from ace_studio.gui.widgets.table_look import plain_table, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import NOTHING, decibel_text
from ace_studio.session.document import Document
from ace_studio.session.session import Session


class WorstSamples(ChartView):
    """The worst samples of the selected run, or of all runs if none is selected."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.model = ColumnsModel(self)
        self.table = plain_table(self.model, tr("Worst samples"))
        self._note = label("", "dim")
        self._note.setContentsMargins(GAP, CLOSE, GAP, CLOSE)
        self.setLayout(column(self._note, self.table, gap=0))

    def missing(self, document: Document) -> str:
        """Needs a result with samples."""
        found = document.result is not None and document.result.worst
        return "" if found else tr("After a run, the examples that lose most are listed here.")

    def update_from(self, document: Document) -> None:
        """Fill the table."""
        worst = document.result.worst if document.result else ()
        wanted = document.selection.run
        kept = [one for one in worst if one.run == wanted] or list(worst)
        names = run_names(document)
        columns = [
            Column(title="run", values=[names[one.run] if one.run < len(names) else "" for one in kept], width=150),
            Column(title="sample", values=[one.sample for one in kept], is_number=True, width=70,
                   tip="Counted from 0"),
            Column(title="of", values=[one.source for one in kept], width=90),
            Column(title="error", values=[one.error for one in kept], text=lambda value: number(value, ".4g"),
                   is_number=True, width=90,
                   tip="What the metric loses on it, or the energy of the error over that of the outputs"),
            Column(title="SQNR", values=[one.sqnr_db for one in kept], text=decibel_text, is_number=True, width=80),
            Column(title="label", values=[one.label or NOTHING for one in kept], width=140),
        ]  # fmt: skip
        show_columns(self.table, self.model, columns)
        is_one = any(one.run == wanted for one in worst)
        self._note.setText(
            tr("Of the selected run, the worst first") if is_one else tr("Of all runs, the worst of each first")
        )

    def figures(self) -> Iterator[Sequence[object]]:
        """The table."""
        return self.model.figures()
