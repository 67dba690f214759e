"""The commands of menus, toolbar and palette: open, save, show dialogs and panels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from ace_studio.gui.shell.panel_table import Area
from ace_studio.gui.style.theme import Theme
from ace_studio.records.errors import AceError
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.document import DiskChange
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.gui.shell.workbench import Workbench

FILE_FILTER = (
    "Models and recipes (*.toml *.py *.pt *.pth *.pt2 *.safetensors *.onnx *.bin *.ckpt *.ts *.jit config.json);;"
    "Recipes (*.toml);;Python files (*.py);;All files (*)"
)


class Commands(QObject):
    """The commands behind `actions.ACTIONS`."""

    about_to_open = Signal()
    """Another model is about to be opened."""
    palette_asked = Signal()
    fill_asked = Signal()
    """One panel shall take the whole window, or leave it again."""

    def __init__(self, window: QWidget, session: Session, theme: Theme, *, workbench: Callable[[], Workbench]) -> None:
        """``workbench`` brings the panels to the front and returns them; it makes them at its first call."""
        super().__init__(window)
        self.session = session
        self._window, self._theme, self._workbench = window, theme, workbench
        self._disk_change_asked: DiskChange | None = None

    def close(self) -> None:
        """Close the window."""
        self._window.close()

    def show_panel(self, panel_id: str, *, focus: bool = False) -> None:
        """Bring a panel to the front; does nothing while no model is open."""
        if self.session.document.recipe.model.source:
            self._workbench().show_panel(panel_id, focus=focus)

    def toggle_area(self, place: Area) -> None:
        """Hide or show the panels of one area."""
        self._workbench().toggle(place)

    def toggle_window(self) -> None:
        """Give the panel with the keyboard a window of its own, or put it back."""
        self._workbench().toggle_window()

    def reset_places(self) -> None:
        """Dock every panel where it was at first."""
        self._workbench().reset_places()

    def open_path(self, *paths: str) -> None:
        """Open a model file or a recipe, or code with its weights."""
        self.about_to_open.emit()
        self.session.files.open_paths(paths)
        self.check_disk()

    def step_actions(self) -> dict[str, Callable[[], object]]:
        """Step on the way to an artifact -> what takes it."""
        return {
            "open": lambda: self.show_panel("model"),
            "trust": self.session.trust.trust_file,
            "inputs": lambda: self.show_panel("shapes"),
            "trace": self.session.jobs.trace,
            "plan": lambda: self.show_panel("plan"),
            "run": self.session.jobs.run,
            "compare": lambda: self.show_panel("results"),
            "export": self.export_artifact,
        }

    def export_artifact(self) -> None:
        """Ask for a name, and save the artifact of the selected run, or of the best one."""
        self.show_panel("results")
        self._workbench().panel("results").export()

    def open_dialog(self) -> None:
        """Ask for a file and open it."""
        folder = self.session.document.folder or str(Path.home())
        paths, _ = QFileDialog.getOpenFileNames(self._window, "Open a model or a recipe", folder, FILE_FILTER)
        if paths:
            self.open_path(*paths)

    def open_folder(self) -> None:
        """Ask for a folder, such as one of Hugging Face, and open it."""
        path = QFileDialog.getExistingDirectory(self._window, "Open a model folder", self.session.document.folder)
        if path:
            self.open_path(path)

    def open_by_name(self) -> None:
        """Ask for the name of a model of an installed package, and open it."""
        from ace_studio.gui.dialogs.open_named import OpenNamedDialog  # noqa: PLC0415 - loaded when it is needed

        self._show_dialog(OpenNamedDialog(self.open_path, self._window))

    def open_example(self) -> None:
        """Open the example that ships with the program."""
        self.open_path(str(example_recipe()))

    def save(self) -> bool:
        """Save the recipe where it came from, or ask where."""
        if not self.session.document.recipe_path:
            return self.save_as()
        is_saved = self.session.files.save_recipe()
        if self.session.document.disk_change is not None:
            self._ask_about_disk(keep=self.save)
        return is_saved

    def check_disk(self) -> None:
        """Notice withdrawn trust, and ask what to do if somebody else changed the recipe's file, once for a change."""
        self.session.trust.check_trust()
        self.session.files.check_disk()
        if self.session.document.disk_change not in (None, self._disk_change_asked):
            self._ask_about_disk(keep=lambda: None)

    def _ask_about_disk(self, *, keep: Callable[[], object]) -> None:
        from ace_studio.gui.dialogs.changed_on_disk import ChangedOnDiskDialog  # noqa: PLC0415 - loaded when needed

        change = self._disk_change_asked = self.session.document.disk_change
        if change is not None:
            ask = ChangedOnDiskDialog(
                self.session, self._theme, self._window, change=change, keep=keep, save_as=self.save_as
            )
            ask.setModal(True)
            self._show_dialog(ask)

    def save_as(self) -> bool:
        """Ask for a name and save the recipe there."""
        document = self.session.document
        name = document.recipe_path or str(Path(document.folder) / f"{Path(document.title).stem or 'recipe'}.toml")
        path, _ = QFileDialog.getSaveFileName(self._window, "Save the recipe", name, "Recipes (*.toml)")
        if not path:
            return False
        return self.session.files.save_recipe(path if path.endswith(".toml") else f"{path}.toml")

    def save_graph(self) -> None:
        """Ask for a name, and save the graph as it is shown there."""
        document = self.session.document
        name = str(Path(document.folder) / f"{Path(document.title).stem or 'graph'}.svg")
        kinds = "Pictures (*.svg *.pdf *.png)"
        path, _ = QFileDialog.getSaveFileName(self._window, "Save the graph as a picture", name, kinds)
        if path:
            try:
                self._workbench().save_graph(Path(path))
            except AceError as error:
                self.session.report(error.problem)

    def toggle_compare(self) -> None:
        """Open or close the second view of the graph."""
        self.show_panel("graph")
        self._workbench().toggle_compare()

    def pin_file(self, side: int) -> None:
        """Ask for a result file or a recipe, and pin it as A (0) or B (1)."""
        kinds = "Results and recipes (*.json *.toml)"
        path, _ = QFileDialog.getOpenFileName(self._window, "Pin a file", self.session.document.folder, kinds)
        if path:
            self.session.comparing.pin_file(side, path)

    def find(self) -> None:
        """Show the graph with the keyboard in its search field."""
        self.show_panel("graph")
        self._workbench().panel("graph").show_part("search")

    def scan_sensitivity(self) -> None:
        """Scan the sensitivity, and show the chart of it."""
        self.session.jobs.scan_sensitivity()
        self.show_chart("sensitivity")

    def show_chart(self, chart_id: str) -> None:
        """Bring a chart to the front."""
        self.show_panel("charts")
        self._workbench().show_chart(chart_id)

    def compare_methods(self) -> None:
        """Trace with every capture method, and show how each ends."""
        self.session.jobs.trace(compare_rungs=True)
        self.show_panel("capture")

    def try_fixes(self) -> None:
        """Try fixes for every break, and show the results."""
        self.session.jobs.try_fixes()
        self.show_panel("breaks")

    def set_precision_of_selection(self, precision: Precision | None) -> None:
        """Set the precision of the selected ops; None leaves it to the plan."""
        self.session.plan.set_precision_of_ops(self.session.document.selection.op_ids, precision)

    def open_context_menu(self) -> None:
        """Open the menu of what has the keyboard. On Linux, Qt does it for the menu key only."""
        here = QApplication.focusWidget()
        if here is not None:
            place = here.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle).center()
            reason = QContextMenuEvent.Reason.Keyboard
            QApplication.postEvent(here, QContextMenuEvent(reason, place, here.mapToGlobal(place)))

    def open_settings(self) -> None:
        """Show the settings."""
        from ace_studio.gui.dialogs.settings import SettingsDialog  # noqa: PLC0415 - loaded when it is needed

        self._show_dialog(SettingsDialog(self.session, self._theme, self._window))

    def open_catch(self) -> None:
        """Show the dialog that catches inputs."""
        from ace_studio.gui.dialogs.catch import CatchDialog  # noqa: PLC0415 - loaded when it is needed

        self._show_dialog(CatchDialog(self.session, self._window))

    def open_help(self, address: str = "") -> None:
        """Show a page of the help, named or of what has the keyboard. Its window is one and stays open."""
        from ace_studio.gui.dialogs.help import HelpDialog  # noqa: PLC0415 - loaded when it is needed

        open_ones = [one for one in self._window.findChildren(HelpDialog) if one.isVisible()]
        dialog = open_ones[0] if open_ones else HelpDialog(self._theme, self.session.settings, self._window)
        dialog.go_to(address or self._help_here())
        self._show_dialog(dialog)
        dialog.raise_()
        dialog.activateWindow()

    def _help_here(self) -> str:
        """The page of the nearest thing around the keyboard that names one."""
        here = QApplication.focusWidget()
        while here is not None:
            if address := here.property("help"):
                return str(address)
            here = here.parentWidget()
        return "window" if self.session.document.recipe.model.source else "getting-started"

    def open_about(self) -> None:
        """Show the versions of the window and the engine."""
        from ace_studio.gui.dialogs.about import AboutDialog  # noqa: PLC0415 - loaded when it is needed

        self._show_dialog(AboutDialog(self.session, self._window))

    def _show_dialog(self, dialog: QWidget) -> None:
        """Show it, and let F1 in it open its page."""
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        QShortcut(QKeySequence.StandardKey.HelpContents, dialog, self.open_help)
        dialog.show()
