"""Figures of devices: added to the result in a run's folder, to its report, and to the history."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.results import REPORT_NAME, RESULT_NAME, DeviceFigure, Result, decode_result, encode_result
from ace_studio.records.results.on_devices import is_same_run, with_figures, with_section
from ace_studio.records.safe_file import read_plain, write_atomically
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore


def run_in(folder: Path, expected: Result | None = None) -> Result:
    """The result in the folder of a run.

    Raises: AceError(NOT_FOUND or BAD_FILE) if there is none; NOT_FOUND if the artifacts there are not those of the
        ``expected`` run.
    """
    path = folder / RESULT_NAME
    try:
        found = decode_result(read_plain(path))
    except (OSError, msgspec.DecodeError) as error:
        code = ErrorCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ErrorCode.BAD_FILE
        raise AceError.of(
            code,
            f"There is no finished result in {folder}",
            why=getattr(error, "strerror", None) or str(error),
            remedy="Name a run of the history, or the folder that was given to `ace-studio run --out`; "
            "if its file is damaged, run the recipe again",
            where=str(path),
        ) from error
    if expected is not None and not is_same_run(found, expected):
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            "The artifacts of this run are gone",
            why="another run wrote into its folder since",
            remedy="Run the recipe again, or measure the newer run",
            where=str(folder),
        )
    return found


def trust_in(folder: Path, history: History, store: TrustStore) -> Callable[[str], bool]:
    """Whether an artifact that holds code may be opened, by its SHA-256.

    It may if a run of this user wrote it, which the history says and no file in the folder, or if the user trusts it.
    """
    return lambda sha256: store.is_trusted(sha256) or history.has_artifact(folder.absolute(), sha256)


def keep_figures(folder: Path, measured: Result, figures: Mapping[int, DeviceFigure], history: History) -> Result:
    """Add figures to what lies in the folder of a run and in the history; returns the result as it is now.

    ``measured`` is the result whose artifacts were measured. Files are read again: somebody else may have added
    figures meanwhile.

    Raises: AceError(NOT_FOUND) if another run has the folder by now, or something cannot be written.
    """
    result = with_figures(run_in(folder, measured), figures)
    with explained(ErrorCode.NOT_FOUND, "The figures of the device could not be saved", where=folder):
        write_atomically(folder / RESULT_NAME, encode_result(result))
        with suppress(FileNotFoundError):  # a run that was cut short has no report
            page = read_plain(folder / REPORT_NAME).decode("utf-8", errors="replace")
            write_atomically(folder / REPORT_NAME, with_section(page, result).encode())
    history.keep_figures(folder.absolute(), result)
    return result
