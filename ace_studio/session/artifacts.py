"""Export of an artifact from a run's folder: copied completely or not at all, and compared with the original."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.results import TargetRun
from ace_studio.records.run_artifact import artifact_files, run_artifact
from ace_studio.records.safe_file import (
    file_sha256,
    make_output_folder,
    open_inside,
    remove_leftovers,
    stream_sha256,
    temporary_prefix,
)
from ace_studio.session.kept.folders import UserFolders

FREE_STEM = {".xml"}
"""Formats whose companion follows the file's stem; the others carry its name inside and must keep it."""


def export_run(runs: Sequence[TargetRun], index: int, *, folder: Path, destination: Path) -> dict[Path, str]:
    """Copy the artifact of one of the runs, which lies in ``folder``, as `copy_artifact` does.

    Raises: AceError as `copy_artifact` does; NOT_FOUND if the run has no artifact, BAD_FILE if it lies elsewhere, USAGE
    if the new name has another suffix. A name without one gets the artifact's.
    """
    source = run_artifact(runs, index, folder)
    destination = export_place(source, destination)
    if source.is_file() and destination.suffix != source.suffix:
        raise AceError.of(
            ErrorCode.USAGE,
            f"{destination.name} does not end in {source.suffix}",
            why="a program that opens the artifact knows its kind by the suffix",
            remedy=f"Name it {destination.stem}{source.suffix}",
        )
    return copy_artifact(source, destination)


def export_place(source: Path, destination: Path) -> Path:
    """Where a copy of an artifact will lie: in a folder under its own name; a name without a suffix gets that of it."""
    if destination.is_dir():
        return destination / source.name
    if source.is_file() and not destination.suffix:
        return destination.with_name(destination.name + source.suffix)
    return destination


def copy_artifact(artifact: Path, destination: Path) -> dict[Path, str]:
    """Copy an artifact and return the SHA-256 of every file written, which a ``.sha256`` file beside it lists too.

    ``destination`` is an existing folder, or the new name. The files appear by rename after all are copied and
    compared, so a partial file is never visible.

    Raises: AceError(NOT_FOUND) if the artifact is gone or the place cannot be written; AceError(USAGE) if that is where
    trust and settings are kept; AceError(BAD_FILE) if a copy differs from its source.
    """
    return copy_to(artifact, destination / artifact.name if destination.is_dir() else destination)


def copy_to(artifact: Path, target: Path) -> dict[Path, str]:
    """Copy an artifact as `copy_artifact` does; the copy is called ``target``, also if that is a folder already."""
    files = artifact_files(artifact)
    _check_places([target, *(_place(file, artifact, target) for file in files)])
    what = f"{artifact.name} could not be copied"
    with explained(ErrorCode.NOT_FOUND, what, remedy="Choose another folder", where=target):
        return _copy(artifact, files, target)


def _check_places(places: Sequence[Path]) -> None:
    """An artifact comes from a folder that anybody may have made: it must not become the list of trusted files."""
    user = UserFolders.of_user()
    for place in places:
        if any(place.resolve().is_relative_to(own.resolve()) for own in (user.config, user.data, user.state)):
            raise AceError.of(
                ErrorCode.USAGE,
                f"{place} is not a place for an artifact",
                why="ACE Studio keeps trust and settings in that folder",
                remedy="Choose another folder",
            )


def _copy(artifact: Path, files: tuple[Path, ...], target: Path) -> dict[Path, str]:
    target.parent.mkdir(parents=True, exist_ok=True)
    written: dict[Path, str] = {}
    remove_leftovers(target)
    folder = artifact if artifact.is_dir() else artifact.parent
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=temporary_prefix(target), suffix=".tmp") as name:
        staging = Path(name)
        final = {file: _place(file, artifact, target) for file in files}
        for number, file in enumerate(files):
            written[final[file]] = _copied(file, staging / str(number), inside=folder)
        sums = staging / "sums"
        lines = [f"{sha256}  {path.relative_to(target.parent).as_posix()}\n" for path, sha256 in written.items()]
        sums.write_text("".join(lines), encoding="utf-8")
        pairs = [(staging / str(number), final[file]) for number, file in enumerate(files)]
        _replace_all([*pairs, (sums, target.with_name(target.name + ".sha256"))], below=target.parent)
    return written


def _replace_all(pairs: list[tuple[Path, Path]], *, below: Path) -> None:
    """Give every new file its place; if one cannot have it, all places are as they were."""
    done: list[tuple[Path, Path]] = []
    try:
        for new, place in pairs:
            make_output_folder(place.parent, below=below)
            old = new.with_name(new.name + ".old")
            if place.is_file():
                shutil.copy2(place, old, follow_symlinks=False)
            os.replace(new, place)  # noqa: PTH105 - one call that the tests can make fail
            done.append((old, place))
    except (OSError, AceError):
        for old, place in reversed(done):
            if os.path.lexists(old):
                old.replace(place)
            else:
                place.unlink(missing_ok=True)
        raise


def _place(file: Path, artifact: Path, target: Path) -> Path:
    """Where one file of the artifact goes."""
    if artifact.is_dir():
        return target / file.relative_to(artifact)
    if file == artifact:
        return target
    if artifact.suffix in FREE_STEM:
        return target.with_suffix(file.suffix)
    return target.with_name(file.name)


def _copied(source: Path, copy: Path, *, inside: Path) -> str:
    """Copy a file that lies in a folder, and return its SHA-256."""
    with open_inside(source, inside) as stream, copy.open("wb") as written:
        shutil.copyfileobj(stream, written)
        stream.seek(0)
        expected = stream_sha256(stream)
    got = file_sha256(copy)
    if expected != got:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"The copy of {source.name} differs from the original",
            why="The disk returned other bytes than were written",
            remedy="Check the disk, and copy again",
        )
    return got
