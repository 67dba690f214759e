"""Trust is by content, and can be withdrawn."""

import os
from pathlib import Path

import pytest

from ace_studio.records.errors import AceError
from ace_studio.session.kept.trust import TrustStore


def test_trust_is_by_content_and_shared_between_windows(tmp_path: Path) -> None:
    one, other = TrustStore(tmp_path / "t.json"), TrustStore(tmp_path / "t.json")
    one.trust("/a.py", "a" * 64)
    other.trust("/b.py", "b" * 64)
    assert one.is_trusted("b" * 64)
    later = TrustStore(tmp_path / "t.json")
    assert later.hashes == ("a" * 64, "b" * 64)
    later.revoke("a" * 64)
    assert one.hashes == other.hashes == TrustStore(tmp_path / "t.json").hashes == ("b" * 64,)
    (tmp_path / "t.json").unlink()
    assert one.hashes == ()


def test_a_damaged_trust_list_trusts_nothing_and_is_put_aside_before_a_new_one(tmp_path: Path) -> None:
    damaged = '[{"sha256": "aa"}]'
    (tmp_path / "t.json").write_text(damaged)
    store = TrustStore(tmp_path / "t.json")
    assert store.hashes == ()
    with pytest.raises(AceError, match="could not be read") as caught:
        store.trust("/b.py", "b" * 64)
    assert str(tmp_path / "t.json.bad") in caught.value.problem.remedy and store.hashes == ()
    store.trust("/b.py", "b" * 64)
    assert store.hashes == ("b" * 64,) and (tmp_path / "t.json.bad").read_text() == damaged


def test_trust_that_cannot_be_stored_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = TrustStore(tmp_path / "file" / "t.json")
    with pytest.raises(AceError):
        store.trust("/a.py", "a" * 64)
    assert not store.is_trusted("a" * 64)


def test_an_empty_hash_is_never_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "t.json")
    store.trust("/a.py", "")
    assert not store.is_trusted("")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_list_is_its_users_own_and_trusts_nothing_if_others_may_write_it(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    TrustStore(path).trust("/a.py", "a" * 64)
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o620)
    assert TrustStore(path).hashes == ()
    path.chmod(0o600)
    assert TrustStore(path).hashes == ("a" * 64,)
