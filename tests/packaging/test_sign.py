"""The script that signs releases: what it writes is what the program reads, and its secret stays outside."""

import hashlib
import stat
import sys

import pytest

from ace_studio.jobs import signature
from ace_studio.jobs.signature import Signer, signature_of


@pytest.fixture
def sign(scripts, tmp_path, monkeypatch):
    """The script, with a key of the program that may be replaced."""
    key = tmp_path / "checkout" / "resources" / "release-key.pub"
    key.parent.mkdir(parents=True)
    key.write_bytes(signature.release_key().read_bytes())
    monkeypatch.setattr(signature, "release_key", lambda: key)
    monkeypatch.setenv("ACE_SIGN_PASSPHRASE", "")
    return scripts("sign")


@pytest.fixture
def release(tmp_path):
    made = tmp_path / "out" / "ace-engine.tar.gz"
    made.parent.mkdir()
    made.write_bytes(b"a release")
    return made


@pytest.mark.parametrize("passphrase", ["", "correct horse"])
def test_one_command_replaces_the_key_and_what_it_signs_is_by_the_makers(
    sign, release, tmp_path, monkeypatch, passphrase
):
    monkeypatch.setenv("ACE_SIGN_PASSPHRASE", passphrase)
    assert sign.main(["new-key", str(tmp_path / "safe")]) == 0
    assert sign.main([str(release), "--key", str(tmp_path / "safe")]) == 0
    found = signature_of(release, hashlib.blake2b(release.read_bytes()).digest())
    assert found.signer is Signer.MAKERS and "file:ace-engine.tar.gz" in found.comment
    secret = tmp_path / "safe" / "release-key.pem"
    assert (b"ENCRYPTED" in secret.read_bytes()) is bool(passphrase)
    if sys.platform != "win32":
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    monkeypatch.setenv("ACE_SIGN_PASSPHRASE", "wrong" if passphrase else "")
    assert sign.main([str(release), "--key", str(tmp_path / "safe")]) == (6 if passphrase else 0)


def test_a_key_is_never_replaced_nor_put_into_the_repository(sign, tmp_path, capsys):
    assert sign.main(["new-key", str(tmp_path / "checkout" / "keys")]) == 6
    assert "is in the repository" in capsys.readouterr().err and not (tmp_path / "checkout" / "keys").exists()
    assert sign.main(["new-key", str(tmp_path / "safe")]) == 0
    before = signature.release_key().read_bytes()
    assert sign.main(["new-key", str(tmp_path / "safe")]) == 6
    assert signature.release_key().read_bytes() == before


def test_with_another_key_than_the_programs_nothing_is_signed(sign, release, tmp_path, capsys):
    before = signature.release_key().read_bytes()
    assert sign.main(["new-key", str(tmp_path / "safe")]) == 0
    signature.release_key().write_bytes(before)
    assert sign.main([str(release), "--key", str(tmp_path / "safe")]) == 6
    assert "is another key" in capsys.readouterr().err and not list(release.parent.glob("*.minisig"))


def test_no_secret_is_in_the_repository(root):
    folders = ("ace_studio", "packaging", "resources", "tests")
    assert not [path for folder in folders for path in (root / folder).rglob("*.pem")]
