"""The breaks panel: where the capture stops, what that costs, and the fixes tried."""

from PySide6.QtWidgets import QApplication, QHeaderView, QVBoxLayout

from ace_studio.gui.ops.break_entries import Entry, chosen_entry, entries, fixes_of, ops_of_subgraph, select_line
from ace_studio.gui.panels.breaks.fix_card import FixCard
from ace_studio.gui.style import Colours, Theme, monospace, tr
from ace_studio.gui.widgets.differences import beside_tip, difference_column, difference_words
from ace_studio.gui.widgets.layouts import GAP, MARGIN, Flow, box, clear_layout, column, scrolling, split
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import allow, button, label, plain_text, quiet, selectable, set_role, show_words
from ace_studio.gui.widgets.table_look import plain_table, select_rows, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import NOTHING, plural, sentence
from ace_studio.gui.words.steps import why_not
from ace_studio.records.fixes import FixReport, FixStatus
from ace_studio.session.comparison.sides import NAMES, PinnedPair
from ace_studio.session.document import Document, JobKind, Part
from ace_studio.session.session import Session


def break_columns(offered: tuple[Entry, ...], colours: Colours, *, is_compared: bool = False) -> list[Column]:
    """The columns of the list; while A and B are compared with what differs."""

    def mood(at: int) -> str:
        return colours.warn if offered[at].seam is not None else colours.bad

    words = [difference_words(one.beside) if one.beside is not None else "" for one in offered]
    return [
        *([difference_column(words, colours, tip=tr("What became of the place from A to B"))] if is_compared else []),
        Column(title="#", values=[one.mark for one in offered], width=30, colour=mood,
               tip="Number of the seam in the graph; ! is why there is no whole graph"),
        Column(title="line", values=[one.place or NOTHING for one in offered], width=100,
               tips=lambda at: offered[at].where),
        Column(title="ops eager", values=[one.ops_left_eager for one in offered],
               text=lambda n: str(n) if n else NOTHING, is_number=True, width=72,
               tip="Ops that run eagerly because of it"),
        Column(title="cause", values=[one.code.strip() or sentence(one.title).rstrip(".") for one in offered],
               tips=lambda at: offered[at].title),
    ]  # fmt: skip


