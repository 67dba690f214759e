"""No folder, lock or copy of ours can be prepared, replaced or held by another user of the machine."""

import ast
import hashlib
import os
import stat
import sys
from pathlib import Path

import pytest

from ace_studio.records import private_folder as module
from ace_studio.records.private_folder import (
    NotPrivate,
    copy_if_same,
    fault_of,
    make_folder,
    make_private,
    open_lock,
    private_folder,
    temporary_base,
    timing_lock,
)
from tests.other_users import STRANGER, as_root, folder_of_everybody, give_away, posix


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_a_folder_and_those_above_it_are_made_for_one_user_whatever_the_umask_is(tmp_path):
    before = os.umask(0)
    try:
        folder = private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert permissions(folder) == permissions(tmp_path / "a") == 0o700


@posix
def test_a_folder_of_ours_that_others_could_read_is_closed(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o755)
    assert permissions(private_folder(tmp_path / "cache")) == 0o700


@posix
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_into_which_others_may_write_is_refused(tmp_path, mode):
    with pytest.raises(NotPrivate, match="other users may write"):
        private_folder(folder_of_everybody(tmp_path / "cache", mode))


@as_root
def test_a_folder_that_another_user_prepared_is_refused_and_named(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    with pytest.raises(NotPrivate, match=f"belongs to another user .number {STRANGER}.") as caught:
        private_folder(give_away(tmp_path / "cache"))
    assert str(tmp_path / "cache") in str(caught.value)


@as_root
def test_a_folder_below_that_of_another_user_is_refused(tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o755)
    give_away(tmp_path / "theirs")
    with pytest.raises(NotPrivate, match="another user"):
        private_folder(tmp_path / "theirs" / "cache")
    assert not (tmp_path / "theirs" / "cache").exists()


@posix
def test_a_link_in_place_of_the_folder_is_refused_wherever_it_leads(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "mine")
    with pytest.raises(NotPrivate, match="link"):
        private_folder(tmp_path / "cache")


@as_root
def test_a_link_of_another_user_on_the_way_is_refused_and_one_of_ours_is_not(tmp_path):
    everybody = folder_of_everybody(tmp_path / "tmp")
    (tmp_path / "mine").mkdir(mode=0o700)
    (everybody / "way").symlink_to(tmp_path / "mine")
    assert private_folder(everybody / "way" / "cache").is_dir()
    give_away(everybody / "way")
    with pytest.raises(NotPrivate, match="another user"):
        private_folder(everybody / "way" / "cache")


@posix
def test_where_anybody_may_replace_entries_nothing_is_private_unless_the_sticky_bit_protects_it(tmp_path):
    open_to_all = folder_of_everybody(tmp_path / "open", 0o777)
    assert "other users may write" in fault_of(open_to_all / "new")
    with pytest.raises(NotPrivate):
        private_folder(open_to_all / "new")
    assert private_folder(folder_of_everybody(tmp_path / "sticky") / "new").is_dir()


@posix
def test_the_group_of_a_user_alone_is_nobody_else_and_any_other_group_is(tmp_path, monkeypatch):
    import grp
    import pwd
    from types import SimpleNamespace

    folder = tmp_path / "cache"
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(folder, 0, 4242)
    folder.chmod(0o775)
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: SimpleNamespace(pw_name="me"))
    monkeypatch.setattr(grp, "getgrgid", lambda _gid: SimpleNamespace(gr_name="me", gr_mem=[]))
    assert fault_of(folder) == ""
    monkeypatch.setattr(grp, "getgrgid", lambda _gid: SimpleNamespace(gr_name="staff", gr_mem=["eve"]))
    assert "other users may write" in fault_of(folder)


@posix
def test_temporary_folders_go_to_the_users_cache_where_others_could_replace_them(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert temporary_base(str(tmp_path)) == tmp_path
    elsewhere = temporary_base(str(folder_of_everybody(tmp_path / "open", 0o777)))
    assert elsewhere.is_relative_to(tmp_path / "cache") and permissions(elsewhere) == 0o700


@posix
def test_a_lock_is_never_opened_through_a_link_nor_in_a_folder_of_others(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="lock"):
        open_lock(tmp_path / "lock")
    with pytest.raises(NotPrivate):
        open_lock(folder_of_everybody(tmp_path / "tmp") / "lock")
    os.close(open_lock(tmp_path / "cache" / "lock"))
    assert permissions(tmp_path / "cache" / "lock") == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name the folder by other means")
def test_the_lock_of_measurements_is_the_users_own_and_has_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert timing_lock().parent.is_dir() and timing_lock().is_relative_to(tmp_path)


def test_a_copy_says_whether_it_is_what_was_hashed(tmp_path):
    (tmp_path / "model").write_bytes(b"checked")
    sha256 = hashlib.sha256(b"checked").hexdigest()
    assert copy_if_same(tmp_path / "model", tmp_path / "copy", sha256)
    assert (tmp_path / "copy").read_bytes() == b"checked"
    (tmp_path / "model").write_bytes(b"swapped")
    assert not copy_if_same(tmp_path / "model", tmp_path / "copy", sha256)


@posix
def test_a_pipe_in_place_of_a_file_does_not_keep_the_copy_waiting(tmp_path):
    os.mkfifo(tmp_path / "model")
    assert not copy_if_same(tmp_path / "model", tmp_path / "copy", hashlib.sha256(b"checked").hexdigest())


def test_a_folder_that_is_there_is_left_as_it_is_by_one_who_only_makes_folders(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    before = permissions(tmp_path / "mine")
    assert permissions(make_folder(tmp_path / "mine")) == before


def test_a_device_with_python_3_8_can_read_it():
    ast.parse(Path(module.__file__).read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@posix
def test_a_new_folder_is_private_whatever_the_umask_is(tmp_path, open_umask):
    make_private(tmp_path / "share" / "ace-studio" / "graphs")
    for folder in ("share/ace-studio/graphs", "share/ace-studio", "share"):
        assert permissions(tmp_path / folder) == 0o700


@posix
def test_folders_of_the_program_that_are_open_are_narrowed_and_those_above_are_left(tmp_path, open_umask):
    (tmp_path / "share" / "ace-studio" / "graphs").mkdir(parents=True)
    make_private(tmp_path / "share" / "ace-studio" / "graphs")
    assert (
        permissions(tmp_path / "share" / "ace-studio" / "graphs"),
        permissions(tmp_path / "share" / "ace-studio"),
    ) == (
        0o700,
        0o700,
    )
    assert permissions(tmp_path / "share") == 0o777
