"""Notices that a job closed or replaced descriptors that are not its own, and gives the process its output back.

Who closes what he did not open counts up from 0 or 3, or closes whatever is open. So the low numbers, and some of the
others, are taken by copies of a pipe that nobody uses: a library may close its own files at any time, but never these.
"""

import errno
import os
from contextlib import suppress

FIRST_KEPT = 500
"""Lowest number of what the engine itself needs, as its channel; every system allows at least 1024."""
_TAKEN = (*range(3, 32), *range(40, FIRST_KEPT, 20))
_STREAMS = (0, 1, 2)


def move_up(descriptor: int) -> int:
    """A copy of the descriptor under a high number, because user code may close all the low ones. POSIX.

    Raises: OSError if no file may have such a number.
    """
    try:
        return _copy(descriptor, FIRST_KEPT)
    except OSError as error:  # "Invalid argument" if no file may have such a number
        limit = f"at most {_limit()} may be, and the engine needs {2 * FIRST_KEPT}"
        raise OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}: {limit}") from error


def _copy(descriptor: int, lowest: int) -> int:
    import fcntl  # noqa: PLC0415 - does not exist on Windows

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


class Descriptors:
    """The descriptors of a process that runs jobs. Without effect on Windows."""

    def __init__(self) -> None:
        """Take the numbers, and keep copies of stdin, stdout and stderr."""
        self._streams: dict[int, int] = {}
        self._known: dict[int, tuple[int, int]] = {}
        if os.name == "posix":
            with suppress(OSError):  # none is left, or stdin was closed from the start
                self._streams = {number: move_up(number) for number in _STREAMS if _identity(number) is not None}
                self._known = _taken()

    def put_back(self) -> tuple[str, ...]:
        """Give stdin, stdout and stderr back, and return what a later job would miss, in words."""
        for number, kept in self._streams.items():
            if _identity(number) != _identity(kept):
                with suppress(OSError):  # the copy is lost too; the rest says so
                    os.dup2(kept, number)
        lost = [number for number, known in self._known.items() if _identity(number) != known]
        lost += [one for one, kept in self._streams.items() if _identity(one) is None or _identity(kept) is None]
        words = [f"it closed descriptors that are not its own ({_shown(sorted(lost))})"] if lost else []
        most, is_open = _limit(), _count()
        return (*words, *([f"it left {is_open:,} files open, of {most:,}"] if is_open > most / 2 else []))


def _taken() -> dict[int, tuple[int, int]]:
    """Take those of the numbers that are free; each with what is behind it."""
    reading, writing = os.pipe()
    os.close(writing)
    unused = move_up(reading)
    os.close(reading)
    own = _identity(unused)
    for number in _TAKEN:
        if (got := _copy(unused, number)) != number:  # somebody has it
            os.close(got)
    return {one: own for one in (unused, *_TAKEN) if own is not None and _identity(one) == own}


def _shown(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")


def _identity(number: int) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.fstat(number)
        return found.st_dev, found.st_ino
    return None


def _limit() -> float:
    most = os.sysconf("SC_OPEN_MAX") if os.name == "posix" else 0
    return most if most > 0 else float("inf")


def _count() -> int:
    with suppress(OSError):
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 - numbers, not files
    return 0
