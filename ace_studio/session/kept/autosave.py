"""Unsaved choices of every model: written at each change, gone when they are saved or taken back.

They come back when the model is opened again, after a clean end of the window as after a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.recipes.file import parse_recipe, read_recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.safe_file import decode_plain, read_or_none, read_plain, write_private
from ace_studio.records.scratch import is_alive, process_mark

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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
    process: str = ""
    """The window, as `process_mark` says it; empty if nobody needs to be asked about these choices any more."""
    changed_s: float = 0.0
    """When, in seconds since the epoch."""


class _ChoicesOf01(msgspec.Struct, frozen=True, kw_only=True):
    """What version 0.1 stored: a file per window, with the recipe as text."""

    pid: int
    folder: str
    recipe_path: str
    recipe_toml: str
    changed_s: float


class Autosave:
    """The folder of unsaved choices, one file per model, shared by all windows.

    `write` and `forget` return at once; what reads the files waits for them first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._newest: dict[str, SavedChoices | None] = {}
        """What is to be stored next, by name; None: nothing is to be kept."""
        self._failure: AceError | None = None
        """Why choices could not be stored, the first time."""
        self._is_told = False

    def write(self, saved: SavedChoices) -> None:
        """Store choices as those of this process, unless newer ones come before their turn.

        The file is not synced to disk: it protects from a crash, not from a power cut.

        Raises: AceError, once, if earlier choices could not be stored; a full disk stays full.
        """
        failure = None if self._is_told else self._failure
        self._newest[saved.name] = saved
        _writer().submit(self._store, saved.name)
        if failure is not None:
            self._is_told = True
            raise failure

    def forget(self, name: str) -> None:
        """Remove the choices of what has this name: they were saved, or taken back.

        Those that another window has stored stay while it runs.
        """
        self._newest[name] = None
        _writer().submit(self._store, name)

    def wait(self) -> None:
        """Wait until everything is stored."""
        if _writer.cache_info().currsize:  # else nothing was written yet
            _writer().submit(int).result()

    def recall(self, name: str) -> SavedChoices | None:
        """The unsaved choices of what has this name; None if there are none, or they cannot be read."""
        self.wait()
        return read_or_none(self._path(name), SavedChoices)

    def left_behind(self) -> tuple[SavedChoices, ...]:
        """Choices of windows that are not running any more and that nobody was asked about, newest first."""
        self.wait()
        paths = tuple(self._folder.glob("*.json"))
        found = [
            saved for path in paths if (saved := read_or_none(path, SavedChoices) or self._take_over(path)) is not None
        ]
        gone = (saved for saved in found if saved.process and not is_alive(saved.process))
        return tuple(sorted(gone, key=lambda saved: saved.changed_s, reverse=True))

    def decline(self) -> None:
        """Do not ask about the choices of other windows again; they come back when their model is opened."""
        for saved in self.left_behind():
            with contextlib.suppress(OSError):
                self._write(replace(saved, process=""))

    def _take_over(self, path: Path) -> SavedChoices | None:
        """Store choices that version 0.1 left in today's form; None if the file cannot be read."""
        try:
            old = decode_plain(read_plain(path), _ChoicesOf01)
            recipe = parse_recipe(old.recipe_toml, name=path.name)
        except (OSError, msgspec.DecodeError, AceError):
            return None
        text = ""
        with contextlib.suppress(OSError, AceError):
            text = read_recipe_text(Path(old.recipe_path)) if old.recipe_path else ""
        saved = SavedChoices(
            name=old.recipe_path or str(Path(old.folder) / recipe.model.source), folder=old.folder,
            recipe_path=old.recipe_path, text=text, recipe=recipe,
            process=f"{old.pid}.", changed_s=old.changed_s,
        )  # fmt: skip
        with contextlib.suppress(OSError):
            self._write(saved)
            path.unlink()
        return saved

    def _store(self, name: str) -> None:
        """Write or remove the file of a name, on the writer's thread."""
        try:
            if name in self._newest:  # else an earlier turn stored it
                saved = self._newest.pop(name)
                if saved is None:
                    self._remove(self._path(name))
                else:
                    self._write(replace(saved, process=process_mark(os.getpid()), changed_s=time.time()))
        except Exception as error:  # noqa: BLE001 - the top of a thread: nobody else would learn of it
            self._failure = self._failure or AceError.of(
                ErrorCode.USAGE, "Unsaved choices could not be stored", why=message_of(error),
                remedy="They are lost when the window ends. Save them to a recipe", where=str(self._path(name)),
            )  # fmt: skip

    def _remove(self, path: Path) -> None:
        kept = read_or_none(path, SavedChoices)
        if kept is None or kept.process == process_mark(os.getpid()) or not is_alive(kept.process):
            path.unlink(missing_ok=True)

    def _write(self, saved: SavedChoices) -> None:
        path = self._path(saved.name)
        is_new = not path.exists()
        write_private(path, msgspec.json.encode(saved), sync=False)
        with contextlib.suppress(OSError):  # another window may remove one of them now
            kept = sorted(self._folder.glob("*.json"), key=lambda one: one.stat().st_mtime) if is_new else []
            for old in kept[:-MODELS_KEPT]:
                old.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:32]}.json"


@cache
def _writer() -> ThreadPoolExecutor:
    """The only thread that writes, whatever the folder is."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - not needed for the first picture of the window

    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="ace-autosave")
