"""A save that fails anywhere leaves what was there."""

import os
from pathlib import Path

import msgspec
import pytest

from ace_studio.records import safe_file
from ace_studio.records.errors import AceError
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


def test_permissions_survive(tmp_path):
    real = tmp_path / "real.toml"
    real.write_bytes(b"old")
    real.chmod(0o640)
    write_atomically(real, b"new")
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.fixture
def canary(tmp_path):
    """A file of the user's that nobody may read or write through a link."""
    path = tmp_path / "home" / "notes"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    return path


def by_stream(path):
    with safe_file.native_stream(path) as stream:
        stream.write(b"new")


def by_name(path):
    with safe_file.written_beside(path) as private:
        private.write_bytes(b"new")


WRITERS = {
    "content": lambda path: write_atomically(path, b"new"),
    "content with a backup": lambda path: write_atomically(path, b"new", keep_backup=True),
    "stream": by_stream,
    "by name": by_name,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_stays(tmp_path, canary, write, is_there):
    out = tmp_path / "out"
    out.mkdir()
    if not is_there:
        canary.unlink()
    for name in ("report.html", "report.html.bak"):
        (out / name).symlink_to(canary)
    write(out / "report.html")
    assert (out / "report.html").read_bytes() == b"new"
    assert not (out / "report.html").is_symlink()
    assert (canary.read_bytes() == b"mine") if is_there else not canary.exists()


def test_equal_content_behind_a_link_does_not_keep_the_link(tmp_path, canary):
    link = tmp_path / "link"
    link.symlink_to(canary)
    write_atomically(link, b"mine")
    assert not link.is_symlink()


def test_a_folder_is_written_beside_and_its_files_replace_those_of_their_names(tmp_path, canary):
    target = tmp_path / "artifact"
    (target / "inner").mkdir(parents=True)
    (target / "inner" / "kept").write_bytes(b"kept")
    (target / "inner" / "data").symlink_to(canary)
    with safe_file.written_beside(target) as private:
        assert private.parent.stat().st_mode & 0o077 == 0
        (private / "inner").mkdir(parents=True)
        (private / "inner" / "data").write_bytes(b"new")
        (private / "model").write_bytes(b"new")
    assert {path.name: path.read_bytes() for path in target.rglob("*") if path.is_file()} == {
        "kept": b"kept",
        "data": b"new",
        "model": b"new",
    }
    assert canary.read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["artifact", "home"]


@pytest.mark.parametrize("planted", ["", "inner"])
def test_nothing_is_written_into_a_folder_that_a_link_leads_to(tmp_path, canary, planted):
    target = tmp_path / "artifact"
    (target / planted).parent.mkdir(exist_ok=True)
    (target / planted).symlink_to(canary.parent)
    with pytest.raises(OSError, match="a link or a file is on the way"), safe_file.written_beside(target) as private:
        (private / "inner").mkdir(parents=True)
        (private / "inner" / "notes").write_bytes(b"new")
    assert [path.read_bytes() for path in canary.parent.iterdir()] == [b"mine"]


def test_a_write_by_name_that_fails_leaves_what_was_there_and_no_rubbish(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(RuntimeError), safe_file.written_beside(tmp_path / "a") as private:
        private.write_bytes(b"half")
        raise RuntimeError
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


@pytest.mark.parametrize("name", ["jobs", "jobs/one", "../home", "jobs/../../home"])
def test_a_folder_below_the_one_for_results_is_no_link_and_not_elsewhere(tmp_path, canary, name):
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "named").symlink_to(out)
    if name == "jobs/one":
        (out / "jobs").mkdir()
    if ".." not in name:
        (out / name).symlink_to(canary.parent)
    with pytest.raises(AceError, match="cannot be written"):
        safe_file.make_output_folder(tmp_path / "named" / name / "deep", below=tmp_path / "named")
    assert [path.name for path in canary.parent.iterdir()] == ["notes"]
    safe_file.make_output_folder(tmp_path / "named" / "new" / "deep", below=tmp_path / "named")
    assert (out / "new" / "deep").is_dir(), "the folder that the user names may be a link"


def test_a_file_behind_a_link_is_read_only_if_it_lies_in_the_same_folder(tmp_path, canary):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "real").write_bytes(b"real")
    (folder / "inside").symlink_to("real")
    (folder / "out").symlink_to(canary)
    (folder / "other").symlink_to(canary.parent)
    with safe_file.open_inside(folder / "inside", folder) as stream:
        assert stream.read() == b"real"
    for name in ("out", "other/notes", "../home/notes"):
        with pytest.raises(OSError, match="leads out of its folder"):
            safe_file.open_inside(folder / name, folder)


def test_a_link_that_is_swapped_while_it_is_opened_gives_nothing_from_outside(tmp_path, canary, monkeypatch):
    """The name leads out when it is opened, and inside when it is looked at, over and over."""
    folder = tmp_path / "run"
    folder.mkdir()
    place, opened = folder / "model", os.open

    def swapping(path, *arguments, **options):
        place.unlink(missing_ok=True)
        place.symlink_to(canary)
        descriptor = opened(path, *arguments, **options)
        place.unlink()
        place.write_bytes(b"harmless")
        return descriptor

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(OSError, match="leads out of its folder"):
        safe_file.open_inside(place, folder)


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
@pytest.mark.parametrize("write", [WRITERS["content"], WRITERS["by name"]])
def test_a_pipe_is_never_replaced_by_a_file(tmp_path, write):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            write(tmp_path / name)
        assert (tmp_path / name).is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_values_that_nest_without_end_are_damage_and_no_recursion_error():
    with pytest.raises(msgspec.DecodeError, match="too deeply"):
        safe_file.decode_plain(b'{"a":' * 100_000, dict[str, object])


@pytest.mark.skipif(os.name != "posix", reason="there are no such files elsewhere")
@pytest.mark.parametrize("content", [None, b"{", b'{"a": "text"}', b"pipe"])
def test_what_was_kept_and_cannot_be_read_counts_as_nothing(tmp_path, content):
    path = tmp_path / "kept.json"
    if content == b"pipe":
        os.mkfifo(path)
    elif content is not None:
        path.write_bytes(content)
    assert safe_file.read_or_none(path, dict[str, int]) is None
    write_atomically(tmp_path / "whole.json", b'{"a": 1}')
    assert safe_file.read_or_none(tmp_path / "whole.json", dict[str, int]) == {"a": 1}
