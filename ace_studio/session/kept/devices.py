"""The user's list of devices to measure on, kept as JSON beside the settings."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ace_studio.records.devices import HERE, THIS_MACHINE, Device
from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.safe_file import read_or_before, write_atomically
from ace_studio.session.kept.folders import UserFolders


class DeviceList:
    """The devices; this machine is always the first. Every call reads the file: others may have changed it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of_user(cls) -> DeviceList:
        """The list that the window and the command line share."""
        return cls(UserFolders.of_user().devices)

    def read(self) -> tuple[tuple[Device, ...], Problem | None]:
        """The devices, and what was wrong with the file. If it is damaged, those of the version before count."""
        found, fault = read_or_before(self._path, tuple[Device, ...])
        problem = Problem(
            code=ErrorCode.BAD_FILE,
            what="The list of devices is damaged; the one before it is used",
            why=fault,
            remedy="Add what is missing again; that writes a new list",
            where=str(self._path),
        )
        devices = (THIS_MACHINE, *(device for device in found or () if device.name != HERE))
        return devices, problem if fault else None

    def get(self, name: str) -> Device:
        """The device of this name. Raises: AceError(NOT_FOUND) with the names that there are."""
        devices, _ = self.read()
        for device in devices:
            if device.name == name:
                return device
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"There is no device '{name}' in the list",
            why=f"it has {', '.join(device.name for device in devices)}",
            remedy=f"Add it: ace-studio devices add {name} user@box",
        )

    def add(self, device: Device) -> None:
        """Add a device. Raises: AceError(USAGE) if the name is taken; AceError(NOT_FOUND) if it cannot be written."""
        devices, _ = self.read()
        if any(one.name == device.name for one in devices):
            raise AceError.of(
                ErrorCode.USAGE,
                f"There is a device '{device.name}' already",
                remedy=f"Choose another name, or remove that one: ace-studio devices remove {device.name}",
            )
        self._write([*devices[1:], device])

    def remove(self, name: str) -> None:
        """Take a device out of the list. Raises: AceError as `get`; USAGE for this machine."""
        if self.get(name) == THIS_MACHINE:
            raise AceError.of(ErrorCode.USAGE, "This machine stays in the list", why="it needs no connection")
        devices, _ = self.read()
        self._write([device for device in devices[1:] if device.name != name])

    def _write(self, devices: list[Device]) -> None:
        what = "The list of devices could not be saved"
        with explained(ErrorCode.NOT_FOUND, what, remedy="Make the folder writable", where=self._path):
            content = msgspec.json.format(msgspec.json.encode(devices), indent=2)
            is_whole = self.read()[1] is None  # a damaged list must not become the version before
            write_atomically(self._path, content, keep_backup=is_whole, makes_folder=True)
