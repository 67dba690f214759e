"""What may leave this machine: every file that a job would send, its size, and the verdict on it.

Hosts, devices and sweeps ask here before anything is sent. Where files go is the user's word, never a recipe's: the
user named the machine, or was shown the list of files and said yes. Links are resolved and not followed out of the
folder, what lies elsewhere is asked for by name, and kinds of files that hold keys or passwords are named by hand.
"""

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

from ace_studio.records.errors import ErrorCode, Problem, one_line
from ace_studio.records.safe_file import open_plain

SEND = "send:"
"""Begins what the user trusts to be sent, where trust in code has a SHA-256: ``send:HOST:HASH``."""
_SECRET_FOLDERS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".git", ".password-store", ".mozilla", ".thunderbird",
    "gcloud", "keyrings", "keychains",
)  # fmt: skip
_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", ".htpasswd",
    ".vault-token", "credentials", "credentials.json", "credentials.toml", "client_secret*.json", "*.pem", "*.key",
    "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.keyring", "*.keychain", "*.keychain-db", "*.gpg",
    "*.ovpn", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*",
)  # fmt: skip


def _pattern(names: Iterable[str]) -> str:
    return "|".join(re.escape(one).replace(r"\*", "[^/]*") for one in names)


_SECRET = re.compile(rf"/(?:{_pattern(_SECRET_FOLDERS)})/|/(?:{_pattern(_SECRET_NAMES)}|id_[^/.]*)$")
_MOST_LISTED = 200
"""Files that a question lists; the folders of the others are counted."""
_MOST_ASKED = 8
"""Files of one folder elsewhere that are asked for each by itself; more are asked for as that folder."""


class SendVerdict(StrEnum):
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
    verdict: SendVerdict
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
        status, verdict = path.stat(), SendVerdict.GOES
        if path not in named and any(_SECRET.search(one.as_posix().lower()) for one in {name, path}):
            verdict = SendVerdict.SECRET
        elif not path.is_relative_to(root) and not (named and named & {path, *path.parents}):
            verdict = SendVerdict.OUTSIDE
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

    @property
    def stay_lines(self) -> list[str]:
        """A line for each file that stays."""
        return [f"stays here: {_called(file, self.folder)}; --send names what has to go" for file in self.stays]

    def refusals(self, host: str, *, is_named: bool, trusted: Collection[str] = ()) -> tuple[Problem, ...]:
        """What the user has to allow before the files may go to a machine; nothing if they may.

        The details of what can be allowed hold ``sha256:send:HOST:HASH``, which ``trusted`` has once it was.

        Args:
            host: Where they would go.
            is_named: Whether the user named this machine.
            trusted: What the user has allowed.
        """
        asked = []
        if not is_named:
            what = f"Files would be sent to {host}"
            why = f"the recipe names that machine; {_counted(self.files)} would go, of {self.folder}"
            lines = [*_listed(self.files, self.folder), *self.stay_lines]
            asked.append(_question(host, self.folder, self.files, (what, why, f"--host {host}"), lines))
        outside = sorted((one for one in self.files if one.verdict is SendVerdict.OUTSIDE), key=lambda one: one.path)
        for place, group in groupby(outside, key=lambda one: one.path.parent):
            files = list(group)
            for where, them in [(place, files)] if len(files) > _MOST_ASKED else [(one.path, [one]) for one in files]:
                what = f"{one_line(where.name)} lies outside of the recipe's folder, and would be sent to {host}"
                why = f"the recipe names {_called(them[0])}; {_counted(them)} would go"
                lines = _listed(them, where) if len(them) > 1 else []
                asked.append(_question(host, where, them, (what, why, f"--send {where}"), lines))
        secrets = (_refusal(host, one) for one in self.files if one.verdict is SendVerdict.SECRET)
        return (*(problem for key, problem in asked if key not in trusted), *secrets)


def _question(
    host: str, where: Path, files: Sequence[LeavingFile], words: tuple[str, str, str], lines: Sequence[str]
) -> tuple[str, Problem]:
    """What is trusted when these files may go to a machine, and the question: what, why, and the option that allows it.

    The key follows the names and places of the files, and not their contents.
    """
    names = sorted((str(file.name), str(file.path)) for file in files)
    content = repr([str(where), names]).encode("utf-8", "surrogateescape")
    key, (what, why, option) = f"{SEND}{host}:{sha256(content).hexdigest()}", words
    remedy = f"if you want that, press Trust, or add {option} on the command line"
    details = "\n".join([f"sha256:{key}", *lines])
    return key, Problem(code=ErrorCode.UNTRUSTED, what=what, why=why, remedy=remedy, where=str(where), details=details)


def _refusal(host: str, file: LeavingFile) -> Problem:
    return Problem(
        code=ErrorCode.UNTRUSTED,
        what=f"{one_line(file.path.name)} is not sent to {host}",
        why=f"files of its kind hold keys or passwords, and the recipe names it ({file.size:,} bytes)",
        remedy=f"take it out of the recipe; if it has to go, name it on the command line: --send {file.path}",
        where=str(file.path),
    )


def host_of(key: str) -> str:
    """The machine that files may be sent to for the sake of this key; empty for another kind of trust."""
    return key.removeprefix(SEND).rpartition(":")[0] if key.startswith(SEND) else ""


def _counted(files: Sequence[LeavingFile]) -> str:
    size = sum(file.size for file in files)
    return f"{len(files):,} file{'' if len(files) == 1 else 's'} with {size:,} bytes"


def _listed(files: Sequence[LeavingFile], folder: Path) -> list[str]:
    """A line for each file, those from elsewhere first; beyond `_MOST_LISTED` a line for each folder."""
    ordered = sorted(files, key=lambda one: (one.verdict is SendVerdict.GOES, one.name))
    lines = [f"{_called(file, folder)} ({file.size:,} bytes)" for file in ordered[:_MOST_LISTED]]
    more = Counter(one_line(file.name.parent) for file in ordered[_MOST_LISTED:])
    return [*lines, *(f"{count:,} more in {place}" for place, count in more.items())]


def _called(file: LeavingFile, folder: Path | None = None) -> str:
    """Its name, in the folder if it lies there, and what a link leads to elsewhere."""
    name = file.name.relative_to(folder) if folder and file.name.is_relative_to(folder) else file.name
    is_plain = file.verdict is SendVerdict.GOES or file.name == file.path
    return one_line(name) if is_plain else f"{one_line(name)}, which is {one_line(file.path)}"
