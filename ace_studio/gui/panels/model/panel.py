"""The model panel: the file, what opening it would run, and the functions to use."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QFileDialog, QFrame, QLabel, QTreeWidget, QTreeWidgetItem, QWidget

from ace_studio.gui.style import Theme, told, tr
from ace_studio.gui.widgets.fields import NameBox, WholeBox
from ace_studio.gui.widgets.layouts import GAP, MARGIN, TIGHT, Flow, box, clear_layout, column, row, scrolling
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import ElidedLabel, button, fill_combo, label, quiet, show_words
from ace_studio.gui.widgets.table_look import plain_tree
from ace_studio.gui.words.formatting import bytes_text, plural, shape_text
from ace_studio.gui.words.problems import also_asked_for, question_text
from ace_studio.gui.words.steps import has_random_weights
from ace_studio.records.errors import one_line
from ace_studio.records.messages import WEIGHTS_ALONE, EntryPoint, EntryRole, FileReport
from ace_studio.records.recipes.named_source import COLLECTIONS, named_source
from ace_studio.records.recipes.paths import relative_to
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_DATA_FILES = "Data (*.npz *.safetensors *.pt *.pth);;All files (*)"
_TENSORS_SHOWN = 2000
_EXAMPLE_ROLES = {EntryRole.TRACING, EntryRole.CALIBRATION, EntryRole.DATA}
_TRUST_WORDS = {
    "inspect": (tr("Only inspected: nothing in it ever runs"), "good"),
    "data": (tr("Data only: reading it runs no code"), "good"),
}


class ModelPanel(Panel):
    """The opened file and the callables to use."""

    title = "Model"
    shows = frozenset({Part.FILE, Part.TRUST, Part.RECIPE, Part.PROBLEMS})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._report: FileReport | None = None
        self._name = ElidedLabel()
        self._name.setProperty("weight", "name")
        self._kind = label("", "dim")
        self._where = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle, role="dim")
        self._trust = label("")
        self._would_run = label("", "dim")
        self._notes = label("", "dim")
        self._random = label(tr("Random weights: without a file of weights the answers mean nothing"), "warn")
        self.origin = Origin(session, about_to_open=self.about_to_open.emit)
        card = QFrame()
        card.setProperty("role", "card")
        card.setLayout(
            column(
                self._name, self._kind, self._where, self._trust, self._would_run, self._notes,
                margin=MARGIN, gap=TIGHT,
            )
        )  # fmt: skip
        self.entry = self._picker(tr("The callable that makes the model"), session.choices.set_entry)
        self._entry_about = label("", "dim")
        self.weights = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self._clear_weights = button(
            tr("Clear"), lambda: session.choices.set_weights(""), tip=tr("Use no weights file")
        )
        self.tracing = self._picker(
            tr("The callable that gives the examples to trace with"), session.choices.set_tracing
        )
        self.calibration = self._picker(
            tr("The callable that gives calibration inputs"),
            lambda name: session.choices.set_choice("calibration", inputs=name),
        )
        self.samples = WholeBox(1, 1_000_000, accessibleName=tr("Calibration samples"), suffix=tr(" samples"))
        self.samples.setMaximumWidth(self.fontMetrics().horizontalAdvance("1000000 samples"))
        self.samples.valueChanged.connect(lambda number: session.choices.set_choice("calibration", samples=number))
        self.evaluate = self._picker(
            tr("The callable that measures accuracy"),
            lambda name: session.choices.set_choice("evaluate", "evaluation", function=name),
        )
        self.higher = QCheckBox(tr("Higher is better"))
        self.higher.toggled.connect(
            lambda on: session.choices.set_choice("evaluate", "evaluation", higher_is_better=on)
        )
        weights = row(self.weights, button(tr("Choose…"), self._browse_weights), self._clear_weights, stretch=0)
        self._entry_field = _field(tr("Entry"), self.entry, self._entry_about)
        self._weights_field = _field(tr("Weights file"), weights, self._random)
        self._tensors_title = label("", "heading")
        self._tensors = self._tensor_list()
        content = box(
            column(
                card,
                self.origin,
                self._entry_field,
                self._weights_field,
                _field(tr("Examples to trace with"), self.tracing),
                _field(tr("Calibration inputs"), self.calibration, Flow(self.samples, *self._data_buttons())),
                _field(tr("Accuracy"), self.evaluate, self.higher),
                self._tensors_title,
                self._tensors,
                None,
                margin=MARGIN,
                gap=MARGIN,
            )
        )
        self.setLayout(column(scrolling(content)))
        self.setFocusProxy(self.entry)
        self._fill_tensors(None)

    def _picker(self, name: str, choose: Callable[[str], object]) -> NameBox:
        combo = NameBox(name, choose)
        combo.setToolTip(tr("{name}. Of another file: the file, a colon and the name", name=name))
        combo.setMinimumContentsLength(10)
        combo.line.setPlaceholderText(tr("Choose, or type a name"))
        return combo

    def _tensor_list(self) -> QTreeWidget:
        tree = plain_tree(tr("Tensors of the file"), [tr("tensor"), tr("dtype"), tr("shape")])
        tree.setRootIsDecorated(False)
        tree.setMinimumHeight(160)
        tree.setTextElideMode(Qt.TextElideMode.ElideLeft)
        return tree

    def update_from(self, document: Document) -> None:
        """Show file and choices."""
        self._show_file(document)
        recipe = document.recipe
        entries = document.file.entries if document.file else ()
        makers = [entry for entry in entries if not entry.name.startswith("_")]
        functions = [entry for entry in makers if entry.kind == "function"]
        fill_combo(self.entry, [_option(entry) for entry in makers], recipe.model.entry)
        for combo, nothing, roles, chosen in (
            (self.tracing, tr("rows of the Inputs table"), _EXAMPLE_ROLES, recipe.inputs.tracing),
            (self.calibration, tr("the examples to trace with"), _EXAMPLE_ROLES, recipe.calibration.inputs),
            (self.evaluate, tr("nothing: compare outputs"), {EntryRole.EVALUATE}, recipe.evaluate.function),
        ):
            likeliest_first = [one for one in functions if one.role in roles]
            likeliest_first += [one for one in functions if one.role not in roles]
            fill_combo(combo, [(nothing, ""), *map(_option, likeliest_first)], chosen)
        about = next((entry for entry in entries if entry.name == recipe.model.entry), None)
        words = f"{about.name}{about.signature}  {about.summary}".strip() if about else ""
        show_words(self._entry_about, "" if about and words == _option(about)[0] else words)
        kind = document.file.kind if document.file else ""
        has_entry = bool(entries or recipe.model.entry) or kind in {"python", *WEIGHTS_ALONE}
        self._entry_field.setVisible(has_entry)
        self._weights_field.setVisible(has_entry or kind in COLLECTIONS or bool(recipe.model.weights))
        own = tr("this file") if kind in WEIGHTS_ALONE else tr("the model's own")
        if kind in {"", "python", *COLLECTIONS}:
            own = tr("none") if kind else ""
        self.weights.setText(recipe.model.weights or own)
        self._clear_weights.setVisible(bool(recipe.model.weights))
        self._random.setVisible(has_random_weights(document))
        self.origin.update_from(document)
        with quiet(self.samples, self.higher):
            self.samples.setValue(recipe.calibration.samples)
            self.higher.setChecked(recipe.evaluate.higher_is_better)
        self.samples.setVisible(bool(recipe.calibration.inputs))
        self.higher.setVisible(bool(recipe.evaluate.function))

    def _show_file(self, document: Document) -> None:
        report = document.file
        path = Path(report.path) if report else Path(document.folder) / document.recipe.model.source
        self._name.setText(path.name)
        show_words(self._where, "" if named_source(path) else str(path.parent))
        size = f", {bytes_text(report.size_bytes)}" if report and report.size_bytes else ""
        self._kind.setText(f"{told(report.label)}{size}" if report else _unknown_words(document))
        self._kind.setToolTip(f"SHA-256 {report.sha256}" if report else "")
        words, role = self._trust_words(document)
        show_words(self._trust, words, role)
        show_trust = bool(report and report.trust == "code" and not document.is_trusted) or document.needs_trust
        would_run = [one_line(told(line)) for line in report.would_run] if report else []
        would_run += map(question_text, also_asked_for(document))
        self._would_run.setVisible(bool(show_trust and would_run))
        self._would_run.setText("\n".join(f"• {line}" for line in would_run))
        show_words(self._notes, "\n".join(map(one_line, report.notes)) if report else "")
        if report is not self._report:
            self._report = report
            self._fill_tensors(report)

    def _trust_words(self, document: Document) -> tuple[str, str]:
        report = document.file
        if report is None:
            return "", "dim"
        if document.needs_trust:
            return tr("Opening it would run:"), ""
        if report.trust in _TRUST_WORDS:
            return _TRUST_WORDS[report.trust]
        if not document.is_trusted:
            return tr("Not trusted yet"), "dim"
        folders = self.session.trust.folders
        what = tr("everything in the folder {name}", name=Path(folders[0]).name) if folders else tr("this very file")
        return tr("Trusted: {what} may run", what=what), "good"

    def _fill_tensors(self, report: FileReport | None) -> None:
        tensors = report.tensors if report else ()
        self._tensors_title.setVisible(bool(tensors))
        self._tensors.setVisible(bool(tensors))
        self._tensors_title.setText(plural(len(tensors), "tensor"))
        self._tensors.clear()
        self._tensors.addTopLevelItems(
            [QTreeWidgetItem([one.name, one.dtype, shape_text(one.shape)]) for one in tensors[:_TENSORS_SHOWN]]
        )

    def _data_buttons(self) -> tuple[QWidget, QWidget]:
        file = button(
            tr("File…"), self._browse_data, tip=tr("Tensors by the names of the inputs: .npz, .safetensors or .pt")
        )
        folder = button(
            tr("Images…"), self._browse_images, tip=tr("A folder of pictures, resized to the model's input size")
        )
        file.setAccessibleName(tr("Calibration inputs from a file"))
        folder.setAccessibleName(tr("Calibration inputs from a folder of images"))
        return file, folder

    def _browse_data(self) -> None:
        folder = self.session.document.folder
        path, _ = QFileDialog.getOpenFileName(self, tr("Calibration inputs"), folder, _DATA_FILES)
        if path:
            self.session.choices.set_choice("calibration", inputs=relative_to(Path(path), Path(folder)))

    def _browse_images(self) -> None:
        folder = self.session.document.folder
        path = QFileDialog.getExistingDirectory(self, tr("A folder of images to calibrate with"), folder)
        if path:
            self.session.choices.set_choice(
                "calibration", inputs=f"{relative_to(Path(path), Path(folder)).rstrip('/')}/"
            )

    def _browse_weights(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self,
            tr("Weights to load into the model"),
            self.session.document.folder,
            tr("Weights (*.safetensors *.pt *.pth *.bin *.index.json)"),
        )
        if path:
            self.session.choices.set_weights(path)


def _unknown_words(document: Document) -> str:
    """Why nothing is known of the file itself: of the model of a past run, what its record says."""
    past = document.past
    if past is not None:
        when = f"{datetime.fromisoformat(past.date).astimezone():%Y-%m-%d %H:%M}"
        words = [tr("As it was in a past run, {when}", when=when)]
        if past.fingerprint:
            words.append(tr("Fingerprint of the capture: {fingerprint}", fingerprint=past.fingerprint[:12]))
        return "\n".join(words)
    if document.comparison is not None:
        return tr("As it was when A and B were pinned")
    return tr("It could not be opened") if document.could_not_open else tr("Looking at the file …")


def _option(entry: EntryPoint) -> tuple[str, str]:
    return f"{entry.name}{'()' if entry.kind == 'function' else ''}", entry.name


def _field(title: str, *parts: object) -> QWidget:
    made = QWidget()
    name = label(title, "heading")
    items: Sequence[object] = (name, *parts)
    made.setLayout(column(*items, gap=GAP // 2))  # type: ignore[arg-type]
    first = parts[0]
    if isinstance(first, QWidget) and not isinstance(first, QLabel):
        name.setBuddy(first)
    return made


class Origin(QFrame):
    """A card with one button for each model that fits the weights, the likeliest first."""

    def __init__(self, session: Session, *, about_to_open: Callable[[], object]) -> None:
        super().__init__()
        self.setProperty("role", "card")
        self._session = session
        self._about_to_open = about_to_open
        self._report: FileReport | None = None
        self._buttons = column(gap=TIGHT)
        title = label(tr("What are these weights of?"), "heading")
        text = label(
            tr(
                "A file of weights holds numbers, not the code that uses them. Choose what makes the model. "
                "Known models are listed if they have these very tensors."
            ),
            "dim",
        )
        self.setLayout(column(title, text, self._buttons, margin=MARGIN, gap=TIGHT))
        self.hide()

    def update_from(self, document: Document) -> None:
        """Offer what fits the opened file; hidden if it is no file of weights, or what makes the model is chosen."""
        report = document.file
        is_alone = report is not None and report.kind in WEIGHTS_ALONE and not document.recipe.model.entry
        self.setVisible(is_alone)
        if report is not None and is_alone and report is not self._report:
            self._report = report
            clear_layout(self._buttons)
            beside = Path(report.path).parent
            for at, path in enumerate((*report.code, *(str(beside / name) for name in report.fits))):
                named = named_source(path)
                words = tr("{name}, beside it", name=Path(path).name)
                if named is not None:
                    words = tr("{model}\nof {collection}", model=named.model, collection=named.collection)
                    words += tr(", {classes} classes", classes=named.classes) if named.classes else ""
                role = "primary" if at == 0 else ""
                self._buttons.addWidget(button(words, partial(self._open, path), role=role, tip=path))
            role = "" if report.code or report.fits else "primary"
            self._buttons.addWidget(button(tr("Look for the code…"), self._browse, role=role))

    def _browse(self) -> None:
        folder = self._session.document.folder
        path, _ = QFileDialog.getOpenFileName(self, tr("The code of the model"), folder, tr("Python files (*.py)"))
        if path:
            self._open(path)

    def _open(self, path: str) -> None:
        report = self._session.document.file
        if report is not None:
            self._about_to_open()
            self._session.files.open_path(path, weights="" if Path(path).is_dir() else report.path)
