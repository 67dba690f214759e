"""The dialog with the list of devices to measure on: three fields add one, and a check says what one has."""

from functools import partial

from PySide6.QtWidgets import QDialog, QWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import GAP, MARGIN, column, row
from ace_studio.gui.widgets.small import button, fit_screen, label, named, selectable, show_words, text_field
from ace_studio.gui.widgets.table_look import plain_table, select_rows
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.widgets.work_thread import Started, Tell, WorkThread
from ace_studio.gui.words.problems import problem_text
from ace_studio.records.devices import Device, DeviceCheck
from ace_studio.records.errors import AceError
from ace_studio.session.session import Session

_INTRODUCTION = tr(
    "Finished artifacts are measured on these. Only artifacts and inputs are sent there, never code of the model. "
    "A host is reached by the system's ssh, an Android device by adb."
)


class DevicesDialog(QDialog):
    """The list, its three fields, and what the check of a device said."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Devices to measure on"))
        self.setProperty("help", "devices")
        fit_screen(self, 640, 520)
        self._session = session
        self._devices: tuple[Device, ...] = ()
        self.model = ColumnsModel(self)
        self.table = plain_table(self.model, tr("Devices"))
        self.name = text_field(tr("Name of the device"), "box")
        self.place = text_field(tr("Address of the device"), "user@box, adb:SERIAL, here")
        self.python = text_field(tr("Its Python"), tr("empty: python3"))
        self.add_button = button(tr("Add"), self._add, role="primary")
        self.check_button = button(tr("Check"), self._check)
        self.remove_button = button(tr("Remove"), self._remove)
        close = button(tr("Close"), self.accept)
        self.add_button.setDefault(True)
        self.said = selectable(label("", "dim"))
        self._say = partial(show_words, self.said)
        self.checking = WorkThread(self)
        self.checking.finished.connect(self._checked)
        self.finished.connect(lambda _: self.checking.stop())
        fields = row(*(named(*one) for one in (
            (tr("Name"), self.name), (tr("Address"), self.place), (tr("Its Python"), self.python)
        )), named("", self.add_button))  # fmt: skip
        self.setLayout(
            column(
                label(_INTRODUCTION, "dim"), self.table, row(self.check_button, self.remove_button, None), fields,
                self.said, row(None, close), margin=MARGIN, gap=GAP, stretch=1,
            )
        )  # fmt: skip
        for field in (self.name, self.place):
            field.textChanged.connect(self._edited)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._edited())
        self._show()
        self.name.setFocus()

    @property
    def chosen(self) -> Device | None:
        """The device of the selected row."""
        rows = self.table.selectionModel().selectedRows()
        return self._devices[self.model.source_row(rows[0].row())] if rows else None

    def _show(self) -> None:
        self._devices = devices = self._session.devices.all()
        self.model.set_columns(
            [
                Column(title="name", values=[one.name for one in devices]),
                Column(title="reached by", values=[str(one.kind) for one in devices]),
                Column(title="address", values=[one.place for one in devices], width=190),
                Column(title="Python", values=[one.python for one in devices], width=180),
            ]
        )
        for at, each in enumerate(self.model.columns):
            self.table.setColumnWidth(at, each.width)
        self._edited()

    def _edited(self) -> None:
        chosen = self.chosen
        self.add_button.setEnabled(bool(self.name.text().strip() and self.place.text().strip()))
        self.check_button.setEnabled(chosen is not None and not self.checking.isRunning())
        self.remove_button.setEnabled(chosen is not None and chosen != self._devices[0])

    def _add(self) -> None:
        words = [field.text().strip() for field in (self.name, self.place, self.python)]
        try:
            self._session.devices.add(*words)
        except AceError as error:
            self._say(problem_text(error.problem), "bad")
            return
        for field in (self.name, self.place, self.python):
            field.clear()
        self._say(tr("{name} was added; Check says what it has.", name=words[0]), "good")
        self._show()
        select_rows(self.table, [self.model.view_row(len(self._devices) - 1)])

    def _remove(self) -> None:
        if (device := self.chosen) is None:
            return
        try:
            self._session.devices.remove(device.name)
        except AceError as error:
            self._say(problem_text(error.problem), "bad")
        else:
            self._say(tr("{name} was removed; its figures stay.", name=device.name), "dim")
        self._show()

    def _check(self) -> None:
        if (device := self.chosen) is None:
            return
        self._say(tr("Asking {host} …", host=device.name), "dim")
        self.checking.begin(partial(_asked, device))
        self._edited()

    def _checked(self) -> None:
        self._edited()
        found, problem = self.checking.found, self.checking.problem
        if problem is not None:
            self._say(problem_text(problem), "bad")
        elif isinstance(found, DeviceCheck):
            self._say(f"{found.name}: {check_words(found)}", "good" if found.runtimes else "warn")


def _asked(device: Device, _tell: Tell, started: Started) -> DeviceCheck:
    from ace_studio.jobs.devices.measuring import check_device  # noqa: PLC0415 - loaded when it is needed

    return check_device(device, started=started)


def check_words(found: DeviceCheck) -> str:
    """What a device has, on a line for each runtime that is missing."""
    has = ", ".join(found.runtimes) or tr("nothing")
    lines = [tr("{machine}, {version}. Measures artifacts of: {has}.", machine=found.machine, version=found.version,
                has=has)]  # fmt: skip
    lines += [tr("{target} is missing: {line}", target=target, line=line) for target, line in found.missing.items()]
    return "\n".join(lines)
