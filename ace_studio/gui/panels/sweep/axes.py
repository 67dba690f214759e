"""What a sweep does: its axes as its file has them, recipes, jobs left out, and where jobs run and results go."""

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractItemView, QFileDialog, QGridLayout, QLabel, QLineEdit, QListWidget, QWidget

from ace_studio.gui.style import told, tr
from ace_studio.gui.widgets.fields import ComboBox, WholeBox
from ace_studio.gui.widgets.layouts import CLOSE, TIGHT, column, row
from ace_studio.gui.widgets.small import button, label, quiet, set_role, text_field, tip_text
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.sweep_file import axis_text, axis_values, exclusion_text, exclusions_of
from ace_studio.records.sweeps import Axis
from ace_studio.session.document import Document
from ace_studio.session.session import Session
from ace_studio.sweeps.mlflow_log import has_mlflow

_HINTS = {
    Axis.PLAN: ("fp32, int8-static", tr("Precisions, auto (the goal decides), or [plan] tables in braces")),
    Axis.GOAL: ("0.01, none", tr("The largest drop of the metric, none, or [goal] tables in braces")),
    Axis.TARGET: ("auto", tr("Targets, auto, or lists of targets in brackets")),
    Axis.THREADS: ("1, 2, all", tr("Numbers of threads to measure with")),
    Axis.SHAPE: ("x=1x3x32x32, x=8x3x32x32", tr("Shapes to trace and measure with; a list for several inputs")),
    Axis.DEVICE: ("cpu, cuda", tr("Where a run computes; or names of your devices, which measure its artifact")),
}


def _tip(axis: Axis) -> str:
    """What the values of an axis are, and an example, which a narrow field does not show whole."""
    example, meaning = _HINTS[axis]
    return f"{meaning}\n{example}"


