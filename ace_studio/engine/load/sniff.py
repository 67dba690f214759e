"""Tells what a file is by its first bytes, and only then by its name. Runs and unpickles nothing."""

import platform
import re
import stat
import tomllib
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.paths import missing_file
from ace_studio.records.safe_file import file_sha256

HEAD_BYTES = 4096
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
PICKLE_MAGIC = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_LFS_MAGIC = b"version https://git-lfs.github.com/spec/"
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*+<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)

_FOREIGN = tomllib.loads(Path(__file__).with_name("foreign_files.toml").read_text(encoding="utf-8"))["file"]


def size_of(path: Path) -> int:
    """Bytes of a file, which may have gone since it was looked at. Raises: AceError, as `check_readable`."""
    try:
        return path.stat().st_size
    except OSError:
        check_readable(path)
        raise


def check_readable(path: Path) -> None:
    """Check that the path is a file or a folder that can be opened.

    Raises: AceError(NOT_FOUND) if there is nothing; AceError(BAD_FILE) for a device, a pipe or a file nobody may read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            with path.open("rb"):
                return
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except (OSError, ValueError) as error:
        why, remedy = getattr(error, "strerror", None) or str(error), "check the path and its permissions"
        raise bad_file(path, "could not be opened", why=why, remedy=remedy) from error
    if not stat.S_ISDIR(mode):
        raise bad_file(path, "is not a regular file", why="it is a device, a pipe or a socket", remedy="choose a file")


def bad_file(
    path: Path, what: str, *, why: str = "", remedy: str = "download or save it again", details: str = ""
) -> AceError:
    """The error for a file that is not what its name or its use promises; the message is ``NAME what``."""
    return AceError.of(
        ErrorCode.BAD_FILE, f"{path.name} {what}", why=why, remedy=remedy, where=str(path), details=details
    )


def newer_format(path: Path, form: str, reads: str, library: str) -> AceError:
    """The error for a file of a version that nothing here knows; it need not be damaged."""
    return bad_file(
        path,
        f"was written in {form}, and {reads}",
        why=f"a newer release of {library} wrote it, or its number of the version is false",
        remedy=f"update {library}: the release that wrote it opens it; or save it again with the release that is here",
    )


def read_head(path: Path) -> bytes:
    """The first bytes of the file. Raises: AceError(BAD_FILE) if it is empty or cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise bad_file(path, "could not be read", why=error.strerror or str(error)) from error
    if not head:
        raise bad_file(path, "is empty", why="it has 0 bytes; a download or a save broke off")
    return head


def checked_head(path: Path) -> bytes:
    """The first bytes of what may be a model. Raises: AceError(NOT_FOUND or BAD_FILE) as the three checks do."""
    check_readable(path)
    head = read_head(path)
    reject_stand_ins(path, head)
    return head


def reject_stand_ins(path: Path, head: bytes) -> None:
    """Raise AceError(BAD_FILE) for a web page or a Git LFS pointer saved in the place of a model."""
    if head.startswith(_LFS_MAGIC):
        size = re.search(rb"^size (\d+)", head, re.M)
        raise bad_file(
            path,
            "is a Git LFS pointer, not the file itself",
            why=f"the real one has {int(size[1])} bytes and was not fetched"
            if size
            else "the real one was not fetched",
            remedy="run `git lfs pull` in that repository",
        )
    if _HTML.match(head):
        title = re.search(rb"<title[^>]*>(.{1,120}?)</title>", head, re.I | re.S)
        shown = title[1].decode("utf-8", "replace").strip() if title else ""
        raise bad_file(
            path,
            "is a web page, not a model",
            why=f"its title is '{shown}'" if shown else "a download saved the page instead of the file",
            remedy="download it again with the direct link; a page that asks to sign in may have been saved",
        )


def unknown_file(path: Path, head: bytes) -> AceError:
    """The error for a file that no loader knows, with what it is if its format is recognized."""
    for row in _FOREIGN:
        if head[row.get("offset", 0) :].startswith(bytes.fromhex(row["bytes"])):
            return bad_file(
                path, f"is {row['words']}", why="its first bytes are those of that format", remedy=_KNOWN_KINDS
            )
    if len(head) > 1 and head[0] == 0x80 and 5 < head[1] < 128 and head.endswith(b"."):
        reads = f"Python {platform.python_version()} reads up to protocol 5"
        return newer_format(path, f"protocol {head[1]} of pickle", reads, "Python")
    if is_text(head):
        remedy = "open it as a recipe" if path.suffix == ".toml" else _KNOWN_KINDS
        return bad_file(path, "is plain text, not a model", why="its first bytes are text", remedy=remedy)
    return bad_file(
        path,
        "is in no known format",
        why=f"its first bytes are {head[:8].hex(' ')}",
        remedy=f"it may be damaged or cut short; {_KNOWN_KINDS}",
    )


_KNOWN_KINDS = "give a .py, .pt, .pth, .safetensors, .pt2 or .onnx file"


def is_text(head: bytes) -> bool:
    """Whether the bytes read as UTF-8 text without control characters (the end may cut a character)."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < HEAD_BYTES:
            return False
        text = head[: error.start].decode("utf-8-sig")
    return not any(ord(character) < 32 and character not in "\t\n\r\f\x1b" for character in text)


def checked_sha256(path: Path) -> str:
    """Hex SHA-256 of the file's bytes. Raises: AceError(BAD_FILE) if it cannot be read."""
    try:
        return file_sha256(path)
    except OSError as error:
        raise bad_file(path, "could not be read", why=error.strerror or str(error)) from error
