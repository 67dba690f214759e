"""Faults of the machine (full or read-only disk, too many open files), recognised in whatever a library raised."""

import errno
import os
import shutil
import tempfile
import tomllib
from pathlib import Path

from ace_studio.records import containment
from ace_studio.records.errors import ErrorCode, Problem, message_of

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_FAULTS = {getattr(errno, name): row for name, row in _TABLE.items() if hasattr(errno, name)}
"""Error number -> what it means, and what to do."""
_WORDS = {os.strerror(number): number for number in _FAULTS} | {"can't start new thread": errno.EAGAIN}
"""What libraries in native code, compilers and Python say instead of the number."""
MEGABYTE = 1_000_000


def system_problem(error: BaseException) -> Problem | None:
    """The problem if the machine is the cause of an exception, whatever libraries made of it; else None."""
    if (refused := containment.refusal(error)) is not None:
        what = "Containment refused what the job tried"
        return Problem(code=ErrorCode.SYSTEM, what=what, why=refused[0], remedy=refused[1])
    for one in containment.causes(error):
        text = message_of(one, limit=20_000)
        number = one.errno if isinstance(one, OSError) else None
        if number not in _FAULTS:
            number = next((known for words, known in _WORDS.items() if words in text), None)
        if number is not None:
            where = str(one.filename or "") if isinstance(one, OSError) else ""
            at = max(0, max(text.find(words) for words, known in _WORDS.items() if known == number) - 200)
            return Problem(code=ErrorCode.SYSTEM, why=text[at : at + 400], where=where, **_FAULTS[number])
    return None


def missing_room(folder: Path, needed_bytes: int) -> str:
    """The figures, if the disk of ``folder`` has less free than needed; else an empty string."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return ""
    if free >= needed_bytes:
        return ""
    return f"about {needed_bytes / MEGABYTE:.1f} MB are needed in {folder}, and {free / MEGABYTE:.1f} MB are free there"


def temporary_folder() -> Path:
    """Where libraries and compilers put their temporary files."""
    return Path(tempfile.gettempdir())
