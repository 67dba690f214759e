"""A tiny engine pack: a script in the place of Python that runs the Python of the tests. And hostile ones."""

import base64
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import ace_studio
from ace_studio.jobs.engine_packs import Pack, packs_folder, platform_tag
from ace_studio.jobs.pack_install import Consent, examine, install

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
    more: Iterable[tarfile.TarInfo] = (),
) -> Path:
    """Write the archive. ``said`` replaces values of pack.json, ``members`` adds files that it does not count.

    ``more`` are headers that follow, each with as many zeros as it has bytes.
    """
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
        for member in more:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return archive


def header(path: str, kind: bytes = tarfile.REGTYPE, **values: object) -> tarfile.TarInfo:
    """A member of an archive, with whatever it says of itself."""
    made = tarfile.TarInfo(path)
    made.type = kind
    for name, value in values.items():
        setattr(made, name, value)
    return made


def beyond_the_longest_path(top: str, *, up: int, to: str) -> list[tarfile.TarInfo]:
    """CVE-2025-4517: a link whose end no system tells, because the path to it is too long; then a file through it.

    Args:
        top: Folder of the archive.
        up: How many folders above it the canary's own is.
        to: The canary below that folder.
    """
    steps, made, path = "abcdefghijklmnop", [], top
    # The deepest folder can still be made where packs are unpacked; a name of 254 in it is beyond the longest path.
    around = len(f"{packs_folder()}/.pack.1234567-abcdefgh.tmp/{top}")
    long = "d" * min(247, (3950 - around) // len(steps) - 1)
    for step in steps:
        made += [header(f"{path}/{long}", tarfile.DIRTYPE, mode=0o755)]
        made += [header(f"{path}/{step}", tarfile.SYMTYPE, linkname=long)]
        path += f"/{long}"
    links = "/".join(steps) + "/" + "l" * 254
    return [
        *made,
        header(f"{top}/{links}", tarfile.SYMTYPE, linkname="../" * len(steps)),
        header(f"{top}/escape", tarfile.SYMTYPE, linkname=f"{links}/{'../' * up}{to}"),
        header(f"{top}/written", tarfile.LNKTYPE, linkname=f"{top}/escape"),
        header(f"{top}/written", size=7),
    ]


def install_anyway(file: Path, *more: object) -> Pack:
    """Install a pack as somebody does who agrees to whatever it is."""
    report = more[0] if more else lambda *_: None
    offer = examine(file, report, *more[1:])
    return install(offer, Consent(sha256=offer.sha256, takes_unsigned=True), report, *more[1:])


class Makers:
    """Somebody with a key, who signs as minisign does."""

    def __init__(self) -> None:
        self._secret, self.number = Ed25519PrivateKey.generate(), b"makers-1"

    def write_key(self, file: Path) -> Path:
        """Write the public half, which `signature.release_key` names."""
        text = base64.b64encode(b"Ed" + self.number + self._secret.public_key().public_bytes_raw()).decode()
        file.write_text(f"untrusted comment: minisign public key\n{text}\n")
        return file

    def sign(self, file: Path, *, content: bytes | None = None, kind: bytes = b"ED") -> Path:
        """Write ``FILE.minisig``, over other bytes than the file's if they are given."""
        signed = self._secret.sign(hashlib.blake2b(file.read_bytes() if content is None else content).digest())
        comment = f"timestamp:1 file:{file.name}"
        lines = (
            "untrusted comment: signed",
            base64.b64encode(kind + self.number + signed).decode(),
            f"trusted comment: {comment}",
            base64.b64encode(self._secret.sign(signed + comment.encode())).decode(),
        )
        beside = file.with_name(f"{file.name}.minisig")
        beside.write_text("\n".join(lines) + "\n")
        return beside


def write_hash(archive: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.with_name(f"{archive.name}.sha256").write_text(f"{digest}  {archive.name}\n")
