"""The dialog of one measurement on a device: its progress, what came of it, and a button that ends it."""

from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, MARGIN, box, column, row, scrolling
from ace_studio.gui.widgets.small import ProgressBar, button, fit_screen, label, selectable, show_words
from ace_studio.gui.widgets.work_thread import Started, Tell, WorkThread
from ace_studio.gui.words.problems import problem_text
from ace_studio.records.devices import Device
from ace_studio.records.errors import Problem
from ace_studio.records.results import Result
from ace_studio.records.results.on_devices import figure_on, figure_words, state_words
from ace_studio.session.session import Session
from ace_studio.session.verbs.devices import DeviceVerbs


class MeasureDialog(QDialog):
    """Begins at once; the figures go into the run's folder and into the results that are shown."""

    def __init__(self, session: Session, device: Device, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Measure on {device}", device=device.name))
        self.setProperty("help", "devices")
        fit_screen(self, 560, 220)
        self._session, self._device = session, device
        self.step, self.bar = label("", "dim"), ProgressBar(tr("Progress"))
        self.said, self.wrong = selectable(label("")), selectable(label("", "bad"))
        self.end_button = button(tr("Cancel"), self.reject)
        said = scrolling(box(column(self.said, self.wrong, None, margin=CLOSE, gap=GAP)))
        self.setLayout(column(self.step, self.bar, said, row(None, self.end_button), margin=MARGIN, gap=GAP, stretch=2))
        for each in (self.said, self.wrong):
            each.hide()
        self.measuring = WorkThread(self)
        self.measuring.told.connect(self._tell)
        self.measuring.finished.connect(self._ended)
        self.finished.connect(lambda _: self.measuring.stop())
        self._show_step(tr("Connecting …"), None)
        document = session.document
        assert document.result is not None
        errand = Errand(device, document.result, Path(document.output), session.devices)
        self.measuring.begin(errand.run)

    def _tell(self, event: dict[str, Any]) -> None:
        if event["kind"] == "waiting":
            self._show_step(tr("Waiting: {why}", why=event["why"]), None)
        else:
            self._show_step(event["detail"], event["fraction"])

    def _show_step(self, text: str, fraction: float | None) -> None:
        self.step.setText(text)
        self.bar.show_fraction(fraction)

    def _ended(self) -> None:
        if self.measuring.is_stopped:
            return
        self.bar.hide()
        self.end_button.setText(tr("Close"))
        found, problem = self.measuring.found, self.measuring.problem
        problems: tuple[Problem, ...] = () if problem is None else (problem,)
        lines = []
        if isinstance(found, tuple):
            result, problems = found
            self._session.devices.measured(result)
            lines = self._figures(result)
        self.step.setText(lines.pop() if lines else tr("Nothing was measured"))
        show_words(self.said, "\n".join(lines))
        show_words(self.wrong, "\n".join(problem_text(one) for one in problems))

    def _figures(self, result: Result) -> list[str]:
        """A line for each run that has a figure of this device; the last says how the device was."""
        lines, state = [], ""
        for index, run in enumerate(result.runs):
            figure = figure_on(run, self._device.name)
            if figure is not None:
                latency, faster = figure_words(result.runs, index, self._device.name)
                lines.append(" ".join(filter(None, (run.target, run.built_words, f"{latency} ms", faster))))
                state = state_words(figure)
        return [*lines, state] if lines else []


class Errand:
    """What is measured, and where the figures go."""

    def __init__(self, device: Device, result: Result, folder: Path, devices: DeviceVerbs) -> None:
        self._device, self._result, self._folder = device, result, folder
        self._history, self._trust = devices.history, devices.trust

    def run(self, tell: Tell, started: Started) -> tuple[Result, tuple[Problem, ...]]:
        """Measure, and store the figures. Raises: AceError."""
        from ace_studio.jobs.devices.measuring import measure_on  # noqa: PLC0415 - loaded when it is needed
        from ace_studio.session.device_figures import keep_figures, run_in, trust_in  # noqa: PLC0415

        run_in(self._folder, self._result)  # before anything is sent: its artifacts may be gone
        is_trusted = trust_in(self._folder, self._history, self._trust)
        measured = measure_on(
            self._device, self._result, self._folder, is_trusted=is_trusted, tell=tell, started=started
        )
        result = self._result
        if measured.figures:
            result = keep_figures(self._folder, self._result, measured.figures, self._history)
        return result, tuple(problem for _, problem in sorted(measured.problems.items()))
