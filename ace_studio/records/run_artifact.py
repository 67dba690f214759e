"""The files of an artifact in the folder of a run."""

from collections.abc import Sequence
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import TargetRun
from ace_studio.records.safe_file import leads_out

COMPANIONS = {".xml": (".bin",), ".onnx": (".onnx.data", ".onnx_data", ".data")}
"""Suffix of an artifact -> suffixes of the files beside it (same stem) that hold its weights."""


def run_artifact(runs: Sequence[TargetRun], index: int, folder: Path) -> Path:
    """The artifact of one of the runs, which lies in ``folder``.

    Raises: AceError(NOT_FOUND) if the run has none, BAD_FILE if it lies elsewhere.
    """
    artifact = runs[index].artifact if 0 <= index < len(runs) else None
    if not artifact:
        why, remedy = "Its target failed, or writes nothing to disk", "Choose a run whose status is ok"
        raise AceError.of(ErrorCode.NOT_FOUND, "This run has no artifact", why=why, remedy=remedy)
    source = folder / artifact
    if leads_out(source, folder):
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

    Raises: AceError(NOT_FOUND) if it is gone, BAD_FILE if it has a link that leads out of its folder.
    """
    if artifact.is_dir():
        return _inside(artifact, sorted(artifact.rglob("*")))
    if not artifact.is_file():
        why, remedy = f"{artifact} was moved or deleted after the run", "Run again"
        raise AceError.of(ErrorCode.NOT_FOUND, f"The artifact {artifact.name} no longer exists", why=why, remedy=remedy)
    stem = artifact.name[: -len(artifact.suffix)] if artifact.suffix else artifact.name
    beside = (artifact.with_name(stem + suffix) for suffix in COMPANIONS.get(artifact.suffix, ()))
    return _inside(artifact.parent, [artifact, *beside])


def _inside(folder: Path, paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files among the paths. Anybody may have put a link to a secret beside an artifact that others will get."""
    if out := [path for path in paths if leads_out(path, folder)]:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"{out[0].name} is a link that leads out of the artifact's folder",
            why=f"what it leads to, {out[0].resolve()}, would be copied with the artifact",
            remedy="If it belongs to the artifact, put the file itself there; else remove the link",
            where=str(out[0]),
        )
    return tuple(path for path in paths if path.is_file())
