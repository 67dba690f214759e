"""Builds installers: ``packaging/ace installer FORMAT --out DIR``; ``trial`` tries what was built in a clean system.

Prints the path of what it built to stdout and progress to stderr. Exit code 0, or 6 with what is missing and how to get
it. Standard library only: each installer makes the environments that it needs below ``--work``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from deb import build_deb
from macos import build_dmg
from pack import KINDS, build_pack
from portable import build_tar
from steps import ROOT, BuildError, say, write_checksum
from trial import try_deb, try_tar
from wheel import build_wheel
from windows import build_exe

FAILED = 6
BUILDERS: dict[str, Callable[[Path, Path, argparse.Namespace], Path]] = {
    "deb": lambda out, work, _: build_deb(out, work),
    "tar": lambda out, work, options: build_tar(out, work, options.with_pack),
    "exe": lambda out, work, _: build_exe(out, work),
    "dmg": lambda out, work, _: build_dmg(out, work),
    "pack": lambda out, work, options: build_pack(out, work, options.kind),
    "wheel": lambda out, work, _: build_wheel(out, work),
}
"""Format -> what builds it in ``--out``, with what is between in ``--work``."""


def main(words: list[str] | None = None) -> int:
    """Build one installer and say where it is."""
    parser = argparse.ArgumentParser(prog="packaging/ace installer", description=__doc__)
    parser.add_argument("format", choices=(*BUILDERS, "trial"))
    parser.add_argument("--out", type=Path, required=True, help="folder for the installer")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "installers", help="folder for what is between")
    parser.add_argument("--kind", choices=tuple(KINDS), default="cpu", help="what a pack holds")
    parser.add_argument("--with-pack", type=_file, help="for tar: an engine pack to put beside the program")
    parser.add_argument("--deb", type=_file, help="for trial: the package to try")
    parser.add_argument("--tar", type=_file, help="for trial: the portable archive to try")
    parser.add_argument("--previous", type=_file, help="for trial with --deb: a package of the version before")
    parser.add_argument("--suite", default="bookworm", help="for trial: the Debian or Ubuntu to try it in")
    parser.add_argument("--mirror", default="", help="for trial: where the packages of the suite are")
    options = parser.parse_args(words)
    out, work = options.out.resolve(), options.work.resolve()
    if options.format == "trial" and not ((options.deb or options.tar) and options.with_pack):
        parser.error("trial needs --deb or --tar, and --with-pack")
    try:
        out.mkdir(parents=True, exist_ok=True)
        work.mkdir(parents=True, exist_ok=True)
        if options.format == "trial":
            built = _try(out, work, options)
        else:
            built = BUILDERS[options.format](out, work, options)
            write_checksum(built)
    except (BuildError, OSError) as error:
        say(f"no {options.format}: {error}")
        if remedy := getattr(error, "remedy", ""):
            say(f"  remedy: {remedy}")
        return FAILED
    if options.format != "trial":
        say(f"{built.stat().st_size / 1e6:.1f} MB")
    print(built)
    return 0


def _file(words: str) -> Path:
    return Path(words).resolve()


def _try(out: Path, work: Path, options: argparse.Namespace) -> Path:
    where = {"suite": options.suite, "mirror": options.mirror}
    if options.tar:
        return try_tar(out, work, options.tar, options.with_pack, **where)
    return try_deb(out, work, options.deb, options.with_pack, previous=options.previous, **where)


if __name__ == "__main__":
    sys.exit(main())
