"""What a file of weights can be opened with: code beside it, a known model, or code that the user looks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QFrame

from ace_studio.gui.widgets.small import button, clear_layout, column, label
from ace_studio.records.messages import FileReport
from ace_studio.records.recipes.named_source import named_source
from ace_studio.session.document import Document
from ace_studio.session.session import Session
from ace_studio.session.steps import WEIGHTS_ALONE


class Origin(QFrame):
    """A card with one button for each model that fits the weights, the likeliest first."""

    def __init__(self, session: Session, *, about_to_open: Callable[[], object]) -> None:
        """Start hidden."""
        super().__init__()
        self.setProperty("role", "card")
        self._session = session
        self._about_to_open = about_to_open
        self._report: FileReport | None = None
        self._buttons = column(gap=4)
        title = label("What are these weights of?", "heading")
        text = label(
            "A file of weights holds numbers, not the code that uses them. Choose what makes the model. "
            "Known models are listed if they have these very tensors.",
            "dim",
        )
        self.setLayout(column(title, text, self._buttons, margin=10, gap=4))
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
                words = f"{Path(path).name}, beside it"
                if named is not None:
                    words = f"{named.model}\nof {named.collection}"
                    words += f", {named.classes} classes" if named.classes else ""
                role = "primary" if at == 0 else ""
                self._buttons.addWidget(button(words, partial(self._open, path), role=role, tip=path))
            role = "" if report.code or report.fits else "primary"
            self._buttons.addWidget(button("Look for the code…", self._browse, role=role))

    def _browse(self) -> None:
        folder = self._session.document.folder
        path, _ = QFileDialog.getOpenFileName(self, "The code of the model", folder, "Python files (*.py)")
        if path:
            self._open(path)

    def _open(self, path: str) -> None:
        report = self._session.document.file
        if report is not None:
            self._about_to_open()
            self._session.files.open_path(path, weights="" if Path(path).is_dir() else report.path)