class BreaksPanel(Panel):
    """A list at the left, one place in full at the right."""

    title = "Breaks"
    shows = frozenset({Part.FILE, Part.GRAPH, Part.SELECTION, Part.FIXES, Part.ACTIVITY, Part.RECIPE, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._entries: tuple[Entry, ...] = ()
        self._entry: Entry | None = None
        self._shown: tuple[object, ...] = ()
        self._best: FixStatus | None = None
        """Of the fixes that are shown."""
        self._card_to_see: FixCard | None = None
        """Is scrolled to as soon as it has its place."""
        self.model = ColumnsModel(self)
        self.table = plain_table(self.model, tr("Places where capture stops"))
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._tell_selection())
        self.table.activated.connect(lambda index: self._show_in_graph(self.model.source_row(index.row())))
        self._build_detail()
        self.show_pages("graph", split(self.table, self._detail, sizes=(450, 550)))
        self.setFocusProxy(self.table)

    def _build_detail(self) -> None:
        self._heading = label("", "heading")
        self._reason, self._code, self._hint = (selectable(label("")) for _ in range(3))
        self._code.setFont(monospace())
        self._cost = selectable(label("", "dim"))
        self.try_button = button(tr("Try fix"), self._try, role="primary")
        self.source_button = button(tr("In source"), self._show_source)
        self.graph_button = button(tr("In graph"), self._show_current_in_graph)
        self.copy_button = button(tr("Copy"), self._copy, tip=tr("All details of this place"))
        self.details_button = button(tr("Details"), self._toggle_details, tip=tr("What torch said"))
        self.try_all_button = button(tr("Try all"), self.session.jobs.try_fixes, tip=tr("Try fixes for every place"))
        self._details = plain_text(tr("Details"))
        self._details.setMinimumHeight(120)
        self._details.hide()
        self._doing = label("")
        self._fixes = QVBoxLayout()
        self._fixes.setSpacing(GAP)
        content = box(
            column(
                self._heading, self._reason,
                Flow(  # below the reason, where they are seen without scrolling at 200 % too
                    self.try_button, self.try_all_button, self.source_button, self.graph_button, self.copy_button,
                    self.details_button,
                ),
                self._doing, self._code, self._cost, self._hint, self._details, self._fixes, None,
                margin=MARGIN, gap=GAP - 2,
            )
        )  # fmt: skip
        self._detail = scrolling(content)
        self._detail.setAccessibleName(tr("The selected place"))
        self._detail.verticalScrollBar().rangeChanged.connect(lambda *_: self._scroll_to_card())

    # --- the document ---

    def update_from(self, document: Document) -> None:
        """Show the list, the selected place and its fixes."""
        found = document.comparison
        if self.has_changed(document.capture, document.failure, found):
            self._entries = entries(document)
            columns = break_columns(self._entries, self.colours, is_compared=found is not None)
            show_columns(self.table, self.model, columns)
            header = self.table.horizontalHeader()
            header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
            header.setSectionResizeMode(len(columns) - 1, QHeaderView.ResizeMode.Stretch)
            keys = {_key(one) for one in self._entries}
            if self._entry is None or _key(self._entry) not in keys:
                self._entry = self._entries[0] if self._entries else None
            else:
                self._entry = next(one for one in self._entries if _key(one) == _key(self._entry))
        self._pages.setCurrentIndex(1 if self._entries else 0)
        if not self._entries:
            self._say_nothing(document)
            return
        self._entry = chosen_entry(document, self._entries) or self._entry
        self._show_selection()
        self._show_entry(document)
        self._show_starting(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._shown = ()
        super().restyle(colours)

    def _say_nothing(self, document: Document) -> None:
        found = document.comparison
        if found is not None and any(side.capture is not None for side in found.sides):
            self._empty.say(tr("Nothing to compare"), _no_breaks_words(found))
        elif document.capture is None:
            self._empty.say(
                tr("Not traced yet"), tr("A graph break is a place where the capture stops and starts again.")
            )
        elif document.graph is not None and document.capture.rung:
            text = tr(
                "All {ops} are in one graph, captured by {rung}.",
                ops=plural(document.capture.ops, "op"),
                rung=document.capture.rung,
            )
            self._empty.say(tr("Captured whole: no breaks"), text)
        else:
            self._empty.say(tr("No breaks are known"), "")

    def _show_selection(self) -> None:
        wanted = self.model.view_row(self._entries.index(self._entry)) if self._entry in self._entries else -1
        chosen = self.table.selectionModel()
        if [index.row() for index in chosen.selectedRows()] != [wanted]:
            with quiet(chosen):
                select_rows(self.table, [] if wanted < 0 else [wanted])
            self.table.viewport().update()

    def _show_entry(self, document: Document) -> None:
        entry = self._entry
        if entry is None:
            return
        fixes = fixes_of(document.fixes, entry)
        shown = (entry, fixes, document.recipe.capture.controls, document.graph is None)
        if shown == self._shown:
            return
        is_other = not self._shown or self._shown[0] != entry
        self._shown = shown
        place = "  ·  ".join(part for part in (entry.place, entry.module) if part)
        parts = (entry.heading, place, difference_words(entry.beside) if entry.beside is not None else "")
        self._heading.setText("  ·  ".join(part for part in parts if part))
        self._heading.setToolTip(entry.where)
        self._reason.setText(" ".join(sentence(part) for part in (entry.title, entry.why) if part))
        show_words(self._code, entry.code.strip())
        show_words(self._cost, _cost_words(entry))
        show_words(self._hint, entry.remedy and f"→ {sentence(entry.remedy)}")
        self.details_button.setVisible(bool(entry.details))
        self._details.setPlainText(entry.details)
        if is_other:
            self._details.hide()
        self.source_button.setEnabled(bool(entry.line))
        self.source_button.setToolTip(tr("Show the line") if entry.line else tr("The line is not known"))
        in_graph = (entry.seam is not None or entry.subgraph is not None) and not entry.is_only_first
        self.graph_button.setVisible(in_graph and document.graph is not None)
        self.graph_button.setToolTip(tr("Zoom to it (double-click in the list)"))
        self._fill_fixes(fixes, is_other=is_other)

    def _fill_fixes(self, fixes: tuple[FixReport, ...], *, is_other: bool) -> None:
        """Show the cards, best first, and scroll to the first fix of a place, and to the first that works."""
        clear_layout(self._fixes)
        cards = [FixCard(fix, self.session, self.theme) for fix in sorted(fixes, key=lambda one: _RANK[one.status])]
        for card in cards:
            self._fixes.addWidget(card)
        best = cards[0].fix.status if cards else None
        self._card_to_see = cards[0] if cards and best is not self._best and not is_other else None
        self._best = best

    def _scroll_to_card(self) -> None:
        if self._card_to_see is not None and self._card_to_see.y() > 0:
            self._detail.verticalScrollBar().setValue(max(0, self._card_to_see.y() - 2 * MARGIN))
            self._card_to_see = None

    def _show_starting(self, document: Document) -> None:
        """Enable what can be tried now, and give the reason for what cannot."""
        reason = why_not(document)
        about = tr("Try what fits, each in a copy of your files; only what equals eager is offered")
        for each, tip in ((self.try_button, about), (self.try_all_button, tr("The same for every place of the list"))):
            allow(each, reason, tip)
        self.try_button.setVisible(self._entry is not None and self._entry.is_fixable)
        self.try_all_button.setVisible(sum(one.is_fixable for one in self._entries) > 1)
        activity = document.activity
        has_fixes = bool(self._entry and fixes_of(document.fixes, self._entry))
        is_trying = activity.verb is JobKind.FIX
        words = f"{tr(activity.phase.value)} … {activity.detail}".rstrip() if is_trying else ""
        show_words(self._doing, words)
        name = tr("Trying …") if is_trying else tr("Try again") if has_fixes else tr("Try fix")
        self.try_button.setText(name)
        set_role(self.try_button, "" if self._best is FixStatus.GREEN else "primary")

    # --- gestures ---

    def _tell_selection(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            self._entry = self._entries[self.model.source_row(rows[0].row())]
            self._select(self._entry)

    def _select(self, entry: Entry) -> None:
        if entry.seam is None and entry.subgraph is not None and not entry.is_only_first:
            self.session.view.select(ops_of_subgraph(self.session.document, entry.subgraph))
        else:
            select_line(entry, self.session.view)
        self.update_from(self.session.document)

    def _try(self) -> None:
        if self._entry is not None:
            self.session.jobs.try_fixes(self._entry.file if self._entry.line else "", self._entry.line)

    def _show_in_graph(self, at: int) -> None:
        self._entry = self._entries[at]
        self._show_current_in_graph()

    def _show_current_in_graph(self) -> None:
        if self._entry is not None:
            self._select(self._entry)
            self.session.view.look_closer()

    def _show_source(self) -> None:
        if self._entry is not None:
            select_line(self._entry, self.session.view)
            self.panel_wanted.emit("source")

    def _copy(self) -> None:
        if self._entry is not None:
            QApplication.clipboard().setText(self._entry.as_text())

    def _toggle_details(self) -> None:
        self._details.setVisible(self._details.isHidden())


def _key(entry: Entry) -> tuple[object, ...]:
    return (entry.is_only_first, entry.seam is None, entry.subgraph is None, entry.mark, entry.where)


def _cost_words(entry: Entry) -> str:
    """What the place costs; where A and B differ in it, a line for each."""
    one = entry.beside
    if one is None or one.first is None or one.second is None or one.first.cost == one.second.cost:
        return sentence(entry.cost[:1].upper() + entry.cost[1:])
    return beside_tip(one.first.cost, one.second.cost)


def _no_breaks_words(found: PinnedPair) -> str:
    captures = [side.capture for side in found.sides]
    if all(captures):
        return tr("Neither A nor B has a place where capture stops.")
    name = NAMES[captures.index(None)]
    return tr("{name} was not traced, and the other one has no place where capture stops.", name=name)


_RANK = {FixStatus.GREEN: 0, FixStatus.WRONG: 1, FixStatus.FAILED: 2, FixStatus.NO_EFFECT: 3}
"""Fixes that work come first."""
