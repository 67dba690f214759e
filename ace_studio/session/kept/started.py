"""Runs that have started: noted in a file each, so that one whose process dies is known all the same.

The note goes when the run has ended. One that is left by a process that is gone becomes a record of the history, with
the figures that the run wrote into its folder until then.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import RESULT_NAME, Result, ResultStatus, decode_result
from ace_studio.records.safe_file import decode_plain, read_plain, write_atomically
from ace_studio.records.scratch import is_alive, process_mark

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
            write_atomically(path, msgspec.json.encode(run), sync=False, makes_folder=True)
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
