"""The problems panel: what happened, why, what to do, and where; details on request."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QLayout, QVBoxLayout, QWidget

from ace_studio.gui.style import Theme, monospace, stroke_icon, told, tr
from ace_studio.gui.widgets.layouts import GAP, MARGIN, TIGHT, box, clear_layout, column, row, scrolling
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import button, label, plain_text, selectable, tool_button
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.problems import failed_targets, problem_text, told_problem
from ace_studio.records.errors import Problem
from ace_studio.session.document import Document, Part
from ace_studio.session.run_warnings import is_told, warnings_by_side
from ace_studio.session.session import Session


class ProblemsPanel(Panel):
    """One card per problem, the newest first, then per target that failed, then every warning of capture and run."""

    title = "Problems"
    shows = frozenset({Part.PROBLEMS, Part.GRAPH, Part.RUNS})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._cards = QVBoxLayout()
        self._cards.setSpacing(GAP)
        self.area = scrolling(box(column(self._cards, None, margin=MARGIN)))
        self.area.setAccessibleName(tr("Problems"))
        self.setLayout(column(self.area))
        self.setFocusProxy(self.area)

    def update_from(self, document: Document) -> None:
        """Show the problems."""
        if self.has_changed(document.problems, document.capture, document.result, document.runs, document.warned):
            self._fill(document)

    def _fill(self, document: Document) -> None:
        clear_layout(self._cards)
        problems, capture = document.problems, document.capture
        for index in (at for at in reversed(range(len(problems))) if is_told(problems[at])):
            self._cards.addWidget(_card(problems[index], self._dismiss_button(index)))
        for problem, target in failed_targets(document):
            self._cards.addWidget(_card(problem, label(target, "dim", wrap=False)))
        breaks = capture.graph_breaks if capture else ()
        if capture is not None and breaks:
            left = tr(", {ops} left eager", ops=plural(capture.ops_left_eager, "op")) if capture.ops_left_eager else ""
            show = button(tr("Show breaks"), lambda: self.panel_wanted.emit("breaks"))
            words = tr("The capture stops at {breaks}{left}", breaks=plural(len(breaks), "break"), left=left)
            self._cards.addWidget(_Note(words, below=row(show, None)))
        for warning, side in warnings_by_side(document):
            where = ": ".join(filter(None, (side, _place_words(warning.where))))
            self._cards.addWidget(_Note(told(warning.what), where=where))
        if not self._cards.count():
            self._cards.addWidget(label(tr("Nothing went wrong."), "dim"))

    def _dismiss_button(self, index: int) -> QWidget:
        made = tool_button(tr("Dismiss"), lambda: self.session.view.dismiss_problem(index))
        made.setIcon(stroke_icon("close", self.colours.text_dim, self.colours.text_dim))
        return made


def _card(problem: Problem, corner: QWidget) -> QFrame:
    shown = told_problem(problem)
    card = QFrame()
    card.setProperty("role", "card")
    card.setAccessibleName(problem_text(problem))
    headline = selectable(label(shown.what, "bad", strong=True))
    top = row(headline, corner, stretch=0)
    top.setAlignment(corner, Qt.AlignmentFlag.AlignTop)
    parts: list[QWidget] = []
    if shown.why:
        parts.append(selectable(label(shown.why, "dim")))
    if shown.remedy:
        parts.append(selectable(label(f"→ {shown.remedy}")))
    if problem.where:
        parts.append(_place(problem.where))
    card.setLayout(column(top, *parts, _more(problem), margin=MARGIN, gap=TIGHT))
    return card


class _Note(QFrame):
    """A card about the capture, which cannot be dismissed."""

    def __init__(self, what: str, *, where: str = "", below: QLayout | None = None) -> None:
        super().__init__()
        self.setProperty("role", "card")
        parts = [part for part in (_place(where) if where else None, below) if part is not None]
        self.setLayout(column(selectable(label(what)), *parts, margin=MARGIN, gap=TIGHT))


def _more(problem: Problem) -> QVBoxLayout:
    details = plain_text(tr("Details"), problem.details)
    details.setMinimumHeight(140)
    details.setVisible(False)
    copy = button(tr("Copy"), lambda: QApplication.clipboard().setText(f"{problem_text(problem)}\n{problem.details}"))
    show = button(tr("Details"), lambda: details.setVisible(details.isHidden()))
    show.setVisible(bool(problem.details))
    return column(row(copy, show, None), details, gap=TIGHT)


def _place_words(where: str) -> str:
    """A place as the window says it; a key of the recipe is none."""
    return "" if where.startswith("[") else where


def _place(where: str) -> QLabel:
    made = selectable(label(where, "dim"))
    made.setFont(monospace())
    return made
