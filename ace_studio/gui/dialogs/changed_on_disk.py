"""The dialog about a recipe that somebody else changed on the disk: both versions, and three ways out."""

import difflib
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.panels.breaks.diff_view import DiffView
from ace_studio.gui.style import Theme, told, tr
from ace_studio.gui.widgets.layouts import column, row
from ace_studio.gui.widgets.small import MARGIN, button, label
from ace_studio.session.document import DiskChange
from ace_studio.session.session import Session


class ChangedOnDiskDialog(QDialog):
    """Keep the choices of the window, take those of the file, or save to another file. Closing it decides nothing."""

    def __init__(
        self,
        session: Session,
        theme: Theme,
        parent: QWidget,
        *,
        change: DiskChange,
        keep: Callable[[], object],
        save_as: Callable[[], object],
    ) -> None:
        """``keep`` is called after the choices of the window were preferred, ``save_as`` to save to another file."""
        super().__init__(parent, modal=True)
        path = Path(session.document.recipe_path)
        self.setWindowTitle(tr("{name} changed on disk", name=path.name))
        self.setProperty("help", "window#what-is-kept")
        self.resize(760, 420)
        self._session, self._keep, self._save_as = session, keep, save_as
        why = f"{told(change.problem.what)}. " if change.problem is not None else ""
        headline = label(tr("{name} changed on disk", name=path.name), "title")
        words = label(
            tr(
                "Another program changed the file since it was opened here. {why}Lines with - are in the file now, "
                "lines with + would be there after saving your choices.",
                why=why,
            ),
            "dim",
        )
        self.both = DiffView(theme, _difference(change))
        self.both.setAccessibleName(tr("The file on disk and your choices"))
        self.both.setMinimumHeight(120)
        self.both.setMaximumHeight(16_777_215)
        self.keep_button = button(
            tr("Keep mine"), self._keep_mine, tip=tr("Your choices win; saving puts them into the file")
        )
        self.take_button = button(
            tr("Take the file's"),
            self._take,
            role="primary",
            tip=tr("The window shows the choices of the file; undo returns"),
        )
        self.take_button.setEnabled(change.problem is None)
        self.save_as_button = button(tr("Save as…"), self._save_elsewhere, tip=tr("Your choices go into another file"))
        buttons = row(None, self.save_as_button, self.keep_button, self.take_button)
        self.setLayout(column(headline, words, self.both, buttons, margin=MARGIN, stretch=2))
        self.both.setFocus()

    def _keep_mine(self) -> None:
        self._session.files.keep_mine()
        self.accept()
        self._keep()

    def _take(self) -> None:
        self._session.files.take_from_disk()
        self.accept()

    def _save_elsewhere(self) -> None:
        self.accept()
        self._save_as()


def _difference(change: DiskChange) -> str:
    theirs, mine = change.text.splitlines(), change.mine.splitlines()
    lines = difflib.unified_diff(theirs, mine, tr("the file on disk"), tr("your choices"), lineterm="", n=2)
    return "\n".join(lines) or tr("No line differs: your choices are those of the file.")
