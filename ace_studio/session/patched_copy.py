"""A copy of a file with a patch in it; the file itself stays as it is."""

from __future__ import annotations

from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.patches import apply_patch
from ace_studio.records.safe_file import write_atomically


def write_patched_copy(file: Path, patch: str) -> Path:
    """Write the patched text to a new file beside the old one, and return its path.

    Raises: AceError(BAD_FILE) if the file is not as it was when the fix was tried; AceError(NOT_FOUND) if it cannot be
    read or the copy cannot be written.
    """
    try:
        text = apply_patch(file.read_bytes().decode(), patch)
        names = (file.with_name(f"{file.stem}_fixed{number or ''}{file.suffix}") for number in range(1000))
        copy = next(name for name in names if not name.exists())
        write_atomically(copy, text.encode())
    except OSError as error:
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"The patched copy of {file.name} could not be written",
            why=str(error),
            remedy="Save the patch elsewhere, and apply it by hand",
        ) from error
    except ValueError as error:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            "The file is not as it was when the fix was tried",
            why=str(error),
            remedy="Try the fix again",
        ) from error
    return copy
