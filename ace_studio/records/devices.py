"""Devices to measure on: this machine, hosts reached by SSH, and phones reached by adb."""

import re
from enum import StrEnum

import msgspec

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.hosts import HOST_WORD

HERE = "here"
"""Name and address of this machine, which is always in the list."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)
_SERIAL = re.compile(r"[\w.][\w.:-]*", re.ASCII)
_TAKEN = frozenset({"auto", "cpu", "cuda"})
"""Values of ``[measure] device``, which say where a job computes."""


class DeviceKind(StrEnum):
    """How a device is reached."""

    LOCAL = "local"
    SSH = "ssh"
    ADB = "adb"


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device of the list."""

    name: str
    kind: DeviceKind
    address: str
    """``user@name``, a serial number of adb, or `HERE`."""
    python: str = ""
    """Its Python there; empty for ``python3``, on this machine for the engine's. Android needs none."""

    @property
    def place(self) -> str:
        """How the address is written: ``user@name``, ``adb:SERIAL`` or ``here``."""
        return f"adb:{self.address}" if self.kind is DeviceKind.ADB else self.address


THIS_MACHINE = Device(name=HERE, kind=DeviceKind.LOCAL, address=HERE)


class DeviceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a device has for measuring."""

    name: str
    machine: str
    """Its name and processor."""
    version: str
    """Of its Python, or of Android."""
    runtimes: dict[str, str]
    """Target -> version of its runtime there; the targets whose runtime is missing are left out."""
    missing: dict[str, str]
    """Target -> the line that installs its runtime there."""
    governor: str = ""
    frequency_mhz: float | None = None
    temperature_c: float | None = None
    seconds: float = 0.0


def is_device_name(word: object) -> bool:
    """Whether a word can name a device of the list, so that ``[measure] device`` does not mean it."""
    return isinstance(word, str) and word not in _TAKEN and _NAME.fullmatch(word) is not None


def make_device(name: str, place: str, python: str = "") -> Device:
    """A device from the three words that a user writes.

    Args:
        name: What it is called here.
        place: ``user@name`` or a name of the ssh configuration; ``adb:SERIAL``, or ``adb:`` for the only one attached;
            ``here`` for another Python of this machine.
        python: The interpreter there.

    Raises: AceError(USAGE) if a word is not one.
    """
    if not is_device_name(name):
        raise AceError.of(
            ErrorCode.USAGE,
            f"'{name}' cannot be the name of a device",
            why="[measure] device has this word already"
            if name in _TAKEN
            else "a name has at most 40 letters, digits, dots and dashes",
            remedy="Name it for example phone or box-1",
        )
    kind, address = DeviceKind.SSH, place
    if place == HERE:
        kind = DeviceKind.LOCAL
    elif place.startswith("adb:"):
        kind, address = DeviceKind.ADB, place.removeprefix("adb:")
    if not (kind is DeviceKind.ADB and not address) and not _address_form(kind).fullmatch(address):
        raise AceError.of(
            ErrorCode.USAGE,
            f"'{place}' is not the address of a device",
            why="it is written user@name, adb:SERIAL, or here for this machine",
            remedy="A port and a key of ssh belong in ~/.ssh/config; adb devices lists serial numbers",
        )
    if kind is DeviceKind.ADB and python:
        raise AceError.of(
            ErrorCode.USAGE, "An Android device needs no Python", why="the runtime's own program measures there"
        )
    return Device(name=name, kind=kind, address=address, python=python)


def _address_form(kind: DeviceKind) -> re.Pattern[str]:
    return _SERIAL if kind is DeviceKind.ADB else HOST_WORD
