"""The settings: one table from which the dialog, the defaults and the file are made."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.places import resource_folder
from ace_studio.records.recipes.recipe import LimitsChoice
from ace_studio.records.safe_file import read_or_before, write_atomically

Value = str | int | float | bool
RECENT_LIMIT = 12
INTERPRETERS_KEY = "window.interpreters"
"""What listeners are told when the Python of a folder was chosen."""
MOST_NAMES = 50


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. Its type is the type of its default."""

    key: str
    group: str
    """Heading that it stands under; rows of one group follow each other."""
    label: str
    help: str
    default: Value
    choices: tuple[str, ...] = ()
    """Allowed values, if it is a choice."""
    low: float | None = None
    high: float | None = None
    is_path: bool = False
    """Whether a dialog should offer to browse for it."""

    @property
    def kind(self) -> type[Value]:
        """``str``, ``int``, ``float`` or ``bool``."""
        return type(self.default)

    def fault(self, value: object) -> str:
        """What is wrong with a value, or an empty string."""
        if type(value) is not self.kind and not (self.kind is float and type(value) is int):
            return f"{self.label} must be a {self.kind.__name__}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"{self.label} must be one of {', '.join(self.choices)}, not {value!r}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            low, high = self.low, self.high
            if (low is not None and value < low) or (high is not None and value > high):
                return f"{self.label} must lie in [{low}, {high}], not {value!r}"
        return ""


_ROWS = (
    Setting(key="theme", group="Look", label="Theme", help="Colours of the window. System follows the desktop.",
            default="system", choices=("system", "light", "dark", "high-contrast")),
    Setting(key="scale_percent", group="Look", label="Scale",
            help="Size of text and icons, in percent. Takes effect at the next start.", default=100, low=50,
            high=300),
    Setting(key="language", group="Look", label="Language",
            help="Language of the window; most engine messages are English. Takes effect at the next start.",
            default="English",
            choices=("English", *sorted(pack.stem for pack in (resource_folder() / "languages").glob("*.json")))),
    Setting(key="interpreter", group="Engine", label="Python of the engine",
            help="Loads and runs your models. Empty: the window's own. See Engine > Engine of this project too.",
            default="", is_path=True),
    Setting(key="cancel_grace_s", group="Engine", label="Grace period when cancelling",
            help="Seconds that a cancelled job has to stop before its process is ended.", default=3.0, low=0.0,
            high=4.0),
    Setting(key="memory_limit_mb", group="Engine", label="Memory of a job",
            help="In MB, all its processes together; it is ended there. 0: what is free at its start, less a reserve.",
            default=0.0, low=0.0),
    Setting(key="step_limit_s", group="Engine", label="Time without progress",
            help="In seconds; a job that reports nothing for longer is ended. 0: the window tells, and you decide.",
            default=0.0, low=0.0),
    Setting(key="contain", group="Engine", label="Contain jobs that run code",
            help="No network, and writes only in the folder of the run. Needs Linux 6.2. Auto: Try fix, and downloads.",
            default="auto", choices=("auto", "always", "never")),
    Setting(key="runs_folder", group="Files", label="Folder of the runs",
            help="Where results and artifacts of runs go. Empty: a folder of the application.", default="",
            is_path=True),
    Setting(key="reopen_last", group="Files", label="Open the last file at start",
            help="Continue where you stopped.", default=False),
    Setting(key="log_lines", group="Files", label="Lines kept in the log", help="Older lines are removed.",
            default=2000, low=100, high=100_000),
)  # fmt: skip
SETTINGS: dict[str, Setting] = {setting.key: setting for setting in _ROWS}


