"""Signs releases with the makers' key, in minisign's file format.

    .venv/bin/python packaging/installers/sign.py new-key FOLDER         # a pair; its public half becomes the program's
    .venv/bin/python packaging/installers/sign.py FILE ... --key FOLDER  # writes FILE.minisig beside each file

The secret half is ``FOLDER/release-key.pem``, readable by its owner only, and encrypted if a passphrase is typed (or is
in ACE_SIGN_PASSPHRASE). It never belongs into the repository. The public half is ``resources/release-key.pub``: whoever
makes releases of their own replaces it by ``new-key`` once, before the first one. minisign itself can check what is
written here (``minisign -V -p resources/release-key.pub -m FILE``), and sign with a key pair of its own.
"""

from __future__ import annotations

import argparse
import base64
import getpass
import hashlib
import os
import sys
import time
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from ace_studio.jobs import signature
from ace_studio.jobs.signature import KEY_KIND, SIGNATURE_KIND, SUFFIX, TRUSTED, UNTRUSTED, Signer
from ace_studio.records.errors import AceError

SECRET = "release-key.pem"
PASSPHRASE_VARIABLE = "ACE_SIGN_PASSPHRASE"
FAILED = 6


class SignError(Exception):
    """A key cannot be made or used."""


def main(words: list[str] | None = None) -> int:
    """Make a key, or sign files; prints what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", metavar="FILE", help="files to sign, or new-key and a folder")
    parser.add_argument("--key", type=Path, help="folder of the secret key")
    options = parser.parse_args(words)
    try:
        if options.words[0] == "new-key":
            if len(options.words) != 2:
                parser.error("new-key takes one folder")
            print(new_key(Path(options.words[1]), _passphrase("Passphrase of the new key; empty: it is not encrypted")))
            return 0
        if options.key is None:
            parser.error("--key FOLDER names the key that signs")
        secret = read_secret(options.key, _passphrase("Passphrase of the key"))
        for file in map(Path, options.words):
            print(sign(file, secret))
    except (SignError, OSError, AceError) as error:
        print(f"not signed: {error}", file=sys.stderr)
        return FAILED
    return 0


def new_key(folder: Path, passphrase: str) -> Path:
    """Make a pair: the secret half in a folder outside of the repository, the public half for the program.

    Returns: the public half. Raises: SignError if there is a key, or the folder belongs to the repository.
    """
    public = signature.release_key()
    folder = folder.resolve()
    if folder.is_relative_to(public.resolve().parents[1]):
        raise SignError(f"{folder} is in the repository: name a folder that nobody publishes")
    secret = Ed25519PrivateKey.generate()
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        protection = serialization.BestAvailableEncryption(passphrase.encode())
    content = secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(folder / SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise SignError(f"{folder / SECRET} is there already, and is not replaced") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    number, key = numbered(secret)
    encoded = base64.b64encode(KEY_KIND + number + key).decode()
    text = f"{UNTRUSTED}minisign public key {signature.key_id(number)}\n{encoded}\n"
    public.write_text(text, encoding="ascii")
    return public


def read_secret(folder: Path, passphrase: str) -> Ed25519PrivateKey:
    """The secret half. Raises: SignError if the passphrase is wrong, OSError."""
    content = (folder / SECRET).read_bytes()
    try:
        secret = serialization.load_pem_private_key(content, passphrase.encode() if passphrase else None)
    except (ValueError, TypeError) as error:
        raise SignError(f"{folder / SECRET} does not open: {error}") from error
    if not isinstance(secret, Ed25519PrivateKey):
        raise SignError(f"{folder / SECRET} is no Ed25519 key")
    return secret


def numbered(secret: Ed25519PrivateKey) -> tuple[bytes, bytes]:
    """Number and bytes of the public half; the number is the start of its hash."""
    key = secret.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(key).digest()[:8], key


def sign(file: Path, secret: Ed25519PrivateKey) -> Path:
    """Write ``FILE.minisig``, and check it as the program does. Raises: SignError if the program has another key."""
    digest = hashlib.blake2b()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    number, _ = numbered(secret)
    signed = secret.sign(digest.digest())
    comment = f"timestamp:{int(time.time())} file:{file.name} hashed"
    whole = secret.sign(signed + comment.encode())
    lines = (
        f"{UNTRUSTED}signature of ACE Studio's makers",
        base64.b64encode(SIGNATURE_KIND + number + signed).decode(),
        f"{TRUSTED}{comment}",
        base64.b64encode(whole).decode(),
    )
    beside = file.with_name(file.name + SUFFIX)
    beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if signature.signature_of(file, digest.digest()).signer is not Signer.MAKERS:
        beside.unlink()
        raise SignError("resources/release-key.pub is another key, so no program would take the signature for yours")
    return beside


def _passphrase(question: str) -> str:
    given = os.environ.get(PASSPHRASE_VARIABLE)
    if given is not None:
        return given
    return getpass.getpass(f"{question}: ") if sys.stdin.isatty() else ""


if __name__ == "__main__":
    sys.exit(main())
