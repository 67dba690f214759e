"""A path that a stranger names is judged with its links resolved, and a write there follows no later link."""

import sys
import sysconfig
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from ace_studio.records import safe_file
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.roots import Roots, present, steady_folder
from ace_studio.records.safe_file import make_output_folder, write_atomically


@pytest.fixture
def work(tmp_path):
    """A folder that is open to tools, in a home with a key that is not."""
    (tmp_path / "home" / "work").mkdir(parents=True)
    (tmp_path / "home" / ".ssh").mkdir()
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("secret\n")
    return (tmp_path / "home" / "work").resolve()


@contextmanager
def acting(roots):
    token = present.set(roots)
    try:
        yield roots
    finally:
        present.reset(token)


def refused(judge, path):
    with pytest.raises(AceError) as caught:
        judge(path)
    assert caught.value.problem.code is ErrorCode.UNTRUSTED
    return caught.value.problem


@pytest.mark.parametrize(
    "name", ["../.ssh/id_rsa", ".bashrc", ".git/hooks/post-commit", "deep/.hidden/new.onnx", "../beside", "up/x"]
)
def test_nothing_is_written_outside_or_hidden_whatever_links_say(work, name):
    (work / "up").symlink_to(work.parent)
    assert "mcp --write DIR" in refused(Roots(write=(work,)).writable, work / name).remedy


def test_what_is_there_stays_unless_it_is_listed(work):
    there = work / "notes.txt"
    there.write_text("mine")
    (work / "empty").mkdir()
    (work / "full").mkdir()
    (work / "full" / "result.json").write_text("{}")
    roots = Roots(write=(work,))
    assert f"list {there} in the argument `replace`" in refused(roots.writable, there).remedy
    refused(roots.writable, work / "full")
    assert roots.writable(work / "empty") == work / "empty" and roots.writable(work / "new") == work / "new"
    assert Roots(write=(work,), replaceable=(there,)).writable(there) == there
    refused(Roots(write=(work,), replaceable=(work / "full",)).writable, work / "full" / "result.json")


@pytest.mark.parametrize("name", ["torch.py", "x.pth", "x.pyc", "torch.so", "x.desktop"])
def test_no_new_file_is_one_that_runs_by_itself(work, name):
    assert "may run by itself" in refused(Roots(write=(work,)).writable, work / name).why


def test_neither_a_python_nor_the_program_itself_is_written_to(work, tmp_path):
    site = work / "env" / "lib" / "site-packages"
    own = work / "data" / "ace-studio"
    own.mkdir(parents=True)
    (work / "link").symlink_to(own)
    roots = Roots(write=(work, Path(sysconfig.get_paths()["purelib"]).parent.resolve()), own=(own,))
    assert "of a Python" in refused(roots.writable, site / "x.onnx").why
    assert "of a Python" in refused(roots.writable, Path(sysconfig.get_paths()["purelib"]) / "x.onnx").why
    assert "of ACE Studio itself" in refused(roots.writable, own / "trusted.json").why
    assert "of ACE Studio itself" in refused(roots.writable, work / "link" / "runs").why
    gone = Roots(write=(work,), own=(work / "not-made-yet",))
    assert "of ACE Studio itself" in refused(gone.writable, work / "not-made-yet" / "trusted.json").why
    for name in ("sitecustomize.py", "deep/__init__.py"):
        assert "run by Python" in refused(roots.inside, work / name).why


def test_reading_has_roots_too_and_what_may_be_written_may_be_read(work, tmp_path):
    (tmp_path / "models").mkdir()
    (work / "key").symlink_to(work.parent / ".ssh" / "id_rsa")
    roots = Roots(read=((tmp_path / "models").resolve(),), write=(work,))
    assert roots.readable(tmp_path / "models" / "a.pt") == (tmp_path / "models" / "a.pt").resolve()
    assert roots.readable(work / "a.pt") == work / "a.pt"
    assert "mcp --read DIR" in refused(roots.readable, work / "key").remedy
    refused(roots.readable, work.parent / ".ssh" / "id_rsa")


