"""Signatures: who signed a file is told right, and a signature of other bytes is an alarm."""

import hashlib

import pytest

from ace_studio.jobs import signature
from ace_studio.jobs.signature import Signer, signature_of
from ace_studio.records.errors import AceError, ErrorCode
from tests.jobs.packs import Makers

OF_MINISIGN = """\
untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
"""
ITS_KEY = "untrusted comment: minisign public key\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n"


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "file.tar.gz"
    made.write_bytes(b"content")
    return made


@pytest.fixture
def makers(tmp_path, monkeypatch):
    made = Makers()
    key = made.write_key(tmp_path / "release-key.pub")
    monkeypatch.setattr(signature, "release_key", lambda: key)
    return made


def who(file):
    return signature_of(file, hashlib.blake2b(file.read_bytes()).digest())


def refused(file) -> str:
    with pytest.raises(AceError) as raised:
        who(file)
    assert raised.value.problem.code is ErrorCode.BAD_FILE
    return raised.value.problem.why


def test_the_shipped_key_is_a_key_of_minisign():
    number, key = signature.read_key(signature.release_key())
    assert len(number) == 8 and len(key) == 32


def test_what_minisign_signed_is_read(tmp_path, monkeypatch):
    (tmp_path / "key").write_text(ITS_KEY)
    monkeypatch.setattr(signature, "release_key", lambda: tmp_path / "key")
    (tmp_path / "test").write_text("test")
    (tmp_path / "test.minisig").write_text(OF_MINISIGN)
    found = who(tmp_path / "test")
    assert found.signer is Signer.MAKERS and found.comment == "timestamp:1556193335\tfile:test"
    (tmp_path / "test").write_text("another")
    assert "does not fit these bytes" in refused(tmp_path / "test")


def test_makers_others_and_nobody_are_told_apart(file, makers):
    assert who(file) == signature.Signature(signer=Signer.NOBODY)
    makers.sign(file)
    found = who(file)
    assert found.signer is Signer.MAKERS and found.comment == "timestamp:1 file:file.tar.gz"
    stranger = Makers()
    stranger.number = b"stranger"
    stranger.sign(file)
    found = who(file)
    assert found.signer is Signer.OTHERS and found.key_id == signature.key_id(b"stranger") and not found.comment


def test_a_signature_of_other_bytes_or_of_a_key_with_the_makers_number_is_refused(file, makers):
    makers.sign(file, content=b"other content")
    assert "does not fit these bytes" in refused(file)
    Makers().sign(file)
    assert "does not fit these bytes" in refused(file)
    changed = makers.sign(file)
    changed.write_text(changed.read_text().replace("timestamp:1 ", "timestamp:2 "))
    assert "does not fit these bytes" in refused(file)


@pytest.mark.parametrize("harm", [b"", b"no", b"\xff\xfe" * 10, b"a\nb\nc\nd\n", b"x" * 100_000])
def test_what_is_no_signature_is_an_alarm_too(file, makers, harm):
    makers.sign(file).write_bytes(harm)
    assert refused(file)


def test_the_old_kind_of_signature_and_cut_ones_are_refused(file, makers):
    makers.sign(file, kind=b"Ed")
    assert "old kind" in refused(file)
    lines = makers.sign(file).read_text().split("\n")
    for at in (1, 3):
        cut = [line[:-4] if number == at else line for number, line in enumerate(lines)]
        file.with_name(f"{file.name}.minisig").write_text("\n".join(cut))
        assert refused(file) == "it is damaged"


def test_a_pipe_in_place_of_a_signature_is_not_waited_for(file, makers, tmp_path):
    import os

    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    os.mkfifo(tmp_path / "file.tar.gz.minisig")
    assert "not a regular file" in refused(file)
