"""Signatures of the makers, in minisign's file format: ``FILE.minisig`` beside a file, and one public key here.

Ed25519 over the BLAKE2b-512 of the file; the trusted comment is signed too. Nothing is fetched. What the program takes
for the makers' key is ``resources/release-key.pub``; ``packaging/installers/sign.py`` makes keys and signs.
"""

import base64
import binascii
from enum import StrEnum
from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.places import resource_folder
from ace_studio.records.safe_file import read_plain

SUFFIX = ".minisig"
UNTRUSTED, TRUSTED = "untrusted comment: ", "trusted comment: "
KEY_KIND, SIGNATURE_KIND = b"Ed", b"ED"
"""First bytes of a public key, and of a signature over a file's hash."""
_MOST_BYTES = 8192


class Signer(StrEnum):
    """Who vouches for a file."""

    MAKERS = "makers"
    """The makers of this program."""
    OTHERS = "others"
    """Whoever has another key. It is not known here, so the signature cannot be checked and says nothing."""
    NOBODY = "nobody"
    """There is no signature."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What the signature of a file says."""

    signer: Signer
    key_id: str = ""
    """Number of the key, as minisign prints it."""
    comment: str = ""
    """What the makers say of the file; empty unless they signed it."""


def release_key() -> Path:
    """The file with the makers' public key."""
    return resource_folder() / "release-key.pub"


def read_key(file: Path) -> tuple[bytes, bytes]:
    """Number and bytes of a public key of minisign. Raises: OSError, ValueError."""
    content = _decoded(file.read_text(encoding="ascii").partition("\n")[2].strip(), size=42)
    if content[:2] != KEY_KIND:
        raise ValueError("it is no public key of minisign")
    return content[2:10], content[10:]


def key_id(number: bytes) -> str:
    """The number of a key as minisign prints it."""
    return number[::-1].hex().upper()


def signature_of(file: Path, blake2b: bytes) -> Signature:
    """Who signed a file, by the signature beside it.

    Args:
        file: The file, which is not read.
        blake2b: BLAKE2b-512 of its bytes.

    Raises: AceError(BAD_FILE) if the signature cannot be read, or is of the makers' key and does not fit the bytes.
    """
    beside = file.with_name(file.name + SUFFIX)
    try:
        text = read_plain(beside, most=_MOST_BYTES).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        return Signature(signer=Signer.NOBODY)
    except (OSError, UnicodeDecodeError) as error:
        raise _unfit(beside, str(error)) from error
    lines = text.removesuffix("\n").split("\n")
    try:
        if len(lines) != 4 or not lines[0].startswith(UNTRUSTED) or not lines[2].startswith(TRUSTED):
            raise ValueError("it is no signature of minisign")
        signed, whole = _decoded(lines[1], size=74), _decoded(lines[3], size=64)
        if signed[:2] != SIGNATURE_KIND:
            raise ValueError("it is of minisign's old kind, over the file itself; minisign -S makes the present kind")
        known, key = read_key(release_key())
    except (OSError, ValueError) as error:
        raise _unfit(beside, str(error)) from error
    number, comment = key_id(signed[2:10]), lines[2].removeprefix(TRUSTED)
    if signed[2:10] != known:
        return Signature(signer=Signer.OTHERS, key_id=number)
    if not _fits(key, signed[10:], blake2b) or not _fits(key, whole, signed[10:] + comment.encode()):
        raise _unfit(beside, "it is of the makers' key and does not fit these bytes: one of the two was changed")
    return Signature(signer=Signer.MAKERS, key_id=number, comment=comment)


def _decoded(text: str, *, size: int) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("it is damaged") from error
    if len(content) != size:
        raise ValueError("it is damaged")
    return content


def _fits(key: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - loaded when it is needed
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - as above

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _unfit(beside: Path, why: str) -> AceError:
    return AceError.of(
        ErrorCode.BAD_FILE,
        f"The signature {beside.name} does not fit",
        why=why,
        remedy="Get the file and its signature again from where the makers publish them",
        where=str(beside),
    )
