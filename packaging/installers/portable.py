"""The portable archive: the program, and an engine pack if one is given, for any Linux that is not older."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from freeze import NAME, freeze
from steps import say, system_tag, version, write_archive


def build_tar(out: Path, work: Path, pack: Path | None) -> Path:
    """Build the archive; returns it. It is unpacked anywhere and started as ``ace-studio/ace-studio``."""
    program = freeze(work)
    name = f"{NAME}-{version()}-{system_tag()}"
    root = work / name
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(program, root, symlinks=True)
    if pack is not None:
        say(f"putting {pack.name} beside the program")
        with tarfile.open(pack) as archive:
            archive.extractall(root / "engines", filter="data")
    archive_path = out / f"{name}.tar.gz"
    write_archive(root, archive_path)
    return archive_path
