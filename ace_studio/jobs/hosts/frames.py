"""What travels between a link here and its keeper there: msgpack in the frames of `jobs.channel`."""

from functools import cache
from hashlib import sha256
from typing import Any

import msgspec

from ace_studio.records.bundle import Bundle, BundledFile
from ace_studio.records.recipes.recipe import LimitsChoice

CHUNK_BYTES = 1_000_000
OUTPUT = "output"
"""Folder of what a job writes on the host, below its number and the session's folder."""


def files_folder(bundle: Bundle) -> str:
    """The root of what was sent. Jobs of the same files share it: a capture is found again by the path of its model."""
    return f"files-{sha256(msgspec.msgpack.encode(bundle.files)).hexdigest()[:32]}"


class _Frame(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    pass


class Hello(_Frame, frozen=True, kw_only=True):
    """First of a connection: the events from ``seen`` on are wanted (again)."""

    seen: int


class Ask(_Frame, frozen=True, kw_only=True):
    """A request. One with a number that is known is not served twice."""

    number: int
    request: bytes
    bundle: Bundle | None = None
    """Files of the job; the recipe in the request names them relative to its folder."""
    contain: bool | None = None
    is_strange: bool = False
    """Whether the model counts as a stranger's where it comes from."""
    limits: LimitsChoice | None = None


class Content(_Frame, frozen=True, kw_only=True):
    """A piece of a file that was wanted; pieces of one file come in order."""

    number: int
    sha256: str
    data: bytes
    is_last: bool


class Cancel(_Frame, frozen=True, kw_only=True):
    """Stop a job."""

    number: int
    job: str
    grace_s: float


class Seen(_Frame, frozen=True, kw_only=True):
    """Events up to this number need not be kept."""

    number: int


class Fetch(_Frame, frozen=True, kw_only=True):
    """Send a file that a job wrote, from this byte on; an empty path asks for the list of all."""

    number: int
    path: str = ""
    offset: int = 0


class Bye(_Frame, frozen=True, kw_only=True):
    """End the engine, remove the files of its jobs, and end."""


class Welcome(_Frame, frozen=True, kw_only=True):
    """Answer to Hello: the folder that holds the files of the jobs."""

    folder: str


class Want(_Frame, frozen=True, kw_only=True):
    """Contents that are missing there for a job."""

    number: int
    hashes: tuple[str, ...]


class Happened(_Frame, frozen=True, kw_only=True):
    """An event of the engine, encoded."""

    seq: int
    event: bytes


class Written(_Frame, frozen=True, kw_only=True):
    """The files that a job wrote."""

    number: int
    files: tuple[BundledFile, ...]


class Piece(_Frame, frozen=True, kw_only=True):
    """A piece of a file that a job wrote; empty at its end, or if it is gone."""

    number: int
    path: str
    data: bytes


ToKeeper = Hello | Ask | Content | Cancel | Seen | Fetch | Bye
ToLink = Welcome | Want | Happened | Written | Piece


def encode(frame: ToKeeper | ToLink) -> bytes:
    """A frame as bytes."""
    return msgspec.msgpack.encode(frame)


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)


def decode_for_keeper(payload: bytes) -> ToKeeper:
    """Read what a link sent. Raises: msgspec.DecodeError."""
    frame: ToKeeper = _decoder(ToKeeper).decode(payload)
    return frame


def decode_for_link(payload: bytes) -> ToLink:
    """Read what a keeper sent. Raises: msgspec.DecodeError."""
    frame: ToLink = _decoder(ToLink).decode(payload)
    return frame
