"""The problems panel: what happened, why, what to do, and where; details on request."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QLayout, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.icons import stroke_icon
from ace_studio.gui.style.theme import Theme, monospace
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import MARGIN, button, clear_layout, column, label, row, scrolling
from ace_studio.gui.words.formatting import plural
from ace_studio.records.errors import Problem
from ace_studio.session.document import Document, Part
from ace_studio.session.run_warnings import is_told, job_warnings
from ace_studio.session.session import Session


class ProblemsPanel(Panel):
    """One card per problem, the newest first, then every warning of the capture and of the run."""

    title = "Problems"
    shows = frozenset({Part.PROBLEMS, Part.GRAPH, Part.RUNS})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self._shown: tuple[object, ...] = ()
        self._cards = QVBoxLayout()
        self._cards.setSpacing(8)
        content = QWidget()
        layout = column(margin=MARGIN)
        layout.addLayout(self._cards)
        layout.addStretch(1)
        content.setLayout(layout)
        self.area = scrolling(content)
        self.area.setAccessibleName("Problems")
        self.setLayout(column(self.area))
        self.setFocusProxy(self.area)

    def update_from(self, document: Document) -> None:
        """Show the problems."""
        wanted = (document.problems, document.capture, document.result, document.runs)
        if not self._shown or any(old is not new for old, new in zip(self._shown, wanted, strict=True)):
            self._shown = wanted
            self._fill(document)

    def _fill(self, document: Document) -> None:
        clear_layout(self._cards)
        problems, capture = document.problems, document.capture
        for index in (at for at in reversed(range(len(problems))) if is_told(problems[at])):
            self._cards.addWidget(self._card(problems[index], index))
        breaks = capture.graph_breaks if capture else ()
        if capture is not None and breaks:
            left = f", {plural(capture.ops_left_eager, 'op')} left eager" if capture.ops_left_eager else ""
            show = button("Show breaks", lambda: self.panel_wanted.emit("breaks"))
            words = f"The capture stops at {plural(len(breaks), 'break')}{left}"
            self._cards.addWidget(_Note(words, below=row(show, None)))
        for warning in job_warnings(document):
            self._cards.addWidget(_Note(warning.what, where=_place_words(warning.where)))
        for run in document.runs:
            for warning in run.warnings:
                self._cards.addWidget(_Note(warning.what, where=f"{run.target} {run.precision}".strip()))
        if not self._cards.count():
            self._cards.addWidget(label("Nothing went wrong.", "dim"))

    def _card(self, problem: Problem, index: int) -> QFrame:
        card = QFrame()
        card.setProperty("role", "card")
        card.setAccessibleName(problem.as_text())
        headline = _selectable(label(problem.what, "bad"))
        headline.setProperty("weight", "strong")
        dismiss = QToolButton()
        dismiss.setAutoRaise(True)
        dismiss.setIcon(stroke_icon("close", self.colours.text_dim, self.colours.text_dim))
        dismiss.setToolTip("Dismiss")
        dismiss.setAccessibleName("Dismiss")
        dismiss.clicked.connect(lambda: self.session.view.dismiss_problem(index))
        top = row(headline, dismiss)
        top.setAlignment(dismiss, Qt.AlignmentFlag.AlignTop)
        top.setStretch(0, 1)
        parts: list[QWidget] = []
        if problem.why:
            parts.append(_selectable(label(problem.why, "dim")))
        if problem.remedy:
            parts.append(_selectable(label(f"→ {problem.remedy}")))
        if problem.where:
            parts.append(_place(problem.where))
        layout = column(margin=10, gap=4)
        layout.addLayout(top)
        for part in parts:
            layout.addWidget(part)
        layout.addLayout(_more(problem))
        card.setLayout(layout)
        return card

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        del colours
        self._fill(self.session.document)


class _Note(QFrame):
    """A card about the capture, which cannot be dismissed."""

    def __init__(self, what: str, *, where: str = "", below: QLayout | None = None) -> None:
        super().__init__()
        self.setProperty("role", "card")
        parts: list[QWidget | QLayout] = [_selectable(label(what))]
        if where:
            parts.append(_place(where))
        if below is not None:
            parts.append(below)
        self.setLayout(column(*parts, margin=10, gap=3))


def _more(problem: Problem) -> QVBoxLayout:
    details = QPlainTextEdit(problem.details)
    details.setReadOnly(True)
    details.setFont(monospace())
    details.setMinimumHeight(140)
    details.setAccessibleName("Details")
    details.setVisible(False)
    copy = button("Copy", lambda: QApplication.clipboard().setText(f"{problem.as_text()}\n{problem.details}"))
    show = button("Details", lambda: details.setVisible(details.isHidden()))
    show.setVisible(bool(problem.details))
    return column(row(copy, show, None), details, gap=4)


def _place_words(where: str) -> str:
    """A place as the window says it; a key of the recipe is none."""
    return "" if where.startswith("[") else where


def _selectable(text: QLabel) -> QLabel:
    text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return text


def _place(where: str) -> QLabel:
    made = _selectable(label(where, "dim"))
    made.setFont(monospace())
    return made