@pytest.mark.parametrize("path", ["a\0b", "~nobody-of-this-name/x"])
def test_what_is_no_path_is_told(work, path):
    with pytest.raises(AceError):
        Roots(write=(work,)).writable(Path(path))


def test_a_person_may_write_anywhere(tmp_path):
    assert present.get().writable(tmp_path / "x.py") == tmp_path / "x.py"
    with steady_folder(tmp_path / "new", make=True) as folder:
        assert folder == tmp_path / "new" and folder.is_dir()


@pytest.mark.parametrize("make", [True, False])
def test_a_link_that_is_planted_after_the_path_was_judged_is_not_followed(work, make):
    (work / "out").mkdir()
    with acting(Roots(write=(work,))):
        place = present.get().writable(work / "out" / "deep" / "new.onnx" if make else work / "out" / "new.onnx")
        (work / "out").rename(work / "old")
        (work / "out").symlink_to(work.parent / ".ssh")
        with pytest.raises(OSError, match="link"), steady_folder(place.parent, make=make):
            pass
        with pytest.raises(OSError, match="link"):
            write_atomically(place, b"mine")
        with pytest.raises(AceError, match="Results cannot be written"):
            make_output_folder(place.parent)
    assert [one.name for one in (work.parent / ".ssh").iterdir()] == ["id_rsa"]


def test_a_file_that_becomes_a_link_is_not_read_into_a_backup(work):
    recipe = work / "recipe.toml"
    recipe.write_text("mine")
    with acting(Roots(write=(work,), replaceable=(recipe,))):
        place = present.get().writable(recipe)
        recipe.unlink()
        recipe.symlink_to(work.parent / ".ssh" / "id_rsa")
        write_atomically(place, b"new", keep_backup=True)
    assert not recipe.is_symlink() and recipe.read_bytes() == b"new"
    assert not (work / "recipe.toml.bak").exists()
    assert (work.parent / ".ssh" / "id_rsa").read_text() == "secret\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a link is looked for once")
def test_a_folder_that_is_swapped_while_it_is_written_to_gets_the_file_where_it_was_opened(work, monkeypatch):
    (work / "out").mkdir()
    canary = work.parent / ".ssh"
    swapped = threading.Event()

    def swap():
        (work / "out").rename(work / "old")
        (work / "out").symlink_to(canary)
        swapped.set()

    original = safe_file._write_all

    def write_late(descriptor, content):
        threading.Thread(target=swap).start()
        assert swapped.wait(10)
        original(descriptor, content)

    monkeypatch.setattr(safe_file, "_write_all", write_late)
    with acting(Roots(write=(work,))):
        write_atomically(present.get().writable(work / "out" / "authorized_keys"), b"mine")
    assert [one.name for one in canary.iterdir()] == ["id_rsa"]
    assert (work / "old" / "authorized_keys").read_bytes() == b"mine"


def test_the_program_s_own_files_may_lie_behind_links(work, tmp_path):
    (tmp_path / "real").mkdir()
    (work / "data").symlink_to(tmp_path / "real")
    with acting(Roots(write=(work,), own=(work / "data",))):
        write_atomically(work / "data" / "settings.json", b"{}")
    assert (tmp_path / "real" / "settings.json").read_bytes() == b"{}"


def test_a_folder_of_the_program_is_known_by_any_other_name_that_it_has(work, monkeypatch):
    """As on a disk where case does not count, or where it is mounted twice."""
    (work / "data").mkdir()
    (work / "DATA").mkdir()
    same = Path.samefile
    monkeypatch.setattr(Path, "samefile", lambda one, other: str(one).lower() == str(other).lower() or same(one, other))
    assert "of ACE Studio" in refused(Roots(write=(work,), own=(work / "data",)).writable, work / "DATA" / "x").why
