"""A save that fails anywhere leaves what was there."""

import os
from pathlib import Path

import msgspec
import pytest

from ace_studio.records import safe_file
from ace_studio.records.safe_file import write_atomically
from tests.records.failing_calls import fail_call

CALLS = ("write", "fsync", "replace", "open")


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
        seen = fail_call(count_only, CALLS, 0)
        write_atomically(path, b"new", keep_backup=keep_backup)
        calls = seen[0]
    assert calls >= (6 if keep_backup else 3)
    for failing in range(1, calls + 1):
        path.write_bytes(b"old")
        with monkeypatch.context() as patched:
            fail_call(patched, CALLS, failing)
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


@pytest.mark.skipif(os.name != "posix", reason="there are no such files elsewhere")
def test_what_is_no_regular_file_is_neither_waited_for_nor_read_without_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        with pytest.raises(OSError, match="not a regular file"):
            safe_file.read_plain(tmp_path / name)
    with pytest.raises(OSError, match="directory"):
        safe_file.read_plain(tmp_path)
    (tmp_path / "plain").write_bytes(b"12345")
    assert safe_file.read_plain(tmp_path / "plain", most=5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        safe_file.read_plain(tmp_path / "plain", most=4)


@pytest.mark.skipif(os.name != "posix", reason="there are no such files elsewhere")
def test_a_pipe_is_never_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        safe_file.write_atomically(tmp_path / "pipe", b"new")
    assert (tmp_path / "pipe").is_fifo()


def test_values_that_nest_without_end_are_damage_and_no_recursion_error():
    with pytest.raises(msgspec.DecodeError, match="too deeply"):
        safe_file.decode_plain(b'{"a":' * 100_000, dict[str, object])
