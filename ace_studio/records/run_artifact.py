"""The files of an artifact in the folder of a run."""

from collections.abc import Sequence
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import TargetRun
from ace_studio.records.roots import present

COMPANIONS = {".xml": (".bin",), ".onnx": (".onnx.data", ".onnx_data", ".data")}
"""Suffix of an artifact -> suffixes of the files beside it (same stem) that hold its weights."""


def run_artifact(runs: Sequence[TargetRun], index: int, folder: Path) -> Path:
    """The artifact of one of the runs, which lies in ``folder``.

    Raises: AceError(NOT_FOUND) if the run has none, BAD_FILE if it lies elsewhere.
    """
    artifact = runs[index].artifact if 0 <= index < len(runs) else None
    if not artifact:
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            "This run has no artifact",
            why="Its target failed, or writes nothing to disk",
            remedy="Choose a run whose status is ok",
        )
    source = folder / artifact
    if not source.resolve().is_relative_to(folder.resolve()):
        raise AceError.of(
            ErrorCode.BAD_FILE,
            "The artifact of this run is not in its folder",
            why=f"result.json names {artifact}",
            remedy="Run again; a run writes its artifacts into its own folder",
            where=str(folder),
        )
    return source


def artifact_files(artifact: Path) -> tuple[Path, ...]:
    """The files of an artifact, itself first: a folder's files, or the file with its companions.

    Raises: AceError(NOT_FOUND) if it is gone, AceError(UNTRUSTED) if one is a link to what may not be read (`Roots`).
    """
    if artifact.is_dir():
        found = sorted(path for path in artifact.rglob("*") if path.is_file())
    elif artifact.is_file():
        stem = artifact.name[: -len(artifact.suffix)] if artifact.suffix else artifact.name
        beside = (artifact.with_name(stem + suffix) for suffix in COMPANIONS.get(artifact.suffix, ()))
        found = [artifact, *(path for path in beside if path.is_file())]
    else:
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"The artifact {artifact.name} no longer exists",
            why=f"{artifact} was moved or deleted after the run",
            remedy="Run again",
        )
    for path in found:
        present.get().readable(path)
    return tuple(found)
