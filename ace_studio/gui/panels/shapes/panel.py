"""The inputs panel: one row per example, and below every dimension its verdict."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from ace_studio.gui.panels.shapes.add_form import AddInputForm
from ace_studio.gui.panels.shapes.cells import ShapeTable
from ace_studio.gui.panels.shapes.faults import refused_rows
from ace_studio.gui.panels.shapes.rows import add_input, paste, remove_input, with_rows
from ace_studio.gui.panels.shapes.verdicts import next_choice
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, ElidedLabel, EmptyState, button, column, row, set_role
from ace_studio.session.document import Document, Part
from ace_studio.session.forward_names import forward_inputs
from ace_studio.session.session import Session


class ShapesPanel(Panel):
    """Examples and verdicts."""

    title = "Inputs"
    shows = frozenset({Part.RECIPE, Part.GRAPH, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build the table and its tools."""
        super().__init__(session, theme)
        self.table = ShapeTable(theme)
        self.table.rows_edited.connect(session.choices.set_rows)
        self.table.verdict_clicked.connect(self._cycle)
        self._source = ElidedLabel()
        self.add_row_button = button("Add row", self._add_row, tip="Another example, like the last one")
        self.remove_row_button = button("Remove row", self._remove_row)
        self.paste_button = button("Paste", self.paste, tip="Cells from a spreadsheet (Ctrl+V)")
        self.fill_button = button(
            "Fill down", self.table.fill_down, tip="Copy the topmost selected cell into those below it"
        )
        self.use_rows_button = button("Use rows instead", self._use_rows)
        self.form = AddInputForm()
        self.form.wanted.connect(
            lambda spec: session.choices.set_rows(add_input(session.document.recipe.inputs.rows, spec))
        )
        self.remove_input_button = button("Remove input", self._remove_input)
        tools = row(
            self.add_row_button, self.remove_row_button, self.paste_button, self.fill_button, None,
            self.form, self.remove_input_button,
        )  # fmt: skip
        self._tools = QWidget()
        self._tools.setLayout(tools)
        top = row(self._source, self.use_rows_button)
        top.setStretch(0, 1)
        head = column(top, self._tools, gap=4)
        head.setContentsMargins(GAP, GAP, GAP, GAP)
        self._empty = EmptyState("table")
        self._empty.say(
            "No examples yet",
            "Add an input with a shape such as 1x3x224x224, or choose a function that gives examples under Model.",
        )
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(self.table)
        layout = column(gap=0)
        layout.addLayout(head)
        layout.addWidget(self._pages, 1)
        self.setLayout(layout)
        self.setFocusProxy(self.table)
        shortcut = QShortcut(QKeySequence(QKeySequence.StandardKey.Paste), self.table)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self.paste)

    def update_from(self, document: Document) -> None:
        """Show rows and verdicts."""
        inputs = document.recipe.inputs
        findings = document.capture.inputs if document.capture else ()
        self.table.show_inputs(
            () if inputs.tracing else inputs.rows,
            findings,
            dims=inputs.dims,
            is_stale=document.is_capture_stale,
            refused=refused_rows(document.rungs) if not document.is_capture_stale else {},
        )
        uses_callable = bool(inputs.tracing or inputs.caught)
        self._source.setText(_source_words(document))
        set_role(self._source, "warn" if findings and document.is_capture_stale else "dim")
        self._tools.setVisible(not uses_callable)
        self.use_rows_button.setVisible(uses_callable)
        self._pages.setCurrentIndex(1 if self.table.has_columns else 0)
        if not self.table.has_columns:
            words = (
                (
                    "Examples come from your code",
                    f"Trace to see what {_source_name(document)} gives and which sizes may vary.",
                )
                if uses_callable
                else (
                    "No examples yet",
                    "Add an input with a shape such as 1x3x224x224, or choose a function under Model.",
                )
            )
            self._empty.say(*words)
        needed = self._needed(document)
        self.form.offer(needed)
        if not self.table.has_columns and not uses_callable and needed:
            self._empty.say(
                "No examples yet",
                f"forward() takes {', '.join(needed)}. Type a shape such as 1x3x224x224, then Add input.",
            )
        has_rows = bool(inputs.rows)
        for each in (self.add_row_button, self.remove_row_button, self.fill_button, self.remove_input_button):
            each.setEnabled(has_rows)

    def _needed(self, document: Document) -> tuple[str, ...]:
        """Inputs in the model's signature that no row has yet."""
        model = document.recipe.model
        path = str(Path(document.folder) / model.source)
        if document.file is not None and path not in document.sources and path.endswith(".py"):
            QTimer.singleShot(0, self, self.session.view.read_model_source)
        names = forward_inputs(document.sources.get(path, ""), model.entry)
        given = set(document.recipe.inputs.rows[0]) if document.recipe.inputs.rows else set()
        return tuple(name for name in names if name not in given)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        self.table.viewport().update()

    def paste(self) -> None:
        """Paste cells of a spreadsheet at the cursor."""
        rows = self.session.document.recipe.inputs.rows
        index = self.table.currentIndex()
        at = (max(0, index.row()), max(0, index.column()))
        pasted, fault = paste(rows, QApplication.clipboard().text(), self.table.columns, at=at)
        self._source.setText(fault or _source_words(self.session.document))
        set_role(self._source, "bad" if fault else "dim")
        if pasted != rows:
            self.session.choices.set_rows(pasted)

    def _cycle(self, name: str) -> None:
        self.session.choices.set_dim(name, next_choice(self.session.document.recipe.inputs.dims.get(name)))

    def _add_row(self) -> None:
        rows = self.session.document.recipe.inputs.rows
        current = self.table.currentIndex().row()
        like = rows[current] if 0 <= current < len(rows) else rows[-1]
        self.session.choices.set_rows((*rows, dict(like)))

    def _remove_row(self) -> None:
        rows = self.session.document.recipe.inputs.rows
        current = self.table.currentIndex().row()
        at = current if 0 <= current < len(rows) else len(rows) - 1
        self.session.choices.set_rows(tuple(each for place, each in enumerate(rows) if place != at))

    def _remove_input(self) -> None:
        index = self.table.currentIndex()
        columns = self.table.columns
        if 0 <= index.column() < len(columns):
            rows = self.session.document.recipe.inputs.rows
            self.session.choices.set_rows(remove_input(rows, columns[index.column()].input))

    def _use_rows(self) -> None:
        """Replace the function's examples by editable rows."""
        document = self.session.document
        findings = document.capture.inputs if document.capture else ()
        if findings and not document.recipe.inputs.rows:
            self.session.choices.set_rows(with_rows(findings))
        self.session.choices.set_tracing("")


def _source_name(document: Document) -> str:
    """The callable, or the calls that were caught."""
    inputs = document.recipe.inputs
    return f"{inputs.tracing}()" if inputs.tracing else f"the calls that were caught ({inputs.caught})"


def _source_words(document: Document) -> str:
    inputs = document.recipe.inputs
    if document.capture and document.is_capture_stale:
        return "Choices changed since the trace: the verdicts are from before. Trace again (F5)."
    if document.recipe.capture.batch_only:
        return "Batch only is on (Capture): only the batch is dynamic; other sizes are fixed as in the first example."
    if inputs.tracing or inputs.caught:
        return f"Examples come from {_source_name(document)}. Click a verdict to cycle auto, dynamic, static."
    return "One row per example. Sizes that differ between rows are traced as dynamic. Click a verdict to change it."
