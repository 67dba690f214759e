"""The folder of captures."""

import os
from pathlib import Path

import pytest

from ace_studio.engine.capture.cache_store import CaptureStore, user_data_folder, user_key

# --- the folder ---


def test_the_least_recently_used_go_when_there_is_no_room(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path, b"key", limit_bytes=3500)
    for number, name in enumerate("abc"):
        store.write(name, {"part": os.urandom(1000)})
        os.utime(tmp_path / f"{name}.capture", (number, number))
    assert store.read("a") is not None  # used just now
    store.write("d", {"part": os.urandom(1000)})
    assert {path.stem for path in tmp_path.iterdir()} == {"a", "c", "d"}
    store.write("huge", {"part": os.urandom(5000)})
    assert store.read("huge") is None


def test_the_cache_can_be_moved_resized_and_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACE_STUDIO_CACHE", "off")
    assert CaptureStore.of_user() is None
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("ACE_STUDIO_CACHE_MB", "1.5")
    store = CaptureStore.of_user()
    assert store == CaptureStore(tmp_path / "here", user_key(user_data_folder()), 1_500_000)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_into_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(shared))
    assert CaptureStore.of_user() is None


def test_a_file_that_was_signed_with_another_key_or_changed_is_not_read_and_removed(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path, b"key")
    for change in (lambda raw: raw[:40] + bytes([raw[40] ^ 1]) + raw[41:], lambda raw: raw[32:], lambda raw: b""):
        store.write("a", {"part": b"content"})
        assert store.read("a") == {"part": b"content"}
        path = tmp_path / "a.capture"
        path.write_bytes(change(path.read_bytes()))
        assert store.read("a") is None
        assert not path.exists()
    CaptureStore(tmp_path, b"another key").write("a", {"part": b"content"})
    assert store.read("a") is None


def test_the_key_is_made_once_and_can_be_read_by_its_user_only(tmp_path: Path) -> None:
    key = user_key(tmp_path / "data")
    assert len(key) == 32
    assert user_key(tmp_path / "data") == key
    assert user_key(tmp_path / "other") != key
    (file,) = (tmp_path / "data").iterdir()
    if os.name == "posix":
        assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(b"cut")
    with pytest.raises(OSError, match="holds no key"):
        user_key(tmp_path / "data")
