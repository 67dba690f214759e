"""A copy of a file with a patch in it; the file itself stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.safe_file import write_atomically

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? ")


def write_patched_copy(file: Path, patch: str) -> Path:
    """Write the patched text to a new file beside the old one, and return its path.

    Raises: AceError(BAD_FILE) if the file is not as it was when the fix was tried; AceError(NOT_FOUND) if it cannot be
    read or the copy cannot be written.
    """
    try:
        text = patched_text(file.read_text(encoding="utf-8"), patch)
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
    return copy


def patched_text(text: str, patch: str) -> str:
    """The text with a unified diff of one file applied. Raises: AceError(BAD_FILE) if a line differs."""
    old = text.splitlines()
    made: list[str] = []
    at = 0
    lines = patch.splitlines()
    first = next((number for number, line in enumerate(lines) if _HUNK.match(line)), len(lines))
    for line in lines[first:]:
        hunk = _HUNK.match(line)
        if hunk:
            start = max(0, int(hunk[1]) - 1)
            made += old[at:start]
            at = start
        elif line.startswith(("---", "+++", "\\")):
            continue
        elif line.startswith("+"):
            made.append(line[1:])
        elif line[:1] in (" ", "-"):
            if at >= len(old) or old[at] != line[1:]:
                raise AceError.of(
                    ErrorCode.BAD_FILE,
                    "The file is not as it was when the fix was tried",
                    why=f"line {at + 1} differs",
                    remedy="Try the fix again",
                )
            made += [] if line.startswith("-") else [old[at]]
            at += 1
    return "\n".join([*made, *old[at:]]) + "\n"
