"""The inputs panel: one row per example, and below every dimension its verdict."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QTimer
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QMenu, QVBoxLayout

from ace_studio.gui.ops.precision_offers import chosen_reports
from ace_studio.gui.panels.shapes.add_form import AddInputForm
from ace_studio.gui.panels.shapes.cells import ShapeTable
from ace_studio.gui.panels.shapes.compared import ComparedTable, compared_words
from ace_studio.gui.panels.shapes.presets import PRESETS, Preset, ProofRow, fits, missing_proof, preset_rows
from ace_studio.gui.panels.shapes.rows import VALUE_SOURCES, Row, add_input, paste, remove_input, with_rows
from ace_studio.gui.panels.shapes.verdicts import next_choice, refused_rows
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.layouts import GAP, TIGHT, Flow, box, column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import ElidedLabel, button, offer_menu, on_key, set_role
from ace_studio.gui.words.formatting import plural
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.paths import relative_to
from ace_studio.records.recipes.recipe import ShapesFrom
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import InputFinding
from ace_studio.session.code_names import forward_inputs
from ace_studio.session.comparison.sides import PinnedSide
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session


class ShapesPanel(Panel):
    """Examples and verdicts."""

    title = "Inputs"
    shows = frozenset({Part.RECIPE, Part.GRAPH, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.table = ShapeTable(theme)
        self.table.rows_edited.connect(session.choices.set_rows)
        self.table.verdict_clicked.connect(self._cycle)
        self.table.sizes_edited.connect(lambda sizes: session.choices.set_choice("targets", "sizes", sizes=sizes))
        self.table.folding_changed.connect(lambda: self.update_from(session.document))
        offer_menu(self.table, lambda _: self.menu())
        self.compared = ComparedTable(theme)
        self.compared.folding_changed.connect(lambda: self._show_pair(session.document))
        self.compared.hide()
        self._source = ElidedLabel()
        self.show_pages("table", box(column(self.table, self.compared, gap=0)), above=self._build_head())
        self.setFocusProxy(self.table)
        on_key(self.table, QKeySequence.StandardKey.Paste, self.paste, inside=True)

    def _build_head(self) -> QVBoxLayout:
        """What stands above the table: where examples come from, the tools, and a row that is proposed."""
        session = self.session
        self.add_row_button = button(tr("Add row"), self._add_row, tip=tr("Another example, like the last one"))
        self.remove_row_button = button(tr("Remove row"), self._remove_row)
        self.paste_button = button(tr("Paste"), self.paste, tip=tr("Cells from a spreadsheet (Ctrl+V)"))
        self.fill_button = button(
            tr("Fill down"), self.table.fill_down, tip=tr("Copy the topmost selected cell into those below it")
        )
        self.use_rows_button = button(tr("Use rows instead"), self._use_rows)
        self.catch_button = button(
            tr("Catch inputs…"),
            lambda: self.dialog_wanted.emit("catch", (self.session,)),
            tip=tr("Run a script of yours and keep what it calls the model with"),
        )
        self.sizes_button = button(tr("Usual sizes"), lambda: None, tip=tr("Add a row for each of the usual sizes"))
        self.sizes_button.setMenu(QMenu(self.sizes_button))
        for preset in PRESETS:
            self.sizes_button.menu().addAction(preset.text, partial(self._add_preset, preset))
        self._proof: ProofRow | None = None
        self._doubt = ElidedLabel()
        self.prove_button = button(tr("Add a row"), self._prove)
        self.form = AddInputForm()
        self.form.wanted.connect(
            lambda spec: session.choices.set_rows(add_input(session.document.recipe.inputs.rows, spec))
        )
        self.remove_input_button = button(tr("Remove input"), self._remove_input)
        self._tools = box(
            Flow(
                self.add_row_button, self.remove_row_button, self.sizes_button, self.paste_button, self.fill_button,
                self.form, self.remove_input_button, gap=TIGHT,
            )
        )  # fmt: skip
        top = row(self._source, self.use_rows_button, self.catch_button, stretch=0)
        self._proposal = box(row(self._doubt, self.prove_button, None))
        return column(top, self._tools, self._proposal, gap=TIGHT, margin=GAP)

    def update_from(self, document: Document) -> None:
        """Show rows and verdicts, or those of A and B."""
        is_compared = document.comparison is not None
        self.table.setVisible(not is_compared)
        self.compared.setVisible(is_compared)
        self.catch_button.setVisible(not is_compared)
        if is_compared:
            self._show_pair(document)
            return
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
            self._doubt.setText(tr("{why}; another size shows whether it may vary.", why=self._proof.why))
            self.prove_button.setText(tr("Add a row with {size}", size=self._proof.size))
        uses_callable = bool(inputs.tracing or inputs.caught)
        if wanted := _missing_rows(document):
            self._proposal.setVisible(True)
            self._doubt.setText(tr("The data of the last run have sizes that no example has."))
            more = tr("Add {count} rows", count=len(wanted))
            self.prove_button.setText(tr("Take sizes from the data") if uses_callable else more)
        self._source.setText(_source_words(document))
        set_role(self._source, "warn" if findings and document.is_capture_stale else "dim")
        self._tools.setVisible(not uses_callable)
        self.use_rows_button.setVisible(uses_callable or (bool(findings) and not inputs.rows))
        self._pages.setCurrentIndex(1 if self.table.has_columns else 0)
        needed = self._needed(document)
        self.form.offer(needed)
        if not self.table.has_columns:
            self._say_nothing(document, needed)
        has_rows = bool(inputs.rows)
        for each in (
            self.add_row_button, self.remove_row_button, self.fill_button, self.remove_input_button, self.sizes_button,
        ):  # fmt: skip
            each.setVisible(has_rows)
        for action, preset in zip(self.sizes_button.menu().actions(), PRESETS, strict=True):
            action.setEnabled(has_rows and fits(preset, inputs.rows[0]))

    def _show_pair(self, document: Document) -> None:
        """Show the examples and verdicts of A and B, which nothing can change."""
        found = document.comparison
        if found is None:
            return
        self.compared.show_pair(found, with_sizes=wants_sizes(document))
        for each in (self._tools, self._proposal, self.use_rows_button):
            each.hide()
        sources = [_side_words(document, side) for side in found.sides]
        self._source.setText(compared_words(self.compared.pairs.differing, sources))
        set_role(self._source, "dim")
        self._pages.setCurrentIndex(1 if self.compared.has_columns else 0)
        if not self.compared.has_columns:
            self._empty.say(tr("Nothing to compare"), tr("Neither A nor B has examples, and neither was traced."))

    def _say_nothing(self, document: Document, needed: Sequence[str]) -> None:
        name = _source_name(document)
        if name:
            words = tr("Trace to see what {source_name} gives and which sizes may vary.", source_name=name)
        elif needed:
            names = ", ".join(needed)
            words = tr("forward() takes {names}. Type a shape such as 1x3x224x224, then Add input.", names=names)
        else:
            words = tr("Add an input with a shape such as 1x3x224x224, or choose a function under Model.")
        self._empty.say(tr("Examples come from your code") if name else tr("No examples yet"), words)

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

    def paste(self) -> None:
        """Paste cells of a spreadsheet at the cursor."""
        if self.session.document.comparison is not None:
            return
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
            words = tr("Unfold {group}", group=group) if group in self.table.folded else tr("Fold {group}", group=group)
            menu.addAction(words, lambda: self.table.fold(group))
        names = inputs.rows[0] if inputs.rows else ()
        if any(name.startswith(f"{group}.0") for name in names):
            action = menu.addAction(tr("Pass {group} as a tuple", group=group))
            action.setCheckable(True)
            action.setChecked(group in inputs.tuples)
            action.toggled.connect(lambda is_on: self._set_tuple(group, is_tuple=is_on))
        for each in (self.fill_button, self.paste_button, self.add_row_button, self.remove_row_button,
                     self.remove_input_button):  # fmt: skip
            menu.addAction(each.text(), each.click).setEnabled(each.isVisible())
        menu.addAction(tr("Copy"), self.table.copy)
        data = menu.addAction(tr("Take sizes from the data"))
        data.setCheckable(True)
        data.setChecked(inputs.shapes_from is ShapesFrom.DATA)
        data.toggled.connect(self._take_data)
        return menu

    def _set_tuple(self, group: str, *, is_tuple: bool) -> None:
        others = [name for name in self.session.document.recipe.inputs.tuples if name != group]
        self.session.choices.set_choice(
            "inputs", tr("{group} as a tuple", group=group), tuples=(*others, *[group] * is_tuple)
        )

    def _add_preset(self, preset: Preset) -> None:
        rows = self.session.document.recipe.inputs.rows
        self.session.choices.set_rows(preset_rows(rows, self._current_row(), preset))

    def _take_data(self, is_on: bool) -> None:
        source = ShapesFrom.DATA if is_on else ShapesFrom.EXAMPLES
        self.session.choices.set_choice("inputs", tr("sizes from the data"), shapes_from=source)

    def _prove(self) -> None:
        inputs = self.session.document.recipe.inputs
        if wanted := _missing_rows(self.session.document):
            if inputs.tracing or inputs.caught:
                self._take_data(is_on=True)
            else:
                self.session.choices.set_rows((*inputs.rows, *wanted))
        elif self._proof is not None:
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


def _missing_rows(document: Document) -> tuple[Row, ...]:
    """Rows that the last run wanted and that the recipe does not have; none if it takes sizes from the data."""
    inputs = document.recipe.inputs
    known = [{name: spec.shape for name, spec in one.items()} for one in inputs.rows]
    missing = (one for one in document.wanted_rows if {name: spec.shape for name, spec in one.items()} not in known)
    return () if inputs.shapes_from is ShapesFrom.DATA else tuple(missing)


def _side_words(document: Document, side: PinnedSide) -> str:
    """Where the examples of one side come from; empty if that is not known."""
    if side.recipe is None:
        return ""
    name = _source_name(replace(document, recipe=side.recipe))
    if name:
        return tr("Examples come from {source_name}.", source_name=name)
    rows = len(side.recipe.inputs.rows)
    return plural(rows, "example") if rows else tr("the examples came with the model, or suit its first layer")


def _source_name(document: Document) -> str:
    """The callable, or the calls that were caught; empty if the rows are the examples."""
    inputs = document.recipe.inputs
    if inputs.tracing:
        return f"{inputs.tracing}()"
    return tr("the calls that were caught ({caught})", caught=inputs.caught) if inputs.caught else ""


def _source_words(document: Document) -> str:
    inputs = document.recipe.inputs
    if inputs.shapes_from is ShapesFrom.DATA and not document.is_capture_stale:
        return tr("Sizes of the calibration and evaluation data are traced too (see the menu of the table).")
    if document.capture and document.is_capture_stale:
        return tr("Choices changed since the trace: the verdicts are from before. Trace again (F5).")
    if document.recipe.capture.batch_only:
        return tr(
            "Batch only is on (Capture): only the batch is dynamic; other sizes are fixed as in the first example."
        )
    if inputs.tracing or inputs.caught:
        words = tr("Examples come from {source_name}.", source_name=_source_name(document))
        hint = tr("Click a verdict to cycle auto, dynamic, static.")
        return f"{words} {hint}" if document.capture else words
    if document.capture and not inputs.rows:
        return tr("The examples came with the model, or suit its first layer. Use rows instead to change them.")
    words = tr("One row per example. Sizes that differ between rows are traced as dynamic.")
    return f"{words} {tr('Click a verdict to change it.')}" if document.capture else words


_EMBEDDING = "aten.embedding.default"


def wants_sizes(document: Document) -> bool:
    """Whether a chosen target is built for a range of sizes."""
    chosen = document.recipe.targets
    names = {*chosen.names, *(one.name for one in chosen_reports(document))}
    return bool(chosen.sizes) or any(TARGET_ROWS[name].is_built_for_sizes for name in names if name in TARGET_ROWS)


def offers(document: Document) -> dict[str, list[tuple[str, str]]]:
    """Input -> values that suit it: of its embedding, of the file's own description, and of caught calls."""
    found: dict[str, list[tuple[str, str]]] = {}
    known = embedding_rows(document.graph, document.capture.inputs if document.capture else ())
    for name, entries in known.items():
        found[name] = [
            (
                f"random 0..{entries - 1}",
                tr("{name} is an index into {entries:,} rows of an embedding", name=name, entries=entries),
            )
        ]
    described = document.file.inputs if document.file else ()
    caught = document.caught.rows if document.caught else ()
    for rows, why in ((described[:1], tr("As the file describes it")), (caught, tr("A call that was caught"))):
        for each in rows:
            for name, spec in each.items():
                own = found.setdefault(name, [])
                values = relative_to(Path(spec.values), Path(document.folder)) if rows is caught else spec.values
                if values not in [text for text, _ in own] and values not in [text for text, _ in VALUE_SOURCES]:
                    own.append((values, why))
    return found


def embedding_rows(graph: GraphTable | None, findings: Sequence[InputFinding]) -> dict[str, int]:
    """Input -> rows of the embedding that it indexes, where the graph says so."""
    if graph is None or not graph.weights:
        return {}
    inputs = [row for row, kind in enumerate(graph.kind) if kind is OpKind.INPUT and graph.dtype[row]]
    name_of = {row: finding.name for row, finding in zip(inputs, findings, strict=False)}
    found = {}
    for source, target in zip(graph.edge_source, graph.edge_target, strict=True):
        if graph.op[target] == _EMBEDDING and source in name_of and (weight := graph.weights[target]):
            found[name_of[source]] = int(weight.split()[1].partition("x")[0])
    return found
