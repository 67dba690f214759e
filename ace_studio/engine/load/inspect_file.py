"""Saying what a file is without running any code in it; always allowed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ace_studio.engine.load.identify import identify
from ace_studio.engine.load.kinds import LOADERS
from ace_studio.engine.load.sniff import file_sha256
from ace_studio.records.messages import FileReport


def inspect_file(path: Path) -> FileReport:
    """What the file is, what it needs to be opened, and what opening it would run.

    Raises: AceError(NOT_FOUND or BAD_FILE) saying what it is instead of a model.
    """
    path = path.absolute()
    row = LOADERS[identify(path)]
    facts = row.describe(path)
    notes = list(facts.notes)
    if row.suffixes and path.suffix.lower() not in row.suffixes:
        notes.insert(0, f"its name ends in '{path.suffix}', but its content is: {row.label}")
    is_folder = path.is_dir()
    return FileReport(
        path=str(path),
        kind=row.name,
        label=row.label,
        sha256=_listing_sha256(path) if is_folder else file_sha256(path),
        size_bytes=0 if is_folder else path.stat().st_size,
        trust=row.trust.value,
        would_run=facts.would_run,
        entries=facts.entries,
        tensors=facts.tensors,
        notes=tuple(notes),
    )


def _listing_sha256(folder: Path) -> str:
    """Hash over the names and sizes in a folder; its files are hashed when they are opened."""
    listing = sorted(f"{entry.name}\0{entry.stat().st_size}" for entry in folder.iterdir() if entry.exists())
    return hashlib.sha256("\n".join(listing).encode("utf-8", "surrogateescape")).hexdigest()
