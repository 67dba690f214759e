"""Unsaved choices of every model: written at each change, gone when they are saved or taken back.

They come back when the model is opened again, after a clean end of the window as after a crash.

Runs that have started: noted in a file each, so that one whose process dies is known all the same.

The note goes when the run has ended. One that is left by a process that is gone becomes a record of the history, with
the figures that the run wrote into its folder until then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.recipes.file import parse_recipe, read_recipe_text, recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import RESULT_NAME, Result, ResultStatus, decode_result
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


UNFINISHED = ("cancelled", "crashed", "failed")
"""How a run without a result ended, as the history says it."""
_KILLED = Problem(
    code=ErrorCode.CRASH,
    what="The run has not come to its end",
    why="the process that started it was ended, or the machine was",
    remedy="Run the recipe again",
)


class StartedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as far as it is known when it starts."""

    title: str
    folder: str
    """Folder that the recipe's paths are relative to."""
    output: str
    recipe_toml: str
    before: str = ""
    """SHA-256 of the result that an earlier run left in the output folder; empty if there is none."""
    machine: str
    """Its name: homes are shared between machines."""
    process: str = ""
    """The window or the command line that waits for it, as `process_mark` says it."""
    began_s: Annotated[float, msgspec.Meta(ge=0, lt=1e10)]
    """Seconds since the epoch."""

    @classmethod
    def of(cls, recipe: Recipe, *, title: str, folder: str, output: str) -> StartedRun:
        """A run that this process starts now."""
        return cls(
            title=title, folder=folder, output=output, recipe_toml=recipe_text(recipe), before=_hash_in(output),
            machine=socket.gethostname(), process=process_mark(os.getpid()), began_s=time.time(),
        )  # fmt: skip

    @property
    def date(self) -> datetime:
        """When it started, UTC."""
        return datetime.fromtimestamp(self.began_s, UTC)

    def figures(self) -> Result | None:
        """What it has written into its folder; None if nothing that can be read."""
        with suppress(OSError, ValueError, msgspec.DecodeError):  # a note that somebody changed may hold no path
            content = read_plain(Path(self.output) / RESULT_NAME)
            return None if sha256(content).hexdigest() == self.before else decode_result(content)
        return None


def ended_early(problem: Problem, measured: Result | None = None) -> tuple[str, Result]:
    """How a run ended that has no result, one of `UNFINISHED`, and its record: what was measured, without a choice."""
    is_cancelled = problem.code is ErrorCode.CANCELLED
    status = ResultStatus.CANCELLED if is_cancelled else ResultStatus.FAILED
    empty = Result(status=status, fingerprint="", environment={})
    result = replace(measured or empty, status=status, error=problem, chosen=None, goal_met=None, seconds=0.0)
    return str(status) if problem.code is not ErrorCode.CRASH else "crashed", result


class StartedRuns:
    """The folder of notes, shared by windows and the command line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, run: StartedRun) -> Path | None:
        """Note that a run has started; returns the file, which `remove` takes. None if it cannot be written."""
        path = self._folder / f"{uuid4().hex}.json"
        # Without it the run is lost only if this process dies. JSON holds no path that is not UTF-8.
        with suppress(OSError, UnicodeEncodeError):
            write_private(path, msgspec.json.encode(run), sync=False)
            return path
        return None

    def take_dead(self) -> Iterator[tuple[StartedRun, str, Result]]:
        """The runs of processes of this machine that are gone, how they ended and their records.

        Each is given to one caller only, as soon as it asks for it.
        """
        found = []
        for path in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.DecodeError):
                run = decode_plain(read_plain(path), StartedRun)
                if run.machine == socket.gethostname() and not is_alive(run.process):
                    found.append((run, path))
        for run, path in sorted(found, key=lambda one: one[0].began_s):
            with suppress(OSError):
                path.unlink()  # whoever succeeds has it
                yield run, *_record_of(run)


def remove(note: Path | None) -> None:
    """The run has ended."""
    if note is not None:
        with suppress(OSError):
            note.unlink(missing_ok=True)


def _record_of(run: StartedRun) -> tuple[str, Result]:
    """How a run ended that nobody has heard of: it may have written its whole result."""
    found = run.figures()
    if found is not None and found.status in (ResultStatus.OK, ResultStatus.GOAL_NOT_MET):
        return str(found.status), found
    return ended_early(_KILLED, found)


def _hash_in(output: str) -> str:
    with suppress(OSError):
        return sha256(read_plain(Path(output) / RESULT_NAME)).hexdigest()
    return ""
