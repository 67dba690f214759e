"""The inputs panel: one row per example, and below every dimension its verdict."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QMenu, QStackedWidget, QVBoxLayout, QWidget

from ace_studio.gui.panels.shapes.add_form import AddInputForm
from ace_studio.gui.panels.shapes.cells import ShapeTable
from ace_studio.gui.panels.shapes.faults import refused_rows
from ace_studio.gui.panels.shapes.offers import offers, wants_sizes
from ace_studio.gui.panels.shapes.presets import (
    PRESETS,
    Preset,
    Proof,
    fits,
    missing_proof,
    preset_rows,
)
from ace_studio.gui.panels.shapes.rows import Row, add_input, paste, remove_input, with_rows
from ace_studio.gui.panels.shapes.verdicts import next_choice
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.flow_layout import Flow
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, ElidedLabel, EmptyState, button, column, pop_up, row, set_role
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
        self.table.sizes_edited.connect(lambda sizes: session.choices.set_choice("targets", "sizes", sizes=sizes))
        self.table.folding_changed.connect(lambda: self.update_from(session.document))
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(lambda place: pop_up(self.menu(), self.table, place))
        self._source = ElidedLabel()
        head = self._build_head()
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

    def _build_head(self) -> QVBoxLayout:
        """What stands above the table: where examples come from, the tools, and a row that is proposed."""
        session = self.session
        self.add_row_button = button("Add row", self._add_row, tip="Another example, like the last one")
        self.remove_row_button = button("Remove row", self._remove_row)
        self.paste_button = button("Paste", self.paste, tip="Cells from a spreadsheet (Ctrl+V)")
        self.fill_button = button(
            "Fill down", self.table.fill_down, tip="Copy the topmost selected cell into those below it"
        )
        self.use_rows_button = button("Use rows instead", self._use_rows)
        self.catch_button = button(
            "Catch inputs…", self._catch, tip="Run a script of yours and keep what it calls the model with"
        )
        self.sizes_button = button("Usual sizes", lambda: None, tip="Add a row for each of the usual sizes")
        self.sizes_button.setMenu(QMenu(self.sizes_button))
        for preset in PRESETS:
            self.sizes_button.menu().addAction(preset.text, partial(self._add_preset, preset))
        self._proof: Proof | None = None
        self._doubt = ElidedLabel()
        self.prove_button = button("Add a row", self._prove)
        self.form = AddInputForm()
        self.form.wanted.connect(
            lambda spec: session.choices.set_rows(add_input(session.document.recipe.inputs.rows, spec))
        )
        self.remove_input_button = button("Remove input", self._remove_input)
        self._tools = QWidget()
        self._tools.setLayout(
            Flow(
                self.add_row_button, self.remove_row_button, self.sizes_button, self.paste_button, self.fill_button,
                self.form, self.remove_input_button, gap=4,
            )
        )  # fmt: skip
        top = row(self._source, self.use_rows_button, self.catch_button)
        top.setStretch(0, 1)
        self._proposal = QWidget()
        proposal = row(self._doubt, self.prove_button, None)
        self._proposal.setLayout(proposal)
        head = column(top, self._tools, self._proposal, gap=4)
        head.setContentsMargins(GAP, GAP, GAP, GAP)
        return head

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
            sizes=document.recipe.targets.sizes if wants_sizes(document) else None,
            offers=offers(document),
            tuples=inputs.tuples,
        )
        self._proof = None if document.is_capture_stale else missing_proof(inputs.rows, findings, inputs.dims)
        self._proposal.setVisible(self._proof is not None)
        if self._proof is not None:
            self._doubt.setText(f"{self._proof.why}; another size shows whether it may vary.")
            self.prove_button.setText(f"Add a row with {self._proof.size}")
        uses_callable = bool(inputs.tracing or inputs.caught)
        self._source.setText(_source_words(document))
        set_role(self._source, "warn" if findings and document.is_capture_stale else "dim")
        self._tools.setVisible(not uses_callable)
        self.use_rows_button.setVisible(uses_callable or (bool(findings) and not inputs.rows))
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
        for each in (
            self.add_row_button, self.remove_row_button, self.fill_button, self.remove_input_button, self.sizes_button,
        ):  # fmt: skip
            each.setEnabled(has_rows)
        for action, preset in zip(self.sizes_button.menu().actions(), PRESETS, strict=True):
            action.setEnabled(has_rows and fits(preset, inputs.rows[0]))

    def _needed(self, document: Document) -> tuple[str, ...]:
        """Inputs in the model's signature that no row has yet."""
        model = document.recipe.model
        path = str(Path(document.folder) / model.source)
        if document.file is not None and path not in document.sources and path.endswith(".py"):
            QTimer.singleShot(0, self, self.session.view.read_model_source)
        names = forward_inputs(document.sources.get(path, ""), model.entry)
        rows = document.recipe.inputs.rows
        given = {name.partition(".")[0] for name in rows[0]} if rows else set()
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

    def menu(self) -> QMenu:
        """What can be done with the input of the cursor, and with the cells."""
        group, inputs = self.table.group, self.session.document.recipe.inputs
        menu = QMenu(self.table)
        if group:
            verb = "Unfold" if group in self.table.folded else "Fold"
            menu.addAction(f"{verb} {group}", lambda: self.table.fold(group))
        names = inputs.rows[0] if inputs.rows else ()
        if any(name.startswith(f"{group}.0") for name in names):
            action = menu.addAction(f"Pass {group} as a tuple")
            action.setCheckable(True)
            action.setChecked(group in inputs.tuples)
            action.toggled.connect(lambda is_on: self._set_tuple(group, is_tuple=is_on))
        for each in (self.fill_button, self.paste_button, self.add_row_button, self.remove_row_button,
                     self.remove_input_button):  # fmt: skip
            menu.addAction(each.text(), each.click).setEnabled(each.isEnabled() and self._tools.isVisible())
        menu.addAction("Copy", self.table.copy)
        return menu

    def _set_tuple(self, group: str, *, is_tuple: bool) -> None:
        others = [name for name in self.session.document.recipe.inputs.tuples if name != group]
        self.session.choices.set_choice("inputs", f"{group} as a tuple", tuples=(*others, *[group] * is_tuple))

    def _catch(self) -> None:
        from ace_studio.gui.dialogs.catch import CatchDialog  # noqa: PLC0415 - loaded when it is needed

        CatchDialog(self.session, self.window()).open()

    def _add_preset(self, preset: Preset) -> None:
        rows = self.session.document.recipe.inputs.rows
        self.session.choices.set_rows(preset_rows(rows, self._current_row(), preset))

    def _prove(self) -> None:
        if self._proof is not None:
            self.session.choices.set_rows((*self.session.document.recipe.inputs.rows, self._proof.row))

    def _current_row(self) -> Row:
        """The row of the cursor, else the last one."""
        rows = self.session.document.recipe.inputs.rows
        current = self.table.currentIndex().row()
        return rows[current] if 0 <= current < len(rows) else rows[-1]

    def _cycle(self, name: str) -> None:
        self.session.choices.set_dim(name, next_choice(self.session.document.recipe.inputs.dims.get(name)))

    def _add_row(self) -> None:
        rows = self.session.document.recipe.inputs.rows
        self.session.choices.set_rows((*rows, dict(self._current_row())))

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
            own = {name: values[0][0] for name, values in offers(document).items() if values}
            self.session.choices.set_rows(with_rows(findings, own))
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
    if document.capture and not inputs.rows:
        return "The examples came with the model, or suit its first layer. Use rows instead to change them."
    return "One row per example. Sizes that differ between rows are traced as dynamic. Click a verdict to change it."