class AxisTable(QWidget):
    """One line per axis: its name, its values, what can be added, and how many there are."""

    changed = Signal(object, object)
    """The axis and its new values."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[Axis, QLineEdit] = {}
        self.offers: dict[Axis, ComboBox] = {}
        self._counts: dict[Axis, QLabel] = {}
        self._shown: dict[Axis, str] = {}
        """What each field had when nobody was typing."""
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(CLOSE)
        grid.setVerticalSpacing(TIGHT)
        for at, axis in enumerate(Axis):
            field = self.fields[axis] = text_field(tr("Values of {axis}", axis=axis), _HINTS[axis][0])
            field.setToolTip(_tip(axis))
            field.setMinimumWidth(70)
            field.editingFinished.connect(partial(self._typed, axis))
            offer = self.offers[axis] = ComboBox(
                tr("Add a value to {axis}", axis=axis), chosen=partial(self._add, axis)
            )
            offer.setToolTip(tr("Add a value to {axis}", axis=axis))
            offer.setFixedWidth(offer.fontMetrics().horizontalAdvance(tr("Add")) + 48)
            count = self._counts[axis] = label("", "dim", wrap=False)
            count.setMinimumWidth(18)
            title = label(axis, wrap=False)
            title.setBuddy(field)
            for place, part in enumerate((title, field, offer, count)):
                grid.addWidget(part, at, place)
        grid.setColumnStretch(1, 1)
        self.setLayout(grid)

    def update_from(self, document: Document) -> None:
        """Show the axes, and offer the values that are not there yet."""
        axes, is_free = document.sweep.sweep.axes, not document.sweep.is_running
        for axis, field in self.fields.items():
            values = axes.get(axis, ())
            text = axis_text(values)
            if not field.hasFocus() or field.text() == self._shown.get(axis, ""):  # nobody is typing
                if field.text() != text:
                    field.setText(text)
                    field.setCursorPosition(0)
                self._shown[axis] = text
                set_role(field, "")
            field.setEnabled(is_free)
            offer, others = self.offers[axis], [one for one in _known(axis, document) if one not in axis_words(values)]
            with quiet(offer):
                offer.clear()
                offer.addItem(tr("Add"), "")
                for one in others:
                    offer.addItem(one, one)
            offer.setEnabled(is_free and bool(others))
            self._counts[axis].setText(str(len(values)) if values else "")

    def _typed(self, axis: Axis) -> None:
        field = self.fields[axis]
        if field.text() == self._shown.get(axis, ""):
            return
        try:
            values = axis_values(field.text())
        except AceError as error:
            set_role(field, "bad")
            field.setToolTip(tip_text(f"{told(error.problem.what)}: {told(error.problem.remedy)}"))
            return
        self._shown[axis] = field.text()
        field.setToolTip(_tip(axis))
        self.changed.emit(axis, values)

    def _add(self, axis: Axis) -> None:
        word = str(self.offers[axis].currentData() or "")
        if word:
            text = self.fields[axis].text().strip().rstrip(",")
            self.fields[axis].setText(f"{text}, {word}" if text else word)
            self._typed(axis)


def axis_words(values: tuple[object, ...]) -> set[str]:
    """The values as the offers have them."""
    return {str(value) for value in values}


def _known(axis: Axis, document: Document) -> Iterator[str]:
    """Values that are offered for an axis."""
    environment = document.environment
    match axis:
        case Axis.PLAN:
            yield from map(str, Precision)
            yield "auto"
        case Axis.GOAL:
            yield from ("none", "0.01", "0.02", "0.05")
        case Axis.TARGET:
            yield "auto"
            yield from (one.name for one in (environment.targets if environment else ()) if one.available)
        case Axis.THREADS:
            yield from ("1", "2", "4", "8", "all")
        case Axis.DEVICE:
            yield from ("cpu", "cuda")
        case Axis.SHAPE:
            yield from _shapes(document)


def _shapes(document: Document) -> Iterator[str]:
    """The first input of the first example with usual batch sizes; nothing for a model with several inputs."""
    rows = document.recipe.inputs.rows
    if rows and len(rows[0]) == 1:
        ((name, spec),) = rows[0].items()
        for batch in (1, 8, 32):
            yield f"{name}={'x'.join(map(str, (batch, *spec.shape[1:])))}"


_MOST_LINES = 5


class RecipeList(QWidget):
    """The recipes, with what adds and removes some; a sweep of the open choices has none of its own."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Recipes of the sweep"))
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.add_button = button(tr("Add recipes…"), self._add, tip=tr("More models, each with a recipe of its own"))
        self.remove_button = button(tr("Remove"), self._remove, tip=tr("Take the selected recipes out of the sweep"))
        self.list.itemSelectionChanged.connect(self._allow_removal)
        self.setLayout(column(self.list, row(self.add_button, self.remove_button, None, gap=CLOSE), gap=CLOSE))

    def update_from(self, document: Document) -> None:
        """Show them; while a sweep runs they are fixed."""
        recipes = document.sweep.sweep.recipes
        if recipes != tuple(self.list.item(at).text() for at in range(self.list.count())):
            with quiet(self.list):
                self.list.clear()
                self.list.addItems(recipes)
            lines = min(max(len(recipes), 1), _MOST_LINES)
            self.list.setFixedHeight(lines * self.list.sizeHintForRow(0) + 2 * self.list.frameWidth() if recipes else 0)
        self.list.setVisible(bool(recipes))
        self.remove_button.setVisible(bool(recipes))
        self._allow_removal()
        self.setEnabled(not document.sweep.is_running)

    def _allow_removal(self) -> None:
        self.remove_button.setEnabled(bool(self.list.selectedItems()))

    def _add(self) -> None:
        folder = self._session.document.folder
        paths, _ = QFileDialog.getOpenFileNames(self, tr("Add recipes to the sweep"), folder, tr("Recipes (*.toml)"))
        if paths:
            self._session.sweep.add_recipes(paths)

    def _remove(self) -> None:
        self._session.sweep.remove_recipes([item.text() for item in self.list.selectedItems()])


