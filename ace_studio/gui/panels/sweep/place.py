"""The fields that say where the results go and where the jobs run."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QFileDialog, QGridLayout, QLineEdit, QWidget

from ace_studio.gui.style.language import tr
from ace_studio.gui.widgets.fields import WholeBox
from ace_studio.gui.widgets.small import button, label, quiet, text_field
from ace_studio.session.document import Document
from ace_studio.session.session import Session
from ace_studio.sweeps.mlflow_log import has_mlflow


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
