"""The commands of menus, toolbar and palette: open, save, show dialogs and panels."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from ace_studio.gui.shell.start_page import PackInstaller
from ace_studio.gui.style import Theme, tr
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.places import example_recipe, is_shipped
from ace_studio.records.recipes.recipe import RECIPE_SUFFIX
from ace_studio.session.document import DiskChange, EngineState
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.gui.shell.workbench import Workbench

FILE_FILTER = (
    "Models and recipes (*.toml *.py *.pt *.pth *.pt2 *.safetensors *.onnx *.bin *.ckpt *.ts *.jit"
    " config.json *.index.json);;"
    "Recipes (*.toml);;Python files (*.py);;All files (*)"
)
_EACH_NEW = ("changed_on_disk", "install_pack", "measure")
"""Those that tell of one change, one file and one measurement; the others are open once."""


class Commands(QObject):
    """The commands behind `actions.ACTIONS`."""

    about_to_open = Signal()
    """Another model is about to be opened."""
    palette_asked = Signal()
    tour_asked = Signal()
    fill_asked = Signal()
    """One panel shall take the whole window, or leave it again."""

    def __init__(self, window: QWidget, session: Session, theme: Theme, *, workbench: Callable[[], Workbench]) -> None:
        """``workbench`` brings the panels to the front and returns them; it makes them at its first call."""
        super().__init__(window)
        self.session = session
        self._window, self._theme, self.workbench = window, theme, workbench
        self._disk_change_asked: DiskChange | None = None
        self.installer = PackInstaller(self)
        self._install_problem: Problem | None = None
        self.installer.finished.connect(self._pack_worked_on)

    def close(self) -> None:
        """Close the window."""
        self._window.close()

    def show_panel(self, panel_id: str, *, focus: bool = False) -> None:
        """Bring a panel to the front; does nothing while no model is open."""
        if self.session.document.recipe.model.source:
            self.workbench().show_panel(panel_id, focus=focus)

    def open_path(self, *paths: str) -> None:
        """Open a model file or a recipe, or code with its weights; ask about an engine pack."""
        from ace_studio.jobs.engine_packs import pack_name  # noqa: PLC0415 - not needed for the first picture

        if len(paths) == 1 and pack_name(Path(paths[0])):
            self.install_engine(Path(paths[0]))
            return
        self.about_to_open.emit()
        self.session.files.open_paths(paths)
        self.show_panel("model")  # the question for trust is about what it says
        if self.session.document.sweep.path in {str(Path(path).absolute()) for path in paths}:
            self.show_panel("sweep")
        self.check_disk()

    def step_actions(self) -> dict[str, Callable[[], object]]:
        """Step on the way to an artifact -> what takes it."""
        return {
            "open": lambda: self.show_panel("model"),
            "trust": self.session.trust.trust_file,
            "inputs": lambda: self.show_panel("shapes"),
            "trace": lambda: self._start(self.session.jobs.trace),
            "plan": lambda: self.show_panel("plan"),
            "run": lambda: self._start(self.session.jobs.run),
            "compare": self.show_comparison,
            "export": self.export_artifact,
        }

    def _start(self, job: Callable[[], object]) -> None:
        """Start a job; while one goes on, show it: a click on its step is no wish for another one."""
        if self.session.document.activity.is_working:
            self.show_panel("run")
        else:
            job()

    def show_comparison(self) -> None:
        """Show the results, and the graph as it was captured beside the one that runs."""
        self.show_panel("results")
        self.show_graph("compared")

    def export_artifact(self) -> None:
        """Ask for a name, and save the artifact of the selected run, or of the best one."""
        self.show_panel("results")
        self.workbench().panel("results").export()

    def open_dialog(self) -> None:
        """Ask for a file and open it."""
        folder = self.session.document.folder or str(Path.home())
        paths, _ = QFileDialog.getOpenFileNames(self._window, tr("Open a model or a recipe"), folder, FILE_FILTER)
        if paths:
            self.open_path(*paths)

    def open_folder(self) -> None:
        """Ask for a folder, such as one of Hugging Face, and open it."""
        folder = self.session.document.folder or str(Path.home())
        path = QFileDialog.getExistingDirectory(self._window, tr("Open a model folder"), folder)
        if path:
            self.open_path(path)

    def open_by_name(self) -> None:
        """Ask for the name of a model of an installed package, and open it."""
        self.show_dialog("open_named", self.open_path)

    def open_example(self) -> None:
        """Open the example that ships with the program."""
        self.open_path(str(example_recipe()))

    def save(self) -> bool:
        """Save the recipe where it came from, or ask where."""
        if not self.session.document.recipe_path or is_shipped(self.session.document.recipe_path):
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
        change = self._disk_change_asked = self.session.document.disk_change
        if change is not None:
            self.show_dialog(
                "changed_on_disk", self.session, self._theme, change=change, keep=keep, save_as=self.save_as
            )

    def save_as(self) -> bool:
        """Ask for a name and save the recipe there."""
        document = self.session.document
        name = document.recipe_path
        if not name or is_shipped(name):
            name = str(Path(document.saving_folder) / document.proposed_name)
        path, _ = QFileDialog.getSaveFileName(self._window, tr("Save the recipe"), name, tr("Recipes (*.toml)"))
        if not path:
            return False
        return self.session.files.save_recipe(path if path.endswith(".toml") else f"{path}{RECIPE_SUFFIX}")

    def save_graph(self) -> None:
        """Ask for a name, and save the graph as it is shown there."""
        document = self.session.document
        name = str(Path(document.saving_folder) / f"{Path(document.title).stem or 'graph'}.svg")
        kinds = "Pictures (*.svg *.pdf *.png)"
        path, _ = QFileDialog.getSaveFileName(self._window, tr("Save the graph as a picture"), name, kinds)
        if path:
            with self.session.reporting():
                self.workbench().panel("graph").save(Path(path))

    def pin_file(self, side: int) -> None:
        """Ask for a model, a result file or a recipe, and pin it as A (0) or B (1)."""
        kinds = f"{FILE_FILTER};;{tr('Results and recipes (*.json *.toml)')}"
        path, _ = QFileDialog.getOpenFileName(self._window, tr("Pin a file"), self.session.document.folder, kinds)
        if path:
            self.session.comparing.pin_file(side, path)

    def show_graph(self, part_id: str) -> None:
        """Show the graph, and go to a part of it or toggle one, as `GraphPanel.show_part` says."""
        self.show_panel("graph")
        self.workbench().panel("graph").show_part(part_id)

    def scan_sensitivity(self) -> None:
        """Scan the sensitivity, and show the chart of it."""
        self.session.jobs.scan_sensitivity()
        self.show_panel("charts")
        self.workbench().panel("charts").show_part("sensitivity")

    def compare_methods(self) -> None:
        """Trace with every capture method, and show how each ends."""
        self.session.jobs.trace(compare_rungs=True)
        self.show_panel("capture")

    def try_fixes(self) -> None:
        """Try fixes for every break, and show the results."""
        self.session.jobs.try_fixes()
        self.show_panel("breaks")

    def open_context_menu(self) -> None:
        """Open the menu of what has the keyboard. On Linux, Qt does it for the menu key only."""
        here = QApplication.focusWidget()
        if here is not None:
            place = here.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle).center()
            reason = QContextMenuEvent.Reason.Keyboard
            QApplication.postEvent(here, QContextMenuEvent(reason, place, here.mapToGlobal(place)))

    def open_settings(self) -> None:
        """Show the settings."""
        self.show_dialog("settings", self.session, self._theme)

    def install_engine(self, file: Path | None = None) -> None:
        """Examine an engine pack, or ask for its file first; then ask whether to install it."""
        if file is None:
            import platformdirs  # noqa: PLC0415 - loaded when it is needed

            folder, kinds = platformdirs.user_downloads_dir(), tr("Engine packs (*.tar.gz)")
            if not Path(folder).is_dir():  # else the dialog takes it for the name of a file
                folder = str(Path.home())
            path, _ = QFileDialog.getOpenFileName(self._window, tr("Install an engine pack"), folder, kinds)
            file = Path(path) if path else None
        if file is not None:
            self._dismiss_install_problem()
            self.installer.examine(file)

    def make_engine_online(self) -> None:
        """Make an engine pack from the network."""
        self._dismiss_install_problem()
        self.installer.make_online()

    def _dismiss_install_problem(self) -> None:
        if self._install_problem in self.session.document.problems:
            self.session.view.dismiss_problem(self.session.document.problems.index(self._install_problem))

    def _pack_worked_on(self) -> None:
        """Ask about the pack that was examined; start one that was just installed, if no other engine does its work."""
        from ace_studio.jobs.pack_install import PackOffer  # noqa: PLC0415 - not needed for the first picture

        problem, session, offer = self.installer.problem, self.session, self.installer.found
        if problem is not None:
            if problem.code is not ErrorCode.CANCELLED:
                self._install_problem = problem
                session.report(problem)
        elif isinstance(offer, PackOffer):
            dialog = self.show_dialog("install_pack", offer)
            dialog.accepted.connect(lambda: self.installer.install(offer, dialog.consent))
        elif session.document.activity.state is EngineState.LOST or (
            not session.settings.get("interpreter") and not session.document.activity.is_working
        ):
            session.set_setting("interpreter", "")

    def open_help(self, address: str = "") -> None:
        """Show a page of the help, named or of what has the keyboard."""
        page = address or self._help_here()
        self.show_dialog("help", self._theme, self.session.settings).go_to(page)

    def _help_here(self) -> str:
        """The page of the nearest thing around the keyboard that names one."""
        here = QApplication.focusWidget()
        while here is not None:
            if address := here.property("help"):
                return str(address)
            here = here.parentWidget()
        return "window" if self.session.document.recipe.model.source else "getting-started"

    def show_dialog(self, name: str, *given: object, **named: object) -> Any:
        """Show a dialog by its module, which is loaded now; F1 in it opens its page.

        ``measure`` has the `MeasureDialog`. It is made of what is given, unless it is open.
        Its parent is the main window: the window of a panel goes when that is docked again, and would take along what
        still works in the dialog.
        """
        kind = getattr(import_module(f"ace_studio.gui.dialogs.{name}"), f"{name.title().replace('_', '')}Dialog")
        open_ones = () if name in _EACH_NEW else self._window.findChildren(kind)
        dialog = next((one for one in open_ones if one.isVisible()), None)
        if dialog is None:
            dialog = kind(*given, self._window, **named)
            dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            QShortcut(QKeySequence.StandardKey.HelpContents, dialog, self.open_help)
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        return dialog
