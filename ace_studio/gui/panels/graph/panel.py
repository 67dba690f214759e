"""The graph panel: the graph view, the colouring, and the precision of the selected ops."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QPushButton, QSizePolicy, QToolButton, QWidget

from ace_studio.gui.graph_view import GraphView
from ace_studio.gui.graph_view.anchored import Anchored
from ace_studio.gui.ops.break_entries import Entry, chosen_entry, entries, ops_of_subgraph
from ace_studio.gui.ops.colourings import COLOURINGS, DIFFERENCE
from ace_studio.gui.ops.facts import OpFacts, chosen_precision, op_facts, row_of_ops, values_of_ops
from ace_studio.gui.ops.precision_offers import Offer, add_precision_menus, grey_out, op_offers
from ace_studio.gui.panels.graph.compare_view import CompareView
from ace_studio.gui.panels.graph.edge_bar import EdgeBar
from ace_studio.gui.panels.graph.frontier_card import FrontierCard
from ace_studio.gui.panels.graph.saved_views import SavedViews
from ace_studio.gui.style import Colours, Theme, stroke_icon, told, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import GAP, HAIR, TIGHT, box, column, row, scrolling, split
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import ElidedLabel, allow, button, fill_combo, label, show_words
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.steps import is_no_model, why_fixed, why_not, why_not_asked
from ace_studio.records.by_identity import are_same
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import WEIGHTS_ALONE
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import Document, EngineState, Part
from ace_studio.session.session import Session

_NARROW_PX = 720
"""A panel narrower than this does not name its fields."""
_COUNT_PX = 180
"""The most that the words on the selection claim for themselves."""
_MIXED = "mixed"
_FROM_PLAN = ""


class GraphPanel(Panel):
    """The captured graph."""

    title = "Graph"
    shows = frozenset(
        {Part.GRAPH, Part.RUNS, Part.RECIPE, Part.SELECTION, Part.TRUST, Part.ACTIVITY, Part.FILE, Part.PROBLEMS}
    )

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._shown: GraphTable | None = None
        self._coloured: tuple[object, ...] = ()
        self._capture: CaptureReport | None = None
        self._said: tuple[str, str, str] | None = None
        self._closer = 0
        self._colour_before: str | None = None
        """How the graph was coloured before A and B were compared; None while they are not."""
        self._put_away: object = None
        self._carded: tuple[object, ...] = ()
        self.view = GraphView(colours=theme.colours)
        self.view.selection_changed.connect(session.view.select)
        self.view.op_activated.connect(self._show_source)
        self.view.laid_out.connect(self._laid_out)
        self.view.menu_opening.connect(lambda menu, op_ids: add_precision_menus(menu, session, op_ids))
        self._captured = box(row(label(tr("As it was captured"), "dim", wrap=False), margin=(GAP, TIGHT, GAP, TIGHT)))
        self._captured.hide()
        self._split = split(box(column(self._captured, self.view, gap=0)), sizes=())
        self.compare: CompareView | None = None
        self.second: GraphView | None = None
        """The other half of a split view: the same graph with blocks and camera of its own."""
        self._second_shown: GraphTable | None = None
        self.edge_bar = EdgeBar(session, self.view)
        self.show_pages("graph", box(column(self._build_tools(), self.edge_bar, self._split, gap=0, stretch=2)))
        self._build_cards()
        self.setFocusProxy(self.view)
        self.restyle(theme.colours)

    def _build_tools(self) -> QWidget:
        """The line above the graph: colours, the selected ops and their precision, the second view."""
        self.colour_by = ComboBox(tr("Colour by"), [(choice.text, choice.id) for choice in COLOURINGS])
        self.colour_by.currentIndexChanged.connect(lambda _: self._recolour(self.session.document))
        self._named = label(tr("Colour by"), "dim", wrap=False)
        self._breaks = label("", "warn", wrap=False)
        self._selected = ElidedLabel()
        self._selected.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._precision_label = label(tr("Precision"), "dim", wrap=False)
        self.precision = ComboBox(tr("Precision of the selected ops"), chosen=self._choose_precision)
        self.precision.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.compare_button = QToolButton()
        self.compare_button.setText(tr("Compare"))
        self.compare_button.setCheckable(True)
        self.compare_button.setProperty("role", "plain")
        self.compare_button.setToolTip(
            tr("Show the graph as the selected run executes it, beside the captured graph (Ctrl+D)")
        )
        self.compare_button.setAccessibleName(tr("Compare with what really runs"))
        self.compare_button.toggled.connect(self._show_compare)
        self.views = SavedViews(self.session, self.view.canvas, lambda: str(self.colour_by.currentData()))
        self.views.chosen = self.show_colouring
        chosen = self._breaks, self._selected, self._precision_label, self.precision
        parts = (self.colour_by, *chosen, self.views, self.compare_button)
        return box(row(self._named, *parts, margin=(GAP, TIGHT, GAP, TIGHT), stretch=3))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the names of the fields out of a narrow line, so that its numbers are whole."""
        super().resizeEvent(event)
        self._show_names()

    def _show_names(self) -> None:
        is_wide = self.width() >= _NARROW_PX
        self._named.setVisible(is_wide)
        self._precision_label.setVisible(is_wide and self.precision.isVisibleTo(self))

    def _build_cards(self) -> None:
        """Build the card over the graph, and the card for a window without a graph."""
        self.card = FrontierCard(self.session, self.theme)
        self.card.closed.connect(self._close_card)
        self.card.panel_wanted.connect(self.panel_wanted)
        self._anchor = Anchored(self.view.canvas, self.card)
        self.lone_card = FrontierCard(self.session, self.theme, closable=False)
        self.lone_card.panel_wanted.connect(self.panel_wanted)
        self._trace_again = button(tr("Trace again (F5)"), self.session.jobs.trace)
        middle = column(None, self.lone_card, row(None, self._trace_again, None), None)
        self._pages.addWidget(scrolling(box(row(None, middle, None, margin=GAP))))

    def update_from(self, document: Document) -> None:
        """Show graph, colours and selection."""
        if document.graph is None:
            if self._shown is not None:
                self.view.show_graph(None)
            self._shown = None
            self._show_no_graph(document)
            return
        self._pages.setCurrentIndex(1)
        is_new = document.graph is not self._shown or self._seams_differ(document)
        if is_new:
            self._shown, self._capture = document.graph, document.capture
            self._coloured = ()
            self.view.show_graph(document.graph, document.capture)
        self._follow_comparison(document)
        self._recolour(document)
        self._update_second(document)
        self.edge_bar.update_from(document, is_new_graph=is_new)
        if self.compare is not None and self.compare_button.isChecked():
            self.compare.update_from(document)
        if not self.view.has_selected(document.selection.op_ids):
            self.view.set_selection(document.selection.op_ids)
            if len(document.selection.op_ids) == 1 and not self.view.hasFocus():
                self.view.reveal(document.selection.op_ids[0])
        if document.selection.closer != self._closer:
            self._closer = document.selection.closer
            self._look_closer(document)
        self._show_selected(document)
        self._show_card(document)

    def _laid_out(self) -> None:
        """Show in the picture that arrived what was chosen meanwhile."""
        self._coloured, self._carded = (), ()
        self.update_from(self.session.document)

    def _seams_differ(self, document: Document) -> bool:
        """Whether the report has other breaks or subgraphs than the picture."""
        old, new = self._capture, document.capture
        if old is new or old is None or new is None:
            return False
        return (old.graph_breaks, old.pieces) != (new.graph_breaks, new.pieces)

    def _look_closer(self, document: Document) -> None:
        op_ids = document.selection.op_ids
        if op_ids:
            self.view.reveal(op_ids[0])
            self.view.canvas.frame_selection()

    def _show_source(self, op_id: str) -> None:
        """Show an activated op in the source."""
        self.session.view.select([op_id])
        self.panel_wanted.emit("source")

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._coloured = ()
        self.views.setIcon(stroke_icon("bookmark", colours.text, colours.faded))
        self.view.set_theme(colours)
        if self.second is not None:
            self.second.set_theme(colours)
        if self.compare is not None:
            self.compare.restyle(colours)
            self.compare.update_from(self.session.document)
        self._recolour(self.session.document)

    def _show_compare(self, is_on: bool) -> None:
        """Open or close the second view; it is made when it is first opened."""
        if self.compare is None:
            self.compare = CompareView(self.session, self.view, self.colours)
        if is_on and self._is_split():
            self._toggle_split()
        self._halve(self.compare, is_on=is_on)
        self._captured.setVisible(is_on)
        if is_on:
            self.compare.update_from(self.session.document)
        else:
            self.compare.leave()

    def _toggle_split(self) -> None:
        """Open or close a second view of the same graph."""
        if self.second is None:
            self.second = GraphView(colours=self.colours)
            self.second.setAccessibleName(tr("Second view of the graph"))
            self.second.shows_map = False
            self.second.legend.title.setChecked(False)
            self.second.selection_changed.connect(self.session.view.select)
            self.second.op_activated.connect(self._show_source)
            self.second.laid_out.connect(self._laid_out)
            self.second.hide()
        is_on = not self._is_split()
        if is_on:
            self.compare_button.setChecked(False)
        self._halve(self.second, is_on=is_on)
        self._laid_out()
        QTimer.singleShot(0, self.second, self.second.fit)

    def _is_split(self) -> bool:
        return self.second is not None and self.second.isVisibleTo(self)

    def _halve(self, other: QWidget, *, is_on: bool) -> None:
        """Give half of the panel to another view, or take it back."""
        self._split.addWidget(other)
        other.setVisible(is_on)
        # At half the width, map and legend would cover the graph.
        self.view.shows_map = not is_on
        self.view.legend.title.setChecked(not is_on)
        if is_on:
            half = self._split.width() // 2
            self._split.setSizes([half] * self._split.count())
        # After both views have their sizes.
        QTimer.singleShot(0, self.view, self.view.fit)

    def _update_second(self, document: Document) -> None:
        second = self.second
        if second is None or not self._is_split():
            return
        if self._second_shown is not document.graph:
            self._second_shown = document.graph
            second.show_graph(document.graph, document.capture)
        second.values = self.view.values
        if second.selected_ops != document.selection.op_ids:
            second.set_selection(document.selection.op_ids)

    def save(self, path: Path) -> None:
        """Save what is open as .svg, .pdf or .png. Raises: AceError if that cannot be done."""
        self.view.export(path)

    def show_part(self, part_id: str) -> None:
        """``search``: put the keyboard there; ``compare``, ``split``: toggle that view; ``compared``: open it."""
        act: dict[str, Callable[[], object]] = {
            "search": self.view.focus_search,
            "compare": self.compare_button.toggle,
            "compared": lambda: self.compare_button.setChecked(True),
            "split": self._toggle_split,
        }
        act[part_id]()

    def show_colouring(self, choice_id: str) -> None:
        """Colour by a row of `COLOURINGS`."""
        self.colour_by.setCurrentIndex(self.colour_by.findData(choice_id))

    def _follow_comparison(self, document: Document) -> None:
        """Colour by the difference while A and B are compared; no other time has one."""
        is_compared = document.comparison is not None
        not_yet = Offer(is_possible=False, why_not={"": tr("Pin A and B first")})
        grey_out(self.colour_by, {} if is_compared else {DIFFERENCE: not_yet})
        if is_compared and self._colour_before is None:
            self._colour_before = str(self.colour_by.currentData())
            self.show_colouring(DIFFERENCE)
        elif not is_compared and self._colour_before is not None:
            before, self._colour_before = self._colour_before, None
            self.show_colouring(before)

    def _recolour(self, document: Document) -> None:
        if document.graph is None or self._shown is not document.graph:
            return
        choice = COLOURINGS[max(0, self.colour_by.currentIndex())]
        facts = op_facts(document)
        wanted = (choice.id, facts, document.graph)
        if not are_same(self._coloured, wanted):
            self._coloured = wanted
            self.view.values = partial(values_of_ops, document.graph, facts)
            colouring = choice.shown(document.graph, facts, self.colours)
            self.view.set_colouring(colouring)
            if self.second is not None and self._is_split():
                self.second.set_colouring(colouring)

    # --- selected ops ---

    def _show_selected(self, document: Document) -> None:
        op_ids = document.selection.op_ids
        has_ops = _has_ops(op_ids, document.graph)
        self.precision.setVisible(has_ops)
        self._show_names()
        capture = document.capture
        breaks = len(capture.graph_breaks) if capture is not None and capture.pieces and not op_ids else 0
        show_words(self._breaks, plural(breaks, "break") if breaks else "")
        if not op_ids or document.graph is None:
            self._show_counted(_size_words(document))
            return
        facts = op_facts(document)
        seam = next(
            (one for one in entries(document) if one.seam is not None and one.seam == document.selection.seam), None
        )
        words = f"{seam.heading}  ·  {seam.title}" if seam else _describe(op_ids, document.graph, facts)
        self._show_counted(words)
        if not has_ops:
            return
        chosen = chosen_precision(document, op_ids) or _FROM_PLAN
        options = [(tr("as the plan says"), _FROM_PLAN), *((str(each), str(each)) for each in Precision)]
        fill_combo(self.precision, options, chosen)
        grey_out(self.precision, op_offers(document, op_ids))
        self.precision.setEnabled(document.read_only is None)
        self.precision.setToolTip(why_fixed(document))

    def _show_counted(self, words: str) -> None:
        """Show words that begin with a count or a name; what comes first is whole, unless it is very long."""
        self._selected.setText(words)
        first = self._selected.fontMetrics().horizontalAdvance(words.partition("  ·  ")[0])
        self._selected.setMinimumWidth(min(first + HAIR, _COUNT_PX))

    def _choose_precision(self) -> None:
        value = self.precision.currentData()
        if value != _MIXED:
            chosen = Precision(value) if value else None
            self.session.plan.set_precision_of_ops(self.session.document.selection.op_ids, chosen)

    # --- the card on the frontier ---

    def _show_card(self, document: Document) -> None:
        """Place the card beside the selected break or eager subgraph, else where the capture failed."""
        offered = entries(document)
        chosen = chosen_entry(document, offered)
        entry = chosen or (offered[0] if offered and document.failure is not None else None)
        found = (id(document.failure), id(document.graph), document.selection.op_ids)
        shown = (entry, why_not(document), len(offered), *found)
        if shown == self._carded and entry is not None and self.card.isVisible():
            return
        self._carded = shown
        if entry is None or (self._put_away is not None and self._put_away == entry):
            self.card.hide()
            self._anchor.place()
            return
        self._put_away = None
        self.card.show_entry(entry, document, why_not=why_not(document), others=len(offered) - 1)
        self._anchor.hold(self._row_of(entry, document))

    def _row_of(self, entry: Entry, document: Document) -> int:
        """The row at which the capture ends; -1 if the graph does not show it."""
        graph, failure = document.graph, document.failure
        if graph is None:
            return -1
        op_ids = document.selection.op_ids if entry.seam is not None else ()
        if entry.subgraph is not None:
            op_ids = ops_of_subgraph(document, entry.subgraph)
        if op_ids:
            return row_of_ops(graph).get(op_ids[0], -1)
        is_frontier = failure is not None and failure.job == document.graph_job
        return len(graph) - 1 if is_frontier and entry.seam is None else -1

    def _close_card(self) -> None:
        self._put_away, self._carded = self.card.entry, ()
        self._show_card(self.session.document)

    # --- nothing to show yet ---

    def _show_no_graph(self, document: Document) -> None:
        """The reason as a card if a trace failed, else what to do next."""
        self.card.hide()
        if document.failure is not None and not document.needs_trust and not document.activity.is_working:
            offered = entries(document)
            self.lone_card.show_entry(offered[0], document, why_not=why_not(document), others=len(offered) - 1)
            self._trace_again.setEnabled(not why_not(document))
            self._pages.setCurrentIndex(2)
            return
        self._say_what_is_missing(document)
        self._pages.setCurrentIndex(0)

    def _say_what_is_missing(self, document: Document) -> None:
        words, text, buttons = self._missing(document)
        said = words, text, why_not_asked(document)
        if self._said != said:
            self._said = said
            self._empty.say(words, text, *buttons)

    def _start_buttons(self, document: Document) -> tuple[QPushButton, QPushButton]:
        trace = button(tr("Trace (F5)"), self.session.jobs.trace)
        run = button(tr("Run everything (F6)"), self.session.jobs.run)
        for each in (trace, run):
            allow(each, why_not_asked(document), "")
        return trace, run

    def _missing(self, document: Document) -> tuple[str, str, Sequence[QPushButton]]:
        if document.read_only is not None:
            return *_missing_in_the_past(document), ()
        if document.needs_trust:
            return tr("Nothing has run yet"), tr("The graph appears here once the file is trusted and traced."), ()
        if document.activity.is_working:
            words = tr("Stopping") if document.activity.state is EngineState.CANCELLING else tr("Working")
            return f"{words} …", tr("The graph appears here as soon as it is captured."), ()
        if refused := _refused(document):
            return *refused, ()
        trace, run = self._start_buttons(document)
        if document.rungs:
            text = tr("The Problems panel says why; the Run panel lists what was tried.")
            return tr("No graph yet"), text, (trace,)
        if not document.recipe.model.entry and document.file is not None and document.file.entries:
            return tr("Which function makes the model?"), tr("Choose the entry under Model, then trace."), (trace,)
        if not document.recipe.model.entry and document.file is not None and document.file.kind in WEIGHTS_ALONE:
            text = tr("A file of weights holds no code. Under Model, choose what these weights are of.")
            return tr("What makes the model?"), text, ()
        if _has_no_examples(document):
            add = button(tr("Add inputs"), lambda: self.panel_wanted.emit("shapes"))
            text = tr(
                "Enter what the model takes under Inputs, one row per example; without rows, sizes are proposed from "
                "the first layer."
            )
            if document.recipe.model.entry in _functions(document):
                text += tr(" If {entry}() returns examples too, just trace it.", entry=document.recipe.model.entry)
            return tr("Which inputs does it take?"), text, (add, trace, run)
        return (
            tr("Not traced yet"),
            tr("Trace captures the graph; Run also compresses, measures and compares."),
            (trace, run),
        )


