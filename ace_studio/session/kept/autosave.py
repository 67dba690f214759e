"""Unsaved choices of every model: written at each change, gone when they are saved or taken back.

They come back when the model is opened again, after a clean end of the window as after a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

import msgspec

from ace_studio.records.recipes.recipe import Recipe

MODELS_KEPT = 200
"""Models whose choices are kept; those changed longest ago go first."""


class SavedChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The unsaved choices of one model or recipe file, as they were last changed."""

    name: str
    """What was open: path of the recipe or of the model, or a past run."""
    folder: str
    recipe_path: str
    """Empty if there is no recipe file."""
    text: str
    """The recipe file's text when it was opened or saved."""
    recipe: Recipe
    pid: int = 0
    """The process of the window; 0 if nobody needs to be asked about these choices any more."""
    process_started_s: float = 0.0
    """Creation time of that process: a number alone may belong to another process by now."""
    changed_s: float = 0.0
    """When, in seconds since the epoch."""


class Autosave:
    """The folder of unsaved choices, one file per model, shared by all windows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, saved: SavedChoices) -> None:
        """Store choices as those of this process.

        The file is not synced to disk: it protects from a crash, not from a power cut. Errors are ignored; a full disk
        is reported when the user saves.
        """
        own = os.getpid()
        self._write(msgspec.structs.replace(saved, pid=own, process_started_s=_started_s(own), changed_s=time.time()))

    def recall(self, name: str) -> SavedChoices | None:
        """The unsaved choices of what has this name; None if there are none, or they cannot be read."""
        return _read(self._path(name))

    def forget(self, name: str) -> None:
        """Remove the choices of what has this name: they were saved, or taken back."""
        with contextlib.suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def left_behind(self) -> tuple[SavedChoices, ...]:
        """Choices of windows that are not running any more and that nobody was asked about, newest first."""
        found = [saved for saved in map(_read, self._folder.glob("*.json")) if saved is not None and saved.pid]
        gone = (saved for saved in found if _started_s(saved.pid) != saved.process_started_s)
        return tuple(sorted(gone, key=lambda saved: saved.changed_s, reverse=True))

    def decline(self) -> None:
        """Do not ask about the choices of other windows again; they come back when their model is opened."""
        for saved in self.left_behind():
            self._write(msgspec.structs.replace(saved, pid=0))

    def _write(self, saved: SavedChoices) -> None:
        path = self._path(saved.name)
        temporary = path.with_suffix(".tmp")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists()
            temporary.write_bytes(msgspec.json.encode(saved))
            temporary.replace(path)
            if is_new:
                kept = sorted(self._folder.glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True)
                for old in kept[MODELS_KEPT:]:
                    old.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:32]}.json"


def _read(path: Path) -> SavedChoices | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SavedChoices)
    except (OSError, msgspec.DecodeError):
        return None


def _started_s(pid: int) -> float:
    """When a process began, in seconds since the epoch; 0 if there is none."""
    import psutil  # noqa: PLC0415 - not needed for the first picture of the window

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0
