"""All runs that have ended, in SQLite.

A record never changes except for its name, its tags, its note and the figures of devices.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import msgspec

from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.private_folder import make_private
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Result, decode_result
from ace_studio.records.results.on_devices import is_same_run
from ace_studio.records.results.words import ms_words
from ace_studio.records.safe_file import decode_plain, read_plain, write_private
from ace_studio.session.kept.autosave import UNFINISHED, StartedRun, StartedRuns, ended_early
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history_table import prepare

if TYPE_CHECKING:
    import sqlite3


class _Row(TypedDict):
    """What `History.add` stores; the types of a run that waits in a file are checked."""

    date: str
    fingerprint: str
    title: str
    status: str
    target: str
    precision: str
    output: str
    tags: str
    recipe_toml: str
    result_json: bytes
    folder: str
    latency_ms: float | None
    speedup: float | None
    float_speedup: NotRequired[float | None]
    """Missing in a run that an earlier version left waiting."""
    metric: float | None
    metric_drop: float | None
    size_bytes: int | None


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. The numbers are those of the chosen target; None if it has none."""

    id: int
    date: str
    """ISO 8601, UTC."""
    fingerprint: str
    title: str
    status: str
    """A `ResultStatus`, or ``crashed``."""
    target: str
    precision: str
    latency_ms: float | None
    speedup: float | None
    metric: float | None
    metric_drop: float | None
    size_bytes: int | None
    output: str
    """Folder with the artifacts."""
    tags: tuple[str, ...] = ()
    note: str = ""
    float_speedup: float | None = None
    """Over fp32 in the same runtime; None too for a run of an earlier version."""
    name: str = ""
    """What the user calls it."""

    @property
    def label(self) -> str:
        """What it is called: its name, else its model."""
        return self.name or self.title

    @property
    def is_unfinished(self) -> bool:
        """Whether it ended before its result; then there are no figures of a chosen target."""
        return self.status in UNFINISHED

    @property
    def summary(self) -> str:
        """The run in one line: what was chosen, and its figures."""
        parts = [self.status, f"{self.target} {self.precision}".strip()]
        figures = (
            (self.latency_ms, f"{ms_words(self.latency_ms)} ms"),
            (self.speedup, "{:.2f}x"),
            (self.float_speedup, "{:.2f}x over fp32 there"),
            (self.metric_drop, "metric drop {:.2%}"),
        )
        parts += [form.format(figure) for figure, form in figures if figure is not None]
        return ", ".join(part for part in parts if part)


_OF_CHOSEN = ("speedup", "float_speedup", "metric", "metric_drop", "size_bytes")
_FIGURES = ("latency_ms", *_OF_CHOSEN)
MOST_LISTED = 1000
"""Runs that a list shows: the newest."""
LONGEST_QUERY_S = 30.0
"""Seconds after which a query is ended: the views of a database that somebody changed may have no end."""
_STEPS_BETWEEN_LOOKS = 200_000
_SUMMARY_COLUMNS = ", ".join(RunSummary.__struct_fields__)


class RemovedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were taken out of the history, to put back."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A past run with its recipe and result."""

    summary: RunSummary
    recipe_toml: str
    result: Result
    folder: str = ""
    """Folder that the recipe's paths are relative to; empty for runs that an earlier version stored."""


class HistoryBusyError(AceError):
    """Another program holds the history; the same call may succeed later."""


