"""A save that fails anywhere leaves what was there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ace_studio.records.safe_file import write_atomically

CALLS = ("write", "fsync", "replace", "open")


def _fail_at(monkeypatch: pytest.MonkeyPatch, failing: int) -> list[int]:
    """Make the failing-th of the calls that a save consists of raise; returns a counter of the calls seen."""
    seen = [0]
    for name in CALLS:
        original = getattr(os, name)

        def call(*args, _original=original, **kwargs):
            seen[0] += 1
            if seen[0] == failing:
                raise OSError(28, "No space left on device")
            return _original(*args, **kwargs)

        monkeypatch.setattr(os, name, call)
    return seen


def test_content_arrives_and_one_older_generation_is_kept(tmp_path):
    path = tmp_path / "a.toml"
    for content in (b"one", b"two", b"three"):
        write_atomically(path, content, keep_backup=True)
    assert path.read_bytes() == b"three"
    assert (tmp_path / "a.toml.bak").read_bytes() == b"two"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.toml", "a.toml.bak"]


def test_saving_the_same_again_keeps_the_last_different_version_as_backup(tmp_path):
    path = tmp_path / "a.toml"
    for content in (b"one", b"two", b"two"):
        write_atomically(path, content, keep_backup=True)
    assert (tmp_path / "a.toml.bak").read_bytes() == b"one"


@pytest.mark.parametrize("keep_backup", [True, False])
def test_whichever_call_fails_the_old_content_or_the_new_one_is_there_and_no_rubbish(
    tmp_path, monkeypatch, keep_backup
):
    path = tmp_path / "a.toml"
    with monkeypatch.context() as count_only:
        path.write_bytes(b"old")
        seen = _fail_at(count_only, 0)
        write_atomically(path, b"new", keep_backup=keep_backup)
        calls = seen[0]
    assert calls >= (6 if keep_backup else 3)
    for failing in range(1, calls + 1):
        path.write_bytes(b"old")
        with monkeypatch.context() as patched:
            _fail_at(patched, failing)
            with pytest.raises(OSError, match="No space left"):
                write_atomically(path, b"new", keep_backup=keep_backup)
        assert path.read_bytes() in ((b"old", b"new") if failing > calls - 2 else (b"old",))
        assert not [entry for entry in tmp_path.iterdir() if entry.name.endswith(".tmp")]


def test_a_short_write_is_continued(tmp_path, monkeypatch):
    original = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: original(descriptor, bytes(content)[:3]))
    write_atomically(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_permissions_and_links_survive(tmp_path):
    real = tmp_path / "real.toml"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(real)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_new_file_gets_the_permissions_that_other_programs_give(tmp_path):
    write_atomically(tmp_path / "new", b"x")
    (tmp_path / "plain").write_bytes(b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(Path(tmp_path / "nowhere" / "a"), b"x")