class ExclusionField(QWidget):
    """The combinations that are left out, as they are written in one line."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._tip = tr("Jobs with all of these values are left out; a semicolon begins the next of them")
        self.field = text_field(tr("Combinations to leave out"), "plan = fp32, threads = 2")
        self.field.setToolTip(self._tip)
        self.field.editingFinished.connect(self._typed)
        title = label(tr("leave out"), wrap=False)
        title.setBuddy(self.field)
        self._shown = ""
        self.setLayout(row(title, self.field, gap=CLOSE, stretch=1))

    def update_from(self, document: Document) -> None:
        """Show them, unless somebody is typing."""
        text = exclusion_text(document.sweep.sweep.exclude)
        if not self.field.hasFocus() or self.field.text() == self._shown:
            self.field.setText(text)
            self.field.setCursorPosition(0)
            self._mark("")
        self._shown = text
        self.field.setEnabled(not document.sweep.is_running)

    def _typed(self) -> None:
        if self.field.text() == self._shown:
            return
        try:
            exclude = exclusions_of(self.field.text())
            self._session.sweep.set_exclusions(exclude)
        except AceError as error:
            self._mark(f"{told(error.problem.what)}: {told(error.problem.why or error.problem.remedy)}")
        else:
            self._mark("")

    def _mark(self, problem: str) -> None:
        set_role(self.field, "bad" if problem else "")
        self.field.setToolTip(tip_text(problem) if problem else self._tip)


class PlaceFields(QWidget):
    """Folder for the results, address of a scheduler, and how many jobs at once."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        choose = tr("Choose the folder for the results")
        self.out = text_field(tr("Folder for the results"), "")
        self.folder_button = button("…", self._choose_folder, tip=choose)
        self.folder_button.setAccessibleName(choose)
        self.scheduler = text_field(tr("Address of a Dask scheduler"), tr("this machine"))
        self.scheduler.setToolTip(
            tr("tcp://HOST:8786 of a Dask scheduler; slurm:8 for eight workers that SLURM starts; empty: this machine")
        )
        self.mlflow = text_field(tr("Address of an MLflow server"), tr("nowhere"))
        self._has_mlflow = has_mlflow()
        tip = tr("http://HOST:5000 of an MLflow server, or a store such as sqlite:///runs.db; empty: nothing is logged")
        self.mlflow.setToolTip(tip if self._has_mlflow else tr("MLflow is not installed: pip install mlflow-skinny"))
        self.workers = WholeBox(0, 999, specialValueText=tr("as fits"), keyboardTracking=False)
        self.workers.setAccessibleName(tr("Most jobs at once on this machine"))
        self.workers.setToolTip(tr("Most jobs at once on this machine; 0: as many as cores and memory allow"))
        self._texts = {"out": self.out, "scheduler": self.scheduler, "mlflow": self.mlflow}
        """Key of the place -> its field."""
        for key, field in self._texts.items():
            field.editingFinished.connect(partial(self._typed, key, field))
            field.setMinimumWidth(70)
        self.workers.valueChanged.connect(lambda count: session.sweep.set_place(workers=count))
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        parts = {
            tr("Results"): self.out, tr("Jobs run on"): self.scheduler, tr("at once"): self.workers,
            tr("Log to MLflow"): self.mlflow,
        }  # fmt: skip
        for at, (name, part) in enumerate(parts.items()):
            grid.addWidget(label(name, "dim", wrap=False), at, 0)
            grid.addWidget(part, at, 1, 1, 1 if part is self.out else 2)
        grid.addWidget(self.folder_button, 0, 2)
        grid.setColumnStretch(1, 1)
        self.setLayout(grid)

    def update_from(self, document: Document) -> None:
        """Show them; while a sweep runs they are fixed."""
        state, out = document.sweep, self._session.sweep.out
        with quiet(*self._texts.values(), self.workers):
            for key, field in self._texts.items():
                if not field.hasFocus():
                    field.setText(getattr(state, key))
            self.workers.setValue(state.workers)
        self.out.setPlaceholderText(out)
        self.out.setToolTip(out)
        self.setEnabled(not state.is_running)
        self.workers.setEnabled(not state.scheduler)
        self.mlflow.setEnabled(self._has_mlflow)

    def _typed(self, key: str, field: QLineEdit) -> None:
        text = field.text().strip()
        if text != getattr(self._session.document.sweep, key):
            self._session.sweep.set_place(**{key: text})

    def _choose_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(self, tr("Folder for the results"), self._session.sweep.out)
        if path:
            self._session.sweep.set_place(out=path)
