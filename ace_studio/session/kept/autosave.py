"""Unsaved choices that survive a crash: one small file per running window, gone after a clean close."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

import msgspec
import psutil

from ace_studio.records.errors import AceError
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.recipe import Recipe


class SavedChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of a window at its last change."""

    pid: int
    process_started_s: float
    """Creation time of that process: a number alone may belong to another process by now."""
    folder: str
    recipe_path: str
    recipe_toml: str
    changed_s: float
    """When, in seconds since the epoch."""

    def recipe(self) -> Recipe | None:
        """The choices; None if they cannot be read."""
        try:
            return parse_recipe(self.recipe_toml, name="autosave")
        except AceError:
            return None


class Autosave:
    """Writes this window's choices, and finds those of windows that crashed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / f"{os.getpid()}-{uuid.uuid4().hex[:8]}.json"

    def write(self, recipe: Recipe, *, folder: str, recipe_path: str, now_s: float) -> None:
        """Store the choices. The file is not synced to disk: it protects from a crash, not from a power cut.

        Errors are ignored; a full disk is reported when the user saves.
        """
        saved = SavedChoices(
            pid=os.getpid(),
            process_started_s=_started_s(os.getpid()),
            folder=folder,
            recipe_path=recipe_path,
            recipe_toml=recipe_text(recipe),
            changed_s=now_s,
        )
        temporary = self._own.with_suffix(".tmp")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(msgspec.json.encode(saved))
            temporary.replace(self._own)

    def clear(self) -> None:
        """Forget the choices of this window: they are saved or discarded."""
        with contextlib.suppress(OSError):
            self._own.unlink(missing_ok=True)

    def left_behind(self) -> tuple[SavedChoices, ...]:
        """Choices of windows that are not running any more, newest first."""
        found = [saved for _, saved in self._crashed()]
        return tuple(sorted(found, key=lambda saved: saved.changed_s, reverse=True))

    def discard_left_behind(self) -> None:
        """Forget the choices of crashed windows: they were restored, or declined."""
        for path, _ in self._crashed():
            with contextlib.suppress(OSError):
                path.unlink()

    def _crashed(self) -> list[tuple[Path, SavedChoices]]:
        found = []
        for path in self._folder.glob("*.json"):
            try:
                saved = msgspec.json.decode(path.read_bytes(), type=SavedChoices)
            except (OSError, msgspec.DecodeError):
                continue
            if path != self._own and _started_s(saved.pid) != saved.process_started_s:
                found.append((path, saved))
        return found


def _started_s(pid: int) -> float:
    """When a process began, in seconds since the epoch; 0 if there is none."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0
