"""The folder of captures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ace_studio.engine.capture.cache_store import CaptureStore

# --- the folder ---


def test_the_least_recently_used_go_when_there_is_no_room(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path, limit_bytes=3500)
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
    assert store == CaptureStore(tmp_path / "here", 1_500_000)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_into_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(shared))
    assert CaptureStore.of_user() is None
