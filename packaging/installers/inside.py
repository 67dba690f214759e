"""Compares what an engine pack says of itself with what is inside: its SBOM, its list of packages, and every file.

Each wheel brings a RECORD of its files with their hashes. A file that no RECORD names, or that has other bytes, was put
there by somebody else. Compiled copies (``.pyc``) need a source beside them, but are not compared with it. Nothing is
unpacked or run.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from contents import DOCUMENT

PACKAGES = re.compile(r"lib/python3\.\d+/site-packages/")
OF_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "RECORD.jws", "RECORD.p7s"}
"""What pip writes beside the files of a wheel."""
MOST_SHOWN = 8


@dataclass(frozen=True)
class Inside:
    """The plain files of a pack: names relative to it, and how one is read."""

    names: frozenset[str]
    read: Callable[[str], bytes]


@contextmanager
def opened(pack: Path) -> Iterator[Inside]:
    """The files of a folder, or of an archive whose members lie in one folder."""
    if pack.is_dir():
        files = (path for path in pack.rglob("*") if path.is_file() and not path.is_symlink())
        names = frozenset(path.relative_to(pack).as_posix() for path in files)
        yield Inside(names, lambda name: (pack / name).read_bytes())
        return
    with tarfile.open(pack) as archive:
        members = {one.name.partition("/")[2]: one for one in archive if one.isfile()}

        def read(name: str) -> bytes:
            stream = archive.extractfile(members[name])
            return stream.read() if stream is not None else b""

        yield Inside(frozenset(members), read)


def problems_of(pack: Path) -> list[str]:
    """What a pack holds and does not say, or says and does not hold, in words."""
    with opened(pack) as inside:
        missing = [name for name in (DOCUMENT, "pack.json") if name not in inside.names]
        if missing:
            return [f"the pack has no {name}" for name in missing]
        installed = _installed(inside)
        components = json.loads(inside.read(DOCUMENT)).get("components", [])
        listed = {_plain(one["name"]): one["version"] for one in components if _is_of_python(one)}
        said = {_plain(name): value for name, value in json.loads(inside.read("pack.json"))["packages"].items()}
        return [
            *_differences("the SBOM", listed, installed),
            *_differences("pack.json", said, installed),
            *_changed_files(inside),
        ]


def _is_of_python(component: Mapping[str, str]) -> bool:
    return component.get("purl", "pkg:pypi/").startswith("pkg:pypi/") and component.get("name") != "Python"


def _is_of_a_package(path: str, name: str) -> bool:
    """Whether it is this file of an installed package; what a package carries inside of it is a part of that."""
    found = PACKAGES.match(path)
    return found is not None and re.fullmatch(rf"[^/]+\.dist-info/{name}", path[found.end() :]) is not None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(inside: Inside) -> dict[str, str]:
    """Name -> version of the packages that are inside, from their own metadata."""
    found = {}
    for path in inside.names:
        if _is_of_a_package(path, "METADATA"):
            head = inside.read(path).decode("utf-8", "replace").partition("\n\n")[0]
            fields = dict(re.findall(r"^(Name|Version): *(.*?)\r?$", head, re.MULTILINE))
            found[_plain(fields.get("Name", path))] = fields.get("Version", "")
    return found


def _differences(what: str, said: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    return [
        *(f"{what} does not name {name} {there[name]}, which is inside" for name in sorted(there.keys() - said.keys())),
        *(f"{what} names {name} {said[name]}, which is not inside" for name in sorted(said.keys() - there.keys())),
        *(
            f"{what} names {name} {said[name]}, but version {there[name]} is inside"
            for name in sorted(said.keys() & there.keys())
            if said[name] != there[name]
        ),
    ]


def _changed_files(inside: Inside) -> list[str]:
    """Files of the packages that no RECORD names, that are gone, or that have other bytes."""
    known: set[str] = set()
    problems: list[str] = []
    for path in sorted(one for one in inside.names if _is_of_a_package(one, "RECORD")):
        folder = PurePosixPath(path).parents[1]
        for name, digest, *_ in csv.reader(inside.read(path).decode("utf-8").splitlines()):
            file = str(folder / name)
            if name.startswith("..") or name.endswith(".pyc"):  # a program, which a pack has none of; compiled anew
                continue
            known.add(file)
            if file not in inside.names:
                problems.append(f"{file} is missing")
            elif digest.startswith("sha256=") and not _has_digest(inside.read(file), digest):
                problems.append(f"{file} has other bytes than its package says")
    for file in sorted(one for one in inside.names - known if PACKAGES.match(one)):
        parts = PurePosixPath(file)
        is_of_pip = parts.parent.name.endswith(".dist-info") and parts.name in OF_PIP
        is_cache = parts.suffix == ".pyc" and parts.parent.name == "__pycache__" and _source_of(parts) in inside.names
        if not is_of_pip and not is_cache:
            problems.append(f"{file} belongs to no package")
    rest = len(problems) - MOST_SHOWN
    return problems[:MOST_SHOWN] + ([f"and {rest} more files"] if rest > 0 else [])


def _source_of(cached: PurePosixPath) -> str:
    return str(cached.parent.parent / re.sub(r"\.[^.]+(\.opt-\d)?\.pyc$", ".py", cached.name))


def _has_digest(content: bytes, digest: str) -> bool:
    found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return digest.removeprefix("sha256=").rstrip("=") == found
