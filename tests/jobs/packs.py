"""A tiny engine pack: a script in the place of Python that runs the Python of the tests."""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import ace_studio
from ace_studio.jobs.engine_packs import platform_tag

PYTHON = sys.executable  # tests put another program in its place
SERIES = ace_studio.__version__.rpartition(".")[0]
"""Packs of these versions fit this program."""


def pack_named(version: str = ace_studio.__version__, kind: str = "cpu") -> str:
    return f"ace-engine-{version}-{platform_tag()}-{kind}"


def make_pack(
    folder: Path,
    name: str = "",
    *,
    said: Mapping[str, object] = {},
    members: Mapping[str, bytes] = {},
    packages: int = 1,
) -> Path:
    """Write the archive. ``said`` replaces values of pack.json, ``members`` adds files that it does not count."""
    name = name or pack_named()
    _, version, system, machine, kind = name.rsplit("-", 4)
    files = {
        "bin/python3": f'#!/bin/sh\nexec "{PYTHON}" "$@"\n'.encode(),
        "lib/module.py": b"x = 1\n" * 100_000,
    }
    description = {
        "format": 1, "name": name, "version": version, "platform": f"{system}-{machine}", "kind": kind,
        "python": "bin/python3", "packages": {f"package{at}": "1" for at in range(packages)}, "files": len(files),
        "bytes": sum(map(len, files.values())), **said,
    }  # fmt: skip
    files["pack.json"] = json.dumps(description).encode()
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=0) as tar:
        for path, content in ({f"{name}/{path}": content for path, content in files.items()} | members).items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o755 if "bin/" in path else 0o644
            tar.addfile(member, io.BytesIO(content))
    return archive


def write_hash(archive: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.with_name(f"{archive.name}.sha256").write_text(f"{digest}  {archive.name}\n")