class History:
    """The database of past runs. It is opened for each call, because windows and the command line share it.

    Every call raises `HistoryBusyError` if another program holds the database for longer than ``wait_s``.
    """

    def __init__(self, path: Path, *, wait_s: float = 5.0) -> None:
        self._path = path
        self.wait_s = wait_s
        self.started = StartedRuns(path.with_suffix(".started"))
        """Notes of the runs that go on."""

    @classmethod
    def open_default(cls) -> History:
        """The history of this user, which the window and the command line share."""
        return cls(UserFolders.of_user().history)

    def add(
        self,
        result: Result,
        *,
        recipe_toml: str,
        title: str,
        output: str = "",
        folder: str = "",
        tags: Sequence[str] = (),
        date: datetime | None = None,
        status: str = "",
    ) -> int:
        """Append a run and return its id. ``status`` is that of the result unless it is given.

        Raises: AceError(NOT_FOUND) if the database cannot be written; then the run waits in a file beside it, and the
        next call that can use the database takes it in. The same run may be added again meanwhile.
        """
        chosen = result.runs[result.chosen] if result.chosen is not None else None
        latency = chosen.latency_ms if chosen else None
        row = {
            "date": (date or datetime.now(UTC)).isoformat(timespec="seconds"),
            "fingerprint": result.fingerprint,
            "title": title,
            "status": status or str(result.status),
            "target": chosen.target if chosen else "",
            "precision": chosen.built_words if chosen else "",
            "latency_ms": latency.p50 if latency else None,
            "output": output,
            "tags": _tags_text(tags),
            "recipe_toml": recipe_toml,
            "result_json": msgspec.json.encode(result),
            "folder": folder,
            **{name: getattr(chosen.decided if chosen else None, name, None) for name in _OF_CHOSEN},
        }
        name = hashlib.sha256(b"\0".join([msgspec.json.encode(result), output.encode(errors="replace")])).hexdigest()
        waiting = self._waiting / f"{name[:32]}.run"
        is_waiting = waiting.exists()
        try:
            with self._open() as database:  # takes in what waits
                return _last_id(database) if is_waiting else _insert(database, row)
        except UnicodeEncodeError as error:  # of a folder or a title; SQLite holds UTF-8 only
            raise AceError.of(
                ErrorCode.NOT_FOUND, "The run is not in the history", why=str(error),
                remedy="Rename the model's file or its folder", where=str(self._path),
            ) from error  # fmt: skip
        except AceError:
            if not is_waiting:
                with suppress(OSError):
                    write_private(waiting, msgspec.msgpack.encode(row))
            raise

    def remember(self, result: Result, recipe: Recipe, folder: Path, *, output: Path) -> int:
        """Append a finished run of a recipe, and return its id. Raises: as `add`."""
        return self.add(
            result,
            recipe_toml=recipe_text(recipe),
            title=f"{folder.name}/{recipe.model.source}",
            output=str(output.absolute()),
            folder=str(folder.absolute()),
        )

    def add_unfinished(self, run: StartedRun, problem: Problem, measured: Result | None = None) -> int | None:
        """Append a run that ended without a result, with the figures that it left in its folder, else ``measured``.

        Returns: its id; None for one that was refused for want of trust: it never began. Raises: as `add`.
        """
        if problem.code is ErrorCode.UNTRUSTED:
            return None
        return self._add_started(run, *ended_early(problem, run.figures() or measured))

    def _add_started(self, run: StartedRun, status: str, result: Result) -> int:
        return self.add(
            result, recipe_toml=run.recipe_toml, title=run.title, output=run.output, folder=run.folder,
            date=run.date, status=status,
        )  # fmt: skip

    def list(self, *, limit: int = MOST_LISTED, fingerprint: str = "", tag: str = "") -> tuple[RunSummary, ...]:
        """The newest runs, newest first; only those of a fingerprint or with a tag if asked.

        Runs whose window or command died before them are taken in first.

        Raises: AceError(NOT_FOUND) if the database cannot be read.
        """
        for run, status, result in self.started.take_dead():
            self._add_started(run, status, result)
        with self._open() as database:
            rows = database.execute(
                f"SELECT {_SUMMARY_COLUMNS} FROM run "
                "WHERE (:fingerprint = '' OR fingerprint = :fingerprint) "
                "AND (:tag = '' OR json_valid(run.tags) "
                "AND EXISTS (SELECT 1 FROM json_each(run.tags) WHERE value = :tag)) "
                "ORDER BY id DESC LIMIT :limit",
                {"limit": limit, "fingerprint": fingerprint, "tag": tag},
            ).fetchall()
        return tuple(_summary(row) for row in rows)

    def seconds_of(self, folder: Path, source: str) -> tuple[float, ...]:
        """What the last runs of a model took that came to a result, newest first. Raises: as `list`."""
        with self._open() as database:
            rows = database.execute(
                "SELECT json_extract(CAST(result_json AS TEXT), '$.seconds') FROM run "
                "WHERE folder = ? AND title IN (?, ?) AND status IN ('ok', 'goal-not-met') ORDER BY id DESC LIMIT 20",
                (str(folder), Path(source).name, f"{folder.name}/{source}"),
            ).fetchall()
        return tuple(float(seconds) for (seconds,) in rows if seconds)

    def usual_seconds(self, folder: Path, source: str) -> float | None:
        """Median of `seconds_of`; None without runs, and if the history cannot be read or asked: it is a forecast."""
        from statistics import median  # noqa: PLC0415 - takes long, and the window starts without it

        with suppress(AceError, UnicodeEncodeError):  # SQLite takes no folder whose name is not UTF-8
            return median(found) if (found := self.seconds_of(folder.absolute(), source)) else None
        return None

    def seconds_of_others(self, folder: Path, source: str) -> tuple[tuple[float, int | None], ...]:
        """Seconds and bytes of the last runs of other models that came to a result; none as in `usual_seconds`."""
        with suppress(AceError, UnicodeEncodeError), self._open() as database:
            rows = database.execute(
                "SELECT json_extract(text, '$.seconds'), json_extract(text, '$.baseline.size_bytes') FROM ("
                "SELECT CAST(result_json AS TEXT) AS text FROM run WHERE status IN ('ok', 'goal-not-met') "
                "AND NOT (folder = ? AND title IN (?, ?)) ORDER BY id DESC LIMIT 30)",
                (str(folder.absolute()), Path(source).name, f"{folder.name}/{source}"),
            ).fetchall()
            return tuple((float(seconds), size) for seconds, size in rows if seconds)
        return ()

    def usual_memory(self, folder: Path, source: str) -> int | None:
        """The most that an artifact of the last runs of a model took, bytes; None as in `usual_seconds`."""
        with suppress(AceError, UnicodeEncodeError), self._open() as database:
            ((found,),) = database.execute(
                "SELECT MAX(json_extract(one.value, '$.peak_memory_bytes')) FROM (SELECT result_json FROM run "
                "WHERE folder = ? AND title IN (?, ?) ORDER BY id DESC LIMIT 20) AS last, "
                "json_each(CAST(last.result_json AS TEXT), '$.runs') AS one",
                (str(folder.absolute()), Path(source).name, f"{folder.name}/{source}"),
            )
            return None if found is None else int(found)
        return None

    def get(self, run_id: int) -> PastRun:
        """A past run with its recipe and result.

        Raises: AceError(NOT_FOUND) if there is none with this id; AceError(BAD_FILE) if its record is damaged.
        """
        with self._open() as database:
            row = database.execute(
                f"SELECT {_SUMMARY_COLUMNS}, recipe_toml, folder, result_json FROM run WHERE id = ?", (run_id,)
            ).fetchone()
        if row is None:
            raise self._no_run(run_id)
        what, remedy = f"The record of run {run_id} is damaged", "Remove it from the history, and run the recipe again"
        with explained(ErrorCode.BAD_FILE, what, remedy=remedy, where=self._path, of=(msgspec.DecodeError, TypeError)):
            result = decode_result(row[-1])
        return PastRun(summary=_summary(row[:-3]), recipe_toml=str(row[-3]), folder=str(row[-2]), result=result)

    def set_tags(self, run_id: int, tags: Sequence[str]) -> None:
        """Replace the tags of a run.

        Raises: AceError(NOT_FOUND) if there is no such run or the database cannot be written.
        """
        self._set(run_id, "tags", _tags_text(tags))

    def set_name(self, run_id: int, name: str) -> None:
        """Call a run so; empty for no name. Raises as `set_tags` does."""
        self._set(run_id, "name", name)

    def set_note(self, run_id: int, note: str) -> None:
        """Replace the note of a run. Raises as `set_tags` does."""
        self._set(run_id, "note", note)

    def keep_figures(self, output: Path, result: Result) -> None:
        """Store the figures that devices gave since, in the records of the run that wrote this folder.

        Raises: AceError(NOT_FOUND) if the database cannot be written.
        """
        with self._open() as database:
            content = msgspec.json.encode(result)
            for run_id, stored in _stored(database, "output", str(output.absolute())):
                if is_same_run(stored, result):
                    database.execute("UPDATE run SET result_json = ? WHERE id = ?", (content, run_id))

    def has_artifact(self, output: Path, sha256: str) -> bool:
        """Whether a run of this user wrote an artifact with this content into a folder. Raises: as `list`."""
        with self._open() as database:
            found = [run for _, stored in _stored(database, "output", str(output.absolute())) for run in stored.runs]
        return any(sha256 and run.artifact_sha256 == sha256 for run in found)

    def own_run(self, result: Result) -> PastRun | None:
        """The record of a result that lies anywhere; None if no run of this user gave it. Raises: as `list`."""
        with self._open() as database:
            known = _stored(database, "fingerprint", result.fingerprint)
        own = [run_id for run_id, one in known if is_same_run(one, result)]
        return self.get(own[-1]) if own else None

    def _set(self, run_id: int, column: str, text: str) -> None:
        with self._open() as database:
            cursor = database.execute(f"UPDATE run SET {column} = ? WHERE id = ?", (text, run_id))
            if cursor.rowcount == 0:
                raise self._no_run(run_id)

    def remove(self, run_ids: Sequence[int]) -> RemovedRuns:
        """Forget runs, and return their records for `put_back`; their folders stay.

        Raises: AceError(NOT_FOUND) if the database cannot be written.
        """
        with self._open() as database:
            places = ", ".join("?" * len(run_ids))
            cursor = database.execute(f"SELECT * FROM run WHERE id IN ({places})", tuple(run_ids))
            removed = RemovedRuns(columns=tuple(one[0] for one in cursor.description), rows=tuple(cursor.fetchall()))
            database.execute(f"DELETE FROM run WHERE id IN ({places})", tuple(run_ids))
        return removed

    def put_back(self, removed: RemovedRuns) -> None:
        """Take removed runs in again, as they were. Raises: AceError(NOT_FOUND) if the database cannot be written."""
        with self._open() as database:
            columns, places = ", ".join(removed.columns), ", ".join("?" * len(removed.columns))
            database.executemany(f"INSERT OR REPLACE INTO run ({columns}) VALUES ({places})", removed.rows)

    def _no_run(self, run_id: int) -> AceError:
        return AceError.of(
            ErrorCode.NOT_FOUND,
            f"There is no run {run_id} in the history",
            remedy="List the runs: ace-studio history",
            where=str(self._path),
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        import sqlite3  # noqa: PLC0415 - not needed for the first picture of the window

        try:
            make_private(self._path.parent)
            with closing(sqlite3.connect(self._path, timeout=self.wait_s)) as database:
                deadline_s = time.monotonic() + self.wait_s + LONGEST_QUERY_S
                database.set_progress_handler(lambda: time.monotonic() > deadline_s, _STEPS_BETWEEN_LOOKS)
                database.text_factory = partial(str, encoding="utf-8", errors="replace")
                with database:
                    prepare(database)
                    taken = self._take_in(database)
                for file in taken:
                    file.unlink(missing_ok=True)
                with database:
                    yield database
        except (OSError, sqlite3.Error) as error:
            if getattr(error, "sqlite_errorcode", None) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise HistoryBusyError.of(
                    ErrorCode.NOT_FOUND,
                    "The history of runs is in use by another program",
                    why=f"it was locked for {self.wait_s:g} s",
                    remedy="Wait until that program is done with it, or end that program, and try again",
                    where=str(self._path),
                ) from error
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                "The history of runs cannot be used",
                why=str(error),
                remedy="Make its folder writable; if the file is damaged, move it away and a new one is begun",
                where=str(self._path),
            ) from error

    @property
    def _waiting(self) -> Path:
        return self._path.with_suffix(".waiting")

    def _take_in(self, database: sqlite3.Connection) -> Sequence[Path]:
        """Insert the runs that could not be added when they ended; returns their files. What cannot be read stays."""
        taken = []
        for file in sorted(self._waiting.glob("*.run")):
            with suppress(OSError, msgspec.DecodeError, RecursionError):
                row = msgspec.msgpack.decode(read_plain(file), type=_Row)
                same = "SELECT 1 FROM run WHERE output = :output AND result_json = :result_json"
                if database.execute(same, row).fetchone() is None:  # taken in by a process that was killed since
                    _insert(database, row)
                taken.append(file)
        return taken


