"""What may leave this machine: every file that a job would send, its size, and the verdict on it.

Hosts, devices and sweeps ask here before anything is sent. Where files go is the user's word, never a recipe's: the
user named the machine, or was shown the list of files and said yes. Links are resolved and not followed out of the
folder, what lies elsewhere is asked for by name, and kinds of files that hold keys or passwords are named by hand.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from functools import cache
from hashlib import file_digest, sha256
from io import BufferedReader
from itertools import groupby
from pathlib import Path

import msgspec

from ace_studio.records.errors import ErrorCode, Problem, visible
from ace_studio.records.safe_file import open_plain

SEND = "send:"
"""Begins what the user trusts to be sent, where trust in code has a SHA-256: ``send:HOST:HASH``."""
_SECRET_FOLDERS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", ".thunderbird", "gcloud",
    "keyrings", "keychains",
)  # fmt: skip
_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", ".htpasswd",
    ".vault-token", "credentials", "credentials.json", "credentials.toml", "client_secret*.json", "*.pem", "*.key",
    "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.keyring", "*.keychain", "*.keychain-db", "id_rsa*",
    "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*",
)  # fmt: skip


def _pattern(names: Iterable[str]) -> str:
    return "|".join(re.escape(one).replace(r"\*", "[^/]*") for one in names)


_SECRET = re.compile(rf"/(?:{_pattern(_SECRET_FOLDERS)})/|/(?:{_pattern(_SECRET_NAMES)}|id_[^/.]*)$")
_MOST_LISTED = 200
"""Files that a question lists; the folders of the others are counted."""
_MOST_ASKED = 8
"""Files of one folder elsewhere that are asked for each by itself; more are asked for as that folder."""


class Verdict(StrEnum):
    """Whether a file may be sent."""

    GOES = "goes"
    """It lies in the folder that is sent, or the user named it."""
    OUTSIDE = "outside"
    """It lies elsewhere: the user is asked for it by name."""
    SECRET = "secret"
    """Files of its kind hold keys or passwords: it goes only if the user names it by hand."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What the user himself said may be sent; no recipe says it."""

    hosts: tuple[str, ...] = ()
    """Machines that the user named: what lies in a recipe's folder goes there without a question."""
    files: tuple[str, ...] = ()
    """Files that the user named: they go wherever they lie and whatever they are. Of a folder all but secrets goes."""


class LeavingFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that would be sent."""

    name: Path
    """How it is called; links in it are not followed."""
    path: Path
    """Where its content lies."""
    size: int
    verdict: Verdict
    identity: tuple[int, int]
    """Device and inode when the verdict was given."""

    def open(self) -> BufferedReader:
        """Its content. Raises: OSError, also if another file has taken its place since the verdict."""
        stream = open_plain(self.path)
        status = os.fstat(stream.fileno())
        if (status.st_dev, status.st_ino) != self.identity:
            stream.close()
            raise OSError(f"{self.name} is not the file any more that was looked at")
        return stream

    def sha256(self) -> str:
        """SHA-256 of its content, in hex. Raises: as `open`."""
        with self.open() as stream:
            return file_digest(stream, "sha256").hexdigest()


def leaving(names: Iterable[Path], folder: Path, word: Word | None = None) -> tuple[LeavingFile, ...]:
    """The files, in their order, with the verdict on each. Raises: OSError if one is gone.

    Args:
        names: Absolute paths.
        folder: Which folder is sent.
        word: What the user named by hand.
    """
    folder_of = cache(os.path.realpath)
    root, named = Path(folder_of(folder)), {Path(os.path.realpath(one)) for one in (word.files if word else ())}
    found = []
    for name in names:
        path = Path(os.path.realpath(name)) if name.is_symlink() else Path(folder_of(name.parent), name.name)
        status, verdict = path.stat(), Verdict.GOES
        if path not in named and any(_SECRET.search(one.as_posix().lower()) for one in (name, path)):
            verdict = Verdict.SECRET
        elif not path.is_relative_to(root) and not (named and named & {path, *path.parents}):
            verdict = Verdict.OUTSIDE
        identity = status.st_dev, status.st_ino
        found.append(LeavingFile(name=name, path=path, size=status.st_size, verdict=verdict, identity=identity))
    return tuple(found)


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """What one job sends: all of it, known before any of it is sent."""

    folder: Path
    files: tuple[LeavingFile, ...]
    stays: tuple[LeavingFile, ...] = ()
    """What nobody named and may not go: secrets in the folder, and links that lead out of it."""
    named: frozenset[Path] = frozenset()
    """The files that a recipe or a pattern names."""

    def refusals(self, host: str, *, is_named: bool, trusted: Collection[str] = ()) -> tuple[Problem, ...]:
        """What the user has to allow before the files may go to a machine; nothing if they may.

        The details of what can be allowed hold ``sha256:send:HOST:HASH``, which ``trusted`` has once it was.

        Args:
            host: Where they would go.
            is_named: Whether the user named this machine.
            trusted: What the user has allowed.
        """
        secrets = [_secret(file, host) for file in self.files if file.verdict is Verdict.SECRET]
        outside = [file for file in self.files if file.verdict is Verdict.OUTSIDE]
        asked = [] if is_named else [self._question(host)]
        for place, group in groupby(sorted(outside, key=lambda one: one.path), key=lambda one: one.path.parent):
            files = list(group)
            several = [(place, files)] if len(files) > _MOST_ASKED else [(one.path, [one]) for one in files]
            asked += [_elsewhere(where, them, host) for where, them in several]
        return (*(problem for key, problem in asked if key not in trusted), *secrets)

    def _question(self, host: str) -> tuple[str, Problem]:
        key = _key(host, self.folder, self.files)
        stays = [f"stays here: {_shown(file, self.folder)}" for file in self.stays]
        return key, Problem(
            code=ErrorCode.UNTRUSTED,
            what=f"Files would be sent to {host}",
            why=f"the recipe names that machine; {_counted(self.files)} would go, of {self.folder}",
            remedy=f"if you want that, press Trust, or add --host {host} on the command line",
            where=str(self.folder),
            details="\n".join([f"sha256:{key}", *_listed(self.files, self.folder), *stays]),
        )


def _elsewhere(where: Path, files: Sequence[LeavingFile], host: str) -> tuple[str, Problem]:
    """The question for a file, or for several of one folder, that are not in the recipe's folder."""
    key = _key(host, where, files)
    called = _plain(files[0].name) if len(files) == 1 else f"what is named of {_plain(where)}"
    return key, Problem(
        code=ErrorCode.UNTRUSTED,
        what=f"{_plain(where.name)} lies outside of the recipe's folder, and would be sent to {host}",
        why=f"the recipe names {called}; {_counted(files)} would go",
        remedy=f"if you want that, press Trust, or add --send {where} on the command line",
        where=str(where),
        details="\n".join([f"sha256:{key}", *_listed(files, where)]),
    )


def _secret(file: LeavingFile, host: str) -> Problem:
    return Problem(
        code=ErrorCode.UNTRUSTED,
        what=f"{_plain(file.path.name)} is not sent to {host}",
        why=f"files of its kind hold keys or passwords, and the recipe names it ({file.size:,} bytes)",
        remedy=f"take it out of the recipe; if it has to go, name it on the command line: --send {file.path}",
        where=str(file.path),
    )


def _key(host: str, folder: Path, files: Sequence[LeavingFile]) -> str:
    """What is trusted when these files may go to a machine: it follows their names and places, not their contents."""
    names = sorted((str(file.name), str(file.path)) for file in files)
    content = repr([str(folder), names]).encode("utf-8", "surrogateescape")
    return f"{SEND}{host}:{sha256(content).hexdigest()}"


def host_of(key: str) -> str:
    """The machine that files may be sent to for the sake of this key; empty for another kind of trust."""
    return key.removeprefix(SEND).rpartition(":")[0] if key.startswith(SEND) else ""


def _counted(files: Sequence[LeavingFile]) -> str:
    size = sum(file.size for file in files)
    return f"{len(files):,} file{'' if len(files) == 1 else 's'} with {size:,} bytes"


def _listed(files: Sequence[LeavingFile], folder: Path) -> list[str]:
    """A line for each file, those from elsewhere first; beyond `_MOST_LISTED` a line for each folder."""
    ordered = sorted(files, key=lambda one: (one.verdict is Verdict.GOES, one.name))
    lines = [f"{_shown(file, folder)} ({file.size:,} bytes)" for file in ordered[:_MOST_LISTED]]
    more = Counter(_plain(file.name.parent) for file in ordered[_MOST_LISTED:])
    return [*lines, *(f"{count:,} more in {place}" for place, count in more.items())]


def _shown(file: LeavingFile, folder: Path) -> str:
    """Its name in the folder, and where it lies if that is elsewhere."""
    name = file.name.relative_to(folder) if file.name.is_relative_to(folder) else file.name
    return _plain(name) if file.verdict is Verdict.GOES else f"{_plain(name)}, which is {_plain(file.path)}"


def _plain(text: object) -> str:
    """On one line: a name with a line break must not forge a line of the question."""
    return visible(str(text).replace("\n", "\\n"))
