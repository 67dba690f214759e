"""The dialog that opens a model of an installed package by its name."""

from collections.abc import Callable

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import column, row
from ace_studio.gui.widgets.small import MARGIN, button, label, text_field
from ace_studio.records.recipes.named_source import COLLECTIONS, named_source


class OpenNamedDialog(QDialog):
    """One field; it opens nothing that is no name."""

    def __init__(self, open_path: Callable[[str], object], parent: QWidget | None = None) -> None:
        """``open_path`` takes the name."""
        super().__init__(parent)
        self.setWindowTitle(tr("Open a model by its name"))
        self.setProperty("help", "loading-and-trust#models-by-name")
        self.name = text_field(tr("Name of the model"), "timm:resnet18")
        self.name.setMinimumWidth(360)
        self.name.textChanged.connect(self._check)
        words = label(
            tr(
                "A model of timm or torchvision, as they name it. It is built with random weights, the same every "
                "time; nothing is downloaded."
            ),
            "dim",
        )
        self.said = label("", "warn")
        self.open_button = button(tr("Open"), self.accept, role="primary")
        self.open_button.setDefault(True)
        self.open_button.setEnabled(False)
        cancel = button(tr("Cancel"), self.reject)
        self.setLayout(column(words, self.name, self.said, row(None, cancel, self.open_button), margin=MARGIN))
        self.accepted.connect(lambda: open_path(self.name.text().strip()))
        self.name.setFocus()

    def _check(self, text: str) -> None:
        """Say what is wrong with the name once it names a collection."""
        is_name = named_source(text.strip()) is not None
        self.open_button.setEnabled(is_name)
        collection = text.strip().partition(":")[0]
        is_begun = any(name.startswith(collection) for name in COLLECTIONS)
        self.said.setText(
            ""
            if is_name or is_begun
            else tr("A name begins with {names}", names=" or ".join(f"{c}:" for c in COLLECTIONS))
        )