def _refused(document: Document) -> tuple[str, str] | None:
    """Why what is open is no model, in two sentences; None if it may be one."""
    if document.could_not_open:
        return tr("This file could not be opened"), told(document.problems[-1].what)
    if is_no_model(document):
        text = tr("Open one of its files, or a folder from Hugging Face, which has a config.json.")
        return tr("This folder is no model"), text
    return None


def _has_no_examples(document: Document) -> bool:
    """Whether there are no examples, and the file is of a kind that holds none."""
    inputs, file = document.recipe.inputs, document.file
    is_said = bool(inputs.rows or inputs.tracing or inputs.caught)
    return not is_said and file is not None and file.kind in {"python", *WEIGHTS_ALONE}


def _functions(document: Document) -> frozenset[str]:
    entries = document.file.entries if document.file else ()
    return frozenset(one.name for one in entries if one.kind == "function")


def _size_words(document: Document) -> str:
    """The number of captured ops; for a partial capture also of its subgraphs, and the number left eager."""
    count = document.graph.op_count if document.graph else 0
    capture = document.capture
    if capture is None or not capture.pieces:
        return plural(count, "op")
    left = tr("{ops} left eager", ops=plural(capture.ops_left_eager, "op")) if capture.ops_left_eager else ""
    size = tr("{ops} in {subgraphs}", ops=plural(count, "op"), subgraphs=plural(len(capture.pieces), "subgraph"))
    return "  ·  ".join(part for part in (size, left) if part)


