"""Export of an artifact from a run's folder: copied completely or not at all, and compared with the original."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.results import TargetRun
from ace_studio.records.roots import present, steady_folder
from ace_studio.records.run_artifact import artifact_files, run_artifact
from ace_studio.records.safe_file import (
    file_sha256,
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
    places = [target, *(_place(file, artifact, target) for file in files), _sums_of(target)]
    _check_places([target, _sums_of(target)] if artifact.is_dir() else places, places)
    what = f"{artifact.name} could not be copied"
    with explained(ErrorCode.NOT_FOUND, what, remedy="Choose another folder", where=target):
        return _copy(artifact, files, target)


def _check_places(new: Sequence[Path], places: Sequence[Path]) -> None:
    """An artifact comes from a folder that anybody may have made: it must not become the list of trusted files.

    ``new``: those of the places that must be new; what lies in a new folder is new too.
    """
    own, roots = UserFolders.of_user().own, present.get()
    for place in new:
        roots.writable(place)
    for place in places:
        roots.inside(place)
        if any(place.resolve().is_relative_to(one.resolve()) for one in own):
            why, remedy = "ACE Studio keeps trust and settings in that folder", "Choose another folder"
            raise AceError.of(ErrorCode.USAGE, f"{place} is not a place for an artifact", why=why, remedy=remedy)


def _copy(artifact: Path, files: tuple[Path, ...], target: Path) -> dict[Path, str]:
    written: dict[Path, str] = {}
    inside = artifact if artifact.is_dir() else artifact.parent
    with steady_folder(target.parent, make=True) as folder:
        remove_leftovers(folder / target.name)
        with tempfile.TemporaryDirectory(dir=folder, prefix=temporary_prefix(target), suffix=".tmp") as name:
            staging = Path(name)
            final = {file: _place(file, artifact, target) for file in files}
            for number, file in enumerate(files):
                written[final[file]] = _copied(file, staging / str(number), inside=inside)
            sums = staging / "sums"
            lines = [f"{sha256}  {path.relative_to(target.parent).as_posix()}\n" for path, sha256 in written.items()]
            sums.write_text("".join(lines), encoding="utf-8")
            pairs = [(staging / str(number), final[file]) for number, file in enumerate(files)]
            _replace_all([*pairs, (sums, _sums_of(target))], below=target.parent)
    return written


def _sums_of(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _replace_all(pairs: list[tuple[Path, Path]], *, below: Path) -> None:
    """Give every new file its place; if one cannot have it, all places are as they were."""
    done: list[tuple[Path, Path]] = []
    with ExitStack() as folders:
        try:
            for new, place in pairs:
                steady = folders.enter_context(steady_folder(place.parent, make=True, below=below)) / place.name
                old = new.with_name(new.name + ".old")
                if steady.is_file():
                    shutil.copy2(steady, old, follow_symlinks=False)
                os.replace(new, steady)  # noqa: PTH105 - one call that the tests can make fail
                done.append((old, steady))
        except OSError:
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
