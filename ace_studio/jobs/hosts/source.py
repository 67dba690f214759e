"""The source of the engine as it is sent to a host: one archive, the same bytes for the same content."""

import io
import tarfile
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import ace_studio
from ace_studio.records.places import resource_folder

_LEFT_OUT = frozenset({"gui", "cli", "sweeps", "session", "resources", "__pycache__"})
"""What no engine imports."""
_SUFFIXES = frozenset({".py", ".json", ".j2", ".sql", ".toml", ".typed"})


class Source(NamedTuple):
    """The archive and its hash."""

    archive: bytes
    """An uncompressed tar; ssh may compress, and it is sent once."""
    sha256: str


@cache
def engine_source() -> Source:
    """The package without the window and the command line. Raises: OSError."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for inside, path in _files():
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"ace_studio/{inside}")  # no time, no owner: the same bytes everywhere
            entry.size = len(content)
            entry.mode = 0o600
            archive.addfile(entry, io.BytesIO(content))
    content = buffer.getvalue()
    return Source(content, sha256(content).hexdigest())


def _files() -> Iterator[tuple[str, Path]]:
    """Path in the package and path here, in order."""
    package = Path(str(ace_studio.__file__)).parent
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        if not _LEFT_OUT & set(inside.parts) and path.suffix in _SUFFIXES:
            yield inside.as_posix(), path
    resources = resource_folder()
    for path in (resources / "report.css", *sorted((resources / "recipes").glob("*.toml"))):
        yield f"resources/{path.relative_to(resources).as_posix()}", path
