"""The recipes of a sweep, and the jobs that are left out."""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractItemView, QFileDialog, QListWidget, QWidget

from ace_studio.gui.style.language import told, tr
from ace_studio.gui.style.sizes import CLOSE
from ace_studio.gui.widgets.layouts import column, row
from ace_studio.gui.widgets.small import button, label, quiet, set_role, text_field, tip_text
from ace_studio.records.errors import AceError
from ace_studio.records.sweep_file import exclusion_text, exclusions_of
from ace_studio.session.document import Document
from ace_studio.session.session import Session

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