def _has_ops(op_ids: Sequence[str], graph: GraphTable | None) -> bool:
    """Whether the selection can have a precision; breaks have none."""
    if graph is None or not op_ids:
        return False
    rows = row_of_ops(graph)
    return any(graph.kind[rows[op_id]] is not OpKind.BREAK for op_id in op_ids if op_id in rows)


def _describe(op_ids: Sequence[str], graph: GraphTable, facts: OpFacts) -> str:
    if len(op_ids) > 1:
        return tr("{ops} selected", ops=plural(len(op_ids), "op"))
    op_id = op_ids[0]
    at = row_of_ops(graph).get(op_id)
    if at is None:
        return op_id
    parts = [f"{op_id}  ·  {graph.op[at]}", graph.module[at]]
    report = facts.reports.get(op_id)
    planned = facts.planned.get(op_id, "")
    if report is not None:
        parts.append(tr("planned {planned}, actual {actual}", planned=planned or report.planned, actual=report.actual))
    elif planned:
        parts.append(tr("planned {planned}", planned=planned))
    return "  ·  ".join(part for part in parts if part)


def _missing_in_the_past(document: Document) -> tuple[str, str]:
    """Why a past run, or a comparison, has no graph."""
    if document.comparison is not None:
        return tr("Nothing to compare"), tr("Neither A nor B has a graph that was kept.")
    return tr("No graph was kept"), tr("The history has the figures of this run, but not its graph.")