class Settings:
    """The user's settings, kept as JSON. Unknown keys survive; a bad value counts as its default.

    A change is written into what the file holds then: another window may have changed other settings.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unsaved: dict[str, object] = {}
        self._stored: dict[str, object] = {}
        self._read()
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call ``listener(key)`` after every change; ``recent_files`` is a key too."""
        self._listeners.append(listener)

    def get(self, key: str) -> Value:
        """The value of a setting, or its default. Raises: KeyError if there is no such row."""
        row = SETTINGS[key]
        value = self._stored.get(key, row.default)
        if key == "contain" and value is True:
            value = "always"  # as it was stored when it was a switch
        if row.fault(value) or not isinstance(value, str | int | float | bool):
            return row.default
        return row.kind(value)

    def set(self, key: str, value: Value) -> None:
        """Change and save a setting.

        Raises: KeyError if there is no such row; AceError(USAGE) if the value does not fit it or cannot be saved.
        """
        fault = SETTINGS[key].fault(value)
        if fault:
            raise AceError.of(ErrorCode.USAGE, fault, remedy=SETTINGS[key].help)
        self._store(key, value)

    def interpreter(self, folder: str = "") -> str:
        """The interpreter of the engine on this machine for the models of a folder."""
        from ace_studio.jobs.launch import default_interpreter  # noqa: PLC0415 - not needed for the first picture

        return self.chosen_interpreter(folder) or default_interpreter()

    def chosen_interpreter(self, folder: str) -> str:
        """What the user chose for a folder, or for all; empty if nothing."""
        return self.project_interpreter(folder) or str(self.get("interpreter"))

    def project_interpreter(self, folder: str) -> str:
        """What the user chose for a folder or the nearest one above it; empty if nothing."""
        chosen, place = self.recall_all("interpreters"), Path(os.path.abspath(folder))  # noqa: PTH100 - and no links
        above = (place, *place.parents) if folder else ()
        return next((str(chosen[str(one)]) for one in above if str(one) in chosen), "")

    def choose_interpreter(self, folder: str, python: str) -> None:
        """Choose the interpreter for a folder and what is below it; without a folder for all that have none.

        An empty ``python`` takes the choice back. Raises: AceError(USAGE) if it cannot be saved.
        """
        if folder:
            self.remember_newest("interpreters", os.path.abspath(folder), python or None)  # noqa: PTH100
        else:
            self.set("interpreter", python)

    @property
    def limits(self) -> LimitsChoice:
        """What a job may use where its recipe says nothing."""
        memory_mb, step_s = (float(self.get(key)) for key in ("memory_limit_mb", "step_limit_s"))
        return LimitsChoice(memory_mb=memory_mb, step_s=step_s)

    @property
    def contain(self) -> bool | None:
        """Whether jobs are contained; None: as fits the job."""
        return {"always": True, "never": False}.get(str(self.get("contain")))

    @property
    def recent_files(self) -> tuple[str, ...]:
        """Paths opened lately, newest first."""
        stored = self._stored.get("recent_files", [])
        return tuple(str(path) for path in stored)[:RECENT_LIMIT] if isinstance(stored, list) else ()

    def add_recent(self, path: str) -> None:
        """Put a path first in the recent files. Raises: AceError(USAGE) if it cannot be saved."""
        self._read()
        self._store("recent_files", [path, *(old for old in self.recent_files if old != path)][:RECENT_LIMIT])

    def forget_recent(self, path: str) -> None:
        """Take a path out of the recent files. Raises: AceError(USAGE) if it cannot be saved."""
        self._read()
        self._store("recent_files", [old for old in self.recent_files if old != path])

    def remember(self, key: str, value: object) -> None:
        """Store state of the window that is not a setting, such as its geometry, under ``window.KEY``.

        Raises: AceError(USAGE) if it cannot be saved.
        """
        self._store(f"window.{key}", value)

    def remember_newest(self, key: str, name: str, value: object) -> None:
        """Store a value by name under a key; the values of the `MOST_NAMES` newest names stay, None removes one.

        Raises: AceError(USAGE) if it cannot be saved.
        """
        self._read()
        kept = {other: stored for other, stored in self.recall_all(key).items() if other != name}
        if value is not None:
            kept[name] = value
        self.remember(key, dict([*kept.items()][-MOST_NAMES:]))

    def recall_all(self, key: str) -> dict[str, Any]:
        """What `remember_newest` stored under a key, the newest last."""
        found = self.recall(key)
        return found if isinstance(found, dict) else {}

    def recall(self, key: str) -> object:
        """The value that `remember` stored, or None."""
        return self._stored.get(f"window.{key}")

    def _read(self) -> bool:
        """Take over what the file holds now. Returns: whether it may become the version before."""
        found, fault = read_or_before(self._path, dict[str, object])
        self._stored = (found if found is not None else self._stored if fault else {}) | self._unsaved
        return found is None or not fault

    def _store(self, key: str, value: object) -> None:
        self._unsaved[key] = value
        keep_backup = self._read()
        remedy = "The change holds until the window closes. Make the folder writable to keep it"
        try:
            with explained(ErrorCode.USAGE, "The settings could not be saved", remedy=remedy, where=self._path):
                content = msgspec.json.format(msgspec.json.encode(self._stored), indent=2)
                write_atomically(self._path, content, keep_backup=keep_backup, makes_folder=True)
                self._unsaved.clear()
        finally:
            for listener in self._listeners:
                listener(key)
