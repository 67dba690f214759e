"""Describes a file without running any code in it; always allowed."""

import hashlib
from pathlib import Path

import msgspec

from ace_studio.engine.load.identify import identify, model_path
from ace_studio.engine.load.kinds import LOADERS
from ace_studio.engine.load.sniff import checked_sha256
from ace_studio.records.messages import FileReport, FileToTrust
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.shards import with_shards


def inspect_file(path: Path) -> FileReport:
    """Report what the file is, what opening it needs, and what code opening it would run.

    Raises: AceError(NOT_FOUND or BAD_FILE) saying what it is instead of a model.
    """
    named = named_source(path)
    path = Path(named.text) if named is not None else model_path(path.absolute())
    row = LOADERS[identify(path)]
    facts = msgspec.structs.asdict(row.describe(path))
    if row.suffixes and path.suffix.lower() not in row.suffixes:
        note = f"its name ends in '{path.suffix}', but its content is: {row.label}"
        facts = facts | {"notes": (note, *facts["notes"])}
    is_file = path.is_file()
    files = row.code_to_run(path)
    imported = (text for file in files[1:] for text in file.would_run)
    facts = facts | {"would_run": tuple(dict.fromkeys((*facts["would_run"], *imported)))}
    return FileReport(
        path=str(path),
        kind=row.name,
        label=row.label,
        sha256=checked_sha256(path) if is_file else _listing_sha256(path),
        size_bytes=_size_bytes(path),
        trust=row.trust.value,
        files=tuple(FileToTrust(path=str(file.path), sha256=file.sha256, would_run=file.would_run) for file in files),
        **facts,
    )


def _size_bytes(path: Path) -> int:
    """Of a file with those that it names, or of the files in a folder; 0 of a model that has a name only."""
    files = path.iterdir() if path.is_dir() else with_shards(path)
    return sum(file.stat().st_size for file in files if file.is_file())


def _listing_sha256(folder: Path) -> str:
    """Hash of the names and sizes in a folder, or of a model's name; files are hashed when they are opened."""
    entries = folder.iterdir() if folder.is_dir() else ()
    listing = sorted(f"{entry.name}\0{entry.stat().st_size}" for entry in entries if entry.exists()) or [folder.name]
    return hashlib.sha256("\n".join(listing).encode("utf-8", "surrogateescape")).hexdigest()
