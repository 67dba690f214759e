"""What pruning, improved rounding and fine-tuning changed in the weights, as tables."""

from collections.abc import Callable, Iterator, Sequence

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.style import Colours, number, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, column, row
from ace_studio.gui.widgets.small import allow, button, label
from ace_studio.gui.widgets.table_look import plain_table, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import (
    bytes_text,
    count_text,
    decibel_text,
    metric_text,
    plural,
    seconds_text,
    shape_text,
)
from ace_studio.gui.words.steps import why_not
from ace_studio.records.recipes.recipe import PruneMethod
from ace_studio.records.results import Improvement
from ace_studio.records.results.finetuning import FinetuneReport
from ace_studio.records.results.pruning import PruningReport
from ace_studio.session.document import Document
from ace_studio.session.session import Session


def pruning_of(document: Document) -> PruningReport | None:
    """The report of the last preview, else of the last run."""
    if document.pruning is not None:
        return document.pruning
    return document.result.pruning if document.result is not None else None


class WeightWork(ChartView):
    """One table at a time. A row of a pruned layer selects its ops."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        offered = [(words, each) for each, (words, _) in _TABLES.items()]
        self.which = ComboBox(tr("Changes of the weights"), offered, chosen=self.draw_again)
        self.preview_button = button(tr("Preview pruning"), session.jobs.preview_pruning)
        self._note = label("", "dim")
        tools = row(self.which, self.preview_button, self._note, stretch=2, margin=(GAP, CLOSE, GAP, CLOSE))
        self.model = ColumnsModel(self)
        self.table = plain_table(self.model, tr("Changes of the weights"))
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._select())
        self.setLayout(column(tools, self.table, gap=0))

    def update_from(self, document: Document) -> None:
        """Fill the table."""
        columns, words = _TABLES[str(self.which.currentData())][1](document)
        show_columns(self.table, self.model, columns)
        self._note.setText(words)
        is_pruning = document.recipe.prune.method is not PruneMethod.NONE
        why = why_not(document) or ("" if is_pruning else tr("Choose what to prune in the plan first"))
        about = tr("Prune a copy and show what is removed and what that costs; nothing is built")
        allow(self.preview_button, why, about)
        self.preview_button.setVisible(self.which.currentData() == "pruning")

    def figures(self) -> Iterator[Sequence[object]]:
        """The table."""
        return self.model.figures()

    def _select(self) -> None:
        graph, report = self.session.document.graph, pruning_of(self.session.document)
        rows = self.table.selectionModel().selectedRows()
        if graph is None or report is None or not rows or self.which.currentData() != "pruning":
            return
        path = report.layers[self.model.source_row(rows[0].row())].module
        self.session.view.select([graph.op_id[at] for at in graph.op_rows() if graph.module[at] == path])


def _pruning_columns(document: Document) -> tuple[list[Column], str]:
    report = pruning_of(document)
    layers = report.layers if report is not None else ()
    columns = [
        Column(title="layer", values=[one.module for one in layers], width=190),
        Column(title="type", values=[one.type for one in layers], width=90),
        Column(title="weight before", values=[one.shape_before for one in layers], text=shape_text, width=130),
        Column(title="after", values=[one.shape_after for one in layers], text=shape_text, width=130),
        Column(title="weights kept", values=[_share(one.weights_after, one.weights_before) for one in layers],
               text=_percent, is_number=True, width=96),
        Column(title="MACs kept", values=[_share(one.macs_after, one.macs_before) for one in layers], text=_percent,
               is_number=True, width=88),
        Column(title="SQNR", values=[one.sqnr_db for one in layers], text=decibel_text, is_number=True, width=78,
               tip="Of the outputs if only this layer is pruned"),
    ]  # fmt: skip
    return columns, _pruning_words(report, document)


def _pruning_words(report: PruningReport | None, document: Document) -> str:
    choice = document.recipe.prune
    if report is None:
        is_chosen = choice.method is not PruneMethod.NONE
        return tr("Nothing was pruned yet") if is_chosen else tr("Choose what to prune in the plan first")
    asked = choice.method, choice.amount, choice.importance
    if document.pruning is None:
        of = tr("The run")
    else:
        is_present = (report.method, report.amount, report.importance) == asked
        of = tr("Preview") if is_present else tr("Preview of earlier choices")
    parts = [
        f"{of}: {report.method}",
        _metric_words(report),
        f"{tr('parameters')} {count_text(report.parameters_before)} → {count_text(report.parameters_after)}",
        f"MACs {count_text(report.macs_before)} → {count_text(report.macs_after)}",
        f"{bytes_text(report.bytes_before)} → {bytes_text(report.bytes_after)}",
        f"SQNR {decibel_text(report.sqnr_db)}" if report.sqnr_db is not None else "",
        tr("{layers} kept whole", layers=plural(len(report.kept), "layer")) if report.kept else "",
        report.speed,
    ]
    return "  ·  ".join(part for part in parts if part)


def _metric_words(report: PruningReport) -> str:
    if report.metric_before is None or report.metric_after is None:
        return ""
    return tr(
        "metric {metric} → {metric2}",
        metric=metric_text(report.metric_before),
        metric2=metric_text(report.metric_after),
    )


def _improvement_columns(document: Document) -> tuple[list[Column], str]:
    found: Sequence[Improvement] = document.result.improvements if document.result is not None else ()
    columns = [
        Column(title="method", values=[one.method for one in found], width=120),
        Column(title="for", values=[one.precision for one in found], width=100),
        Column(title="before", values=[one.before_db for one in found], text=decibel_text, is_number=True, width=80,
               tip="Fidelity of the simulated plan, on examples that the method did not see"),
        Column(title="after", values=[one.after_db for one in found], text=decibel_text, is_number=True, width=80),
        Column(title="kept", values=[tr("yes") if one.kept else tr("no") for one in found], width=60),
        Column(title="ops", values=[one.ops for one in found], is_number=True, width=56),
        Column(title="took", values=[one.seconds for one in found], text=seconds_text, is_number=True, width=70),
        Column(title="why", values=[one.reason for one in found], width=420, tips=lambda at: found[at].reason),
    ]  # fmt: skip
    kept = sum(one.kept for one in found)
    return columns, tr("{kept} of {count} helped and were kept", kept=kept, count=len(found)) if found else tr(
        "No method was tried: see the plan"
    )


def _finetune_columns(document: Document) -> tuple[list[Column], str]:
    report = document.result.finetune if document.result is not None else None
    history = report.history if report is not None else ()
    columns = [
        Column(title="epoch", values=[one.epoch for one in history], is_number=True, width=64, tip="0 is untrained"),
        Column(title="loss", values=[one.loss for one in history], text=_number, is_number=True, width=100),
        Column(title=report.score_name if report is not None else "score", values=[one.score for one in history],
               text=_number, is_number=True, width=140, tip="On held-out data; decides what is kept"),
        Column(title="took", values=[one.seconds for one in history], text=seconds_text, is_number=True, width=80),
    ]  # fmt: skip
    return columns, _finetune_words(report)


def _finetune_words(report: FinetuneReport | None) -> str:
    if report is None:
        return tr("Nothing was trained: see the plan")
    change = f"{report.score_name} {number(report.before, '.4g')} → {number(report.after, '.4g')}"
    return "  ·  ".join(part for part in (report.method, change, report.reason, report.stopped) if part)


def _share(after: int, before: int) -> float | None:
    return after / before if before else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{number(100 * share, '.0f')} %"


def _number(value: float | None) -> str:
    return "" if value is None else number(value, ".4g")


_TABLES: dict[str, tuple[str, Callable[[Document], tuple[list[Column], str]]]] = {
    "pruning": ("pruning", _pruning_columns),
    "improve": (tr("better rounding"), _improvement_columns),
    "finetune": ("fine-tuning", _finetune_columns),
}
"""Id -> words, and what makes the columns and the line above them."""