def _insert(database: sqlite3.Connection, row: Mapping[str, Any]) -> int:
    places = ", ".join(f":{name}" for name in row)
    cursor = database.execute(f"INSERT OR IGNORE INTO run ({', '.join(row)}) VALUES ({places})", row)
    return int(cursor.lastrowid or 0)


def _last_id(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT MAX(id) FROM run").fetchone()[0] or 0)


def _tags_text(tags: Sequence[str]) -> str:
    return msgspec.json.encode(sorted(set(tags))).decode()


def _stored(database: sqlite3.Connection, column: str, value: str) -> list[tuple[int, Result]]:
    """Number and result of the runs with a value in a column, oldest first; without those whose record is damaged."""
    found = []
    rows = database.execute(f"SELECT id, result_json FROM run WHERE {column} = ? ORDER BY id", (value,))
    for run_id, stored in rows.fetchall():
        with suppress(msgspec.DecodeError, TypeError):
            found.append((run_id, decode_result(stored)))
    return found


def _summary(row: Sequence[object]) -> RunSummary:
    """The line of a record; one that says so if the record was damaged."""
    fields = dict(zip(RunSummary.__struct_fields__, row, strict=True))
    try:
        fields["tags"] = decode_plain(str(fields["tags"]).encode(), list[str])
        return msgspec.convert(fields, RunSummary)
    except msgspec.DecodeError:
        empty: dict[str, Any] = dict.fromkeys(RunSummary.__struct_fields__, "") | dict.fromkeys(_FIGURES)
        number = row[0] if isinstance(row[0], int) else 0
        return RunSummary(**empty | {"id": number, "tags": (), "title": "This record is damaged", "status": "damaged"})
