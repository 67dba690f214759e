"""The portable archive: the program, and an engine pack if one is given, for any Linux that is not older."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from deb import write_completions
from freeze import NAME, freeze, window_python
from steps import ROOT, run, say, system_tag, version, write_archive


def build_tar(out: Path, work: Path, pack: Path | None) -> Path:
    """Build the archive; returns it. It is unpacked anywhere, and ``ace-studio`` in it is started.

    ``desktop-entry install`` in it puts what is below ``share`` among the user's menus, icons and file types.
    """
    program = freeze(work)
    name = f"{NAME}-{version()}-{system_tag()}"
    root = work / name
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(program, root, symlinks=True)
    linux, staged = ROOT / "packaging" / "linux", work / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    run([window_python(work), linux / "stage.py", staged])
    shutil.move(staged / "usr" / "share", root / "share")
    write_completions(root / NAME, root / "share")
    shutil.copy(linux / "desktop-entry", root)
    if pack is not None:
        say(f"putting {pack.name} beside the program")
        with tarfile.open(pack) as archive:
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
            archive.extractall(root / "engines", **safely)
    archive_path = out / f"{name}.tar.gz"
    write_archive(root, archive_path)
    return archive_path
