"""The table of past runs in SQLite, and how tables of earlier versions are brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

SCHEMA_VERSION = 4
_MIGRATIONS: dict[int, str] = {
    1: "ALTER TABLE run ADD COLUMN folder TEXT NOT NULL DEFAULT ''",
    2: "ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT ''",
    3: "ALTER TABLE run ADD COLUMN float_speedup REAL",
}
"""Schema version -> SQL that migrates it to the next version."""
_ADDED = {"name": "TEXT NOT NULL DEFAULT ''"}
"""Columns without a version of their own: what knows only schema 4 does not ask for them, and goes on as before."""


def prepare(database: sqlite3.Connection) -> None:
    """Make the table, or bring it up to date.

    Raises: sqlite3.Error, also if a newer version wrote it.
    """
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise database.DatabaseError(f"it was written by a newer ACE Studio (schema {version})")
    if version == 0:
        database.executescript(Path(__file__).with_name("history.sql").read_text(encoding="utf-8"))
    for older in range(max(version, 1) if version else SCHEMA_VERSION, SCHEMA_VERSION):
        database.execute(_MIGRATIONS[older])
    if version < SCHEMA_VERSION:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    known = {row[1] for row in database.execute("PRAGMA table_info(run)")}
    for name in _ADDED.keys() - known:
        database.execute(f"ALTER TABLE run ADD COLUMN {name} {_ADDED[name]}")
