"""The verbs about devices: the list of them, and the figures that one gave."""

from ace_studio.records.devices import Device, make_device
from ace_studio.records.results import Result
from ace_studio.records.results.on_devices import is_same_run
from ace_studio.session.kept.devices import DeviceList
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore
from ace_studio.session.state import SessionState


class DeviceVerbs:
    """The user's list, which the command line shares. Measuring takes long, and is done in a thread of the window."""

    def __init__(self, state: SessionState, devices: DeviceList, history: History, trust: TrustStore) -> None:
        self._state = state
        self._devices = devices
        self.history = history
        """For the thread that measures: it may wait for a program that holds the history."""
        self.trust = trust

    def all(self) -> tuple[Device, ...]:
        """The devices now. What is wrong with the list becomes a problem of the document."""
        devices, problem = self._devices.read()
        if problem is not None and problem not in self._state.document.problems:
            self._state.report(problem)
        return devices

    def add(self, name: str, place: str, python: str) -> None:
        """Add a device by its three words. Raises: AceError, for the dialog that asked for them."""
        self._devices.add(make_device(name, place, python))

    def remove(self, name: str) -> None:
        """Take a device out of the list. Raises: AceError as `DeviceList.remove`."""
        self._devices.remove(name)

    def measured(self, result: Result) -> None:
        """Show a result with new figures of devices, if its run is still the one that is shown."""
        shown = self._state.document.result
        if shown is not None and is_same_run(shown, result):
            self._state.change(result=result, runs=result.runs)
