"""Steps that several installers share: environments, commands, checksums and archives with the same bytes each time."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PINS = ROOT / "packaging" / "constraints.txt"
TOOLS = HERE / "tools.txt"


class BuildError(Exception):
    """An installer cannot be built here; the text says why, and ``remedy`` what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.remedy = remedy


def say(text: str) -> None:
    """Print progress to stderr; stdout belongs to the path of the installer."""
    print(f"ace: {text}", file=sys.stderr, flush=True)


def version() -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def system_tag() -> str:
    """The platform as in the names of the files, such as ``linux-x86_64``."""
    return f"{sys.platform}-{platform.machine().lower()}"


def build_time() -> int:
    """Seconds since the epoch that every file in an installer gets: those of the last commit, or SOURCE_DATE_EPOCH."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given:
        return int(given)
    found = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(found.stdout) if found.returncode == 0 and found.stdout.strip() else int(time.time())


def run(command: Sequence[str | Path], *, cwd: Path = ROOT, variables: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it printed.

    Raises: BuildError with the last lines if it fails or does not exist.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"SOURCE_DATE_EPOCH": str(build_time()), "PYTHONHASHSEED": "1", **(variables or {})}
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except FileNotFoundError as error:
        raise BuildError(f"{words[0]} is not installed", f"install the package that has {words[0]}") from error
    if done.returncode:
        tail = "\n     ".join(done.stdout.strip().splitlines()[-8:])
        raise BuildError(f"{Path(words[0]).name} {words[1] if words[1:] else ''} failed:\n     {tail}")
    return done.stdout


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """Make or complete a virtual environment with the pinned versions; return its Python."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        run([getattr(sys, "_base_executable", sys.executable), "-I", "-m", "venv", folder])
    run([python, *PIP, "--constraint", PINS, "--constraint", TOOLS, *packages])
    return python


PIP = ("-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")


def write_archive(folder: Path, archive: Path, *, level: int = 6) -> None:
    """Write a folder as ``.tar.gz``: sorted, owned by nobody, every file with the time of the build."""
    moment = build_time()

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    partial = archive.with_name(f"{archive.name}.part")
    with (
        partial.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=level, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        tar.add(folder, folder.name, recursive=False, filter=plain)
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(Path(folder.name) / path.relative_to(folder)), recursive=False, filter=plain)
    partial.replace(archive)


def write_checksum(file: Path) -> Path:
    """Write ``FILE.sha256`` beside a file, in the form that ``sha256sum --check`` reads."""
    with file.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    beside = file.with_name(f"{file.name}.sha256")
    beside.write_text(f"{digest}  {file.name}\n", encoding="ascii")
    return beside
