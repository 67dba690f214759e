"""The SHA-256 of the files that pip may install: ``hashes.txt``, a line for each file of a system and a Python.

pip first says what it would install (``--dry-run --report``). What the lock names must have the bytes that it names;
then pip installs exactly these files and checks their hashes itself (``--require-hashes``). Standard library only.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAD = """\
# SYSTEM-MACHINE-PYTHON NAME==VERSION SHA-256, as packaging/refresh_constraints.py --hashes writes them from what pip
# reports. bootstrap.py refuses a file of that name and version with other bytes. Systems that have no line here are
# installed by the versions in constraints.txt alone, and bootstrap.py says so.
"""


class OtherBytesError(Exception):
    """A package has the name and the version of the lock, but not its bytes."""


@dataclass(frozen=True)
class Planned:
    """One file that pip would install."""

    name: str
    version: str
    sha256: str

    @property
    def pin(self) -> str:
        """``name==version``."""
        return f"{self.name}=={self.version}"


def system() -> str:
    """The system and the Python that the files are for, as ``linux-x86_64-cpython-311``."""
    return f"{sys.platform}-{platform.machine().lower()}-{sys.implementation.cache_tag}"


def read_lock(path: Path, for_system: str) -> dict[str, set[str]]:
    """``name==version`` -> the hashes that it may have on this system; empty without a lock for it."""
    found: dict[str, set[str]] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        words = line.split()
        if len(words) == 3 and words[0] == for_system:
            found.setdefault(words[1], set()).add(words[2])
    return found


def planned(report: Mapping[str, Any]) -> list[Planned]:
    """The files of a report of pip; the project itself, which is a folder, is none."""
    found = []
    for one in report["install"]:
        archive = one["download_info"].get("archive_info")
        if archive is not None:
            said = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").removeprefix("sha256=")
            name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
            found.append(Planned(name, one["metadata"]["version"], said))
    return sorted(found, key=lambda one: one.pin)


def requirements(files: Iterable[Planned], lock: Mapping[str, set[str]]) -> tuple[list[str], list[str]]:
    """Lines for ``pip install --require-hashes``, and the pins that the lock does not name.

    Raises: OtherBytesError naming what has other bytes than the lock says, or none that pip tells.
    """
    files = list(files)
    wrong = [one.pin for one in files if one.sha256 not in lock.get(one.pin, {one.sha256}) or not one.sha256]
    if wrong:
        raise OtherBytesError(", ".join(wrong))
    lines = [f"{one.pin} --hash=sha256:{one.sha256}" for one in files]
    return lines, [one.pin for one in files if one.pin not in lock]


def write_lock(path: Path, files: Iterable[Planned], for_system: str) -> int:
    """Replace the lines of this system; return how many there are now."""
    others = [
        line
        for line in (path.read_text("utf-8").splitlines() if path.exists() else ())
        if line and not line.startswith(("#", f"{for_system} "))
    ]
    own = [f"{for_system} {one.pin} {one.sha256}" for one in files if one.sha256]
    path.write_text(HEAD + "\n".join(sorted(others + own)) + "\n", encoding="utf-8")
    return len(own)


def read_report(path: Path) -> list[Planned]:
    """The files of a report that pip wrote."""
    return planned(json.loads(path.read_text("utf-8")))
