"""The portable archive: the program, and an engine pack if one is given, for any Linux that is not older."""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

from deb import write_completions
from freeze import NAME, freeze, window_python
from steps import ROOT, BuildError, run, say, system_tag, version, write_archive

sys.path.insert(0, str(ROOT))
from ace_studio.jobs.unpack import ArchiveError, unpack

MOST_PACK_BYTES = 30_000_000_000


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
        put_beside(pack, root / "engines")
    archive_path = out / f"{name}.tar.gz"
    write_archive(root, archive_path)
    return archive_path


def put_beside(pack: Path, engines: Path) -> None:
    """Unpack an engine pack as the program does. Raises: BuildError if it is damaged or hostile."""
    engines.mkdir()
    try:
        with gzip.open(pack) as plain:
            unpack(plain, engines, most_bytes=MOST_PACK_BYTES)
    except (ArchiveError, EOFError, OSError) as error:
        raise BuildError(f"{pack.name} cannot be put beside the program: {error}", "build the pack again") from error
