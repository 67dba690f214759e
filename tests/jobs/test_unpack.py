"""The unpacker: what is in an honest archive comes out, and nothing of a hostile one leaves its folder."""

import gzip
import io
import os
import random
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from ace_studio.jobs import unpack as unpack_module
from ace_studio.jobs.unpack import ArchiveError, unpack
from tests.jobs.packs import beyond_the_longest_path, header

MOST = 2_000_000


def archive_of(*members: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT, contents: Mapping[str, bytes] = {}) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for member in members:
            content = contents.get(member.name, bytes(member.size))
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def names_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def refused(content: bytes, into: Path) -> str:
    """Why an archive is refused, the same when it is only read and when it is written."""
    said = []
    for place in (None, into):
        with pytest.raises((ArchiveError, OSError)) as raised:
            unpack(io.BytesIO(content), place, most_bytes=MOST)
        said.append(f"{type(raised.value).__name__}: {raised.value}")
    assert said[0] == said[1]
    return said[0]


@pytest.fixture
def into(tmp_path):
    """The empty folder, beside a canary that nothing may touch."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "canary").write_text("alive")
    made = tmp_path / "home" / "data" / "tmp"
    made.mkdir(parents=True)
    yield made
    assert (tmp_path / "home" / "canary").read_text() == "alive"
    assert names_below(tmp_path) - {f"home/data/tmp/{name}" for name in names_below(made)} == {
        "home", "home/canary", "home/data", "home/data/tmp",
    }  # fmt: skip


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("by_descriptor", [True, False])
def test_files_folders_and_links_come_out_with_plain_permissions(into, form, by_descriptor, monkeypatch):
    if not by_descriptor:
        monkeypatch.setattr(unpack_module, "BY_DESCRIPTOR", False)
    long = "lib/" + "/".join(["n" * 60] * 3)
    members = [
        header("top", tarfile.DIRTYPE, mode=0o777),
        header("top/bin/run", mode=0o6755, size=3),
        header(f"top/{long}/module", mode=0o1644, size=4),
        header("top/empty", tarfile.DIRTYPE),
    ]
    links = [
        header("top/lib/link", tarfile.SYMTYPE, linkname="../bin/run"),
        header("top/lib/folder", tarfile.SYMTYPE, linkname="../bin"),
        header("top/again", tarfile.LNKTYPE, linkname="top/bin/run"),
    ]
    if by_descriptor:
        members += links
    contents = {"top/bin/run": b"run", f"top/{long}/module": b"code"}
    before = os.umask(0o022)
    try:
        found = unpack(io.BytesIO(archive_of(*members, form=form, contents=contents)), into, most_bytes=MOST)
    finally:
        os.umask(before)
    assert found.top == "top" and found.is_file(("top", "bin", "run")) and not found.is_file(("top", "empty"))
    assert (into / "top" / "bin" / "run").read_bytes() == b"run" and (into / "top" / "empty").is_dir()
    assert (into / "top" / "bin" / "run").stat().st_mode & 0o7777 == 0o755
    assert (into / "top" / long / "module").stat().st_mode & 0o7777 == 0o644
    assert (into / "top").stat().st_mode & 0o7777 == 0o755
    if by_descriptor:
        assert (into / "top" / "lib" / "link").read_bytes() == b"run"
        assert (into / "top" / "lib" / "folder" / "run").read_bytes() == b"run"
        assert (into / "top" / "again").stat().st_ino == (into / "top" / "bin" / "run").stat().st_ino
    assert found.files(without="nothing") == ((4, 3 + 4 + 3 + 3) if by_descriptor else (2, 7))


LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE
HOSTILE = {
    "up": [header("top/../../canary", size=1)],
    "absolute": [header("/top/file", size=1)],
    "a part that is no name": [header("top/./file", size=1)],
    "an empty part": [header("top//file", size=1)],
    "a backslash": [header("top/..\\..\\canary", size=1)],
    "a line break": [header("top/a\nb", size=1)],
    "a long part": [header("top/" + "n" * 256, size=1)],
    "a long path": [header("top/" + "/".join(["n" * 100] * 6), size=1)],
    "a deep path": [header("top/" + "/".join("n" * 60), size=1)],
    "beside the top folder": [header("top/file", size=1), header("other/file", size=1)],
    "a link up": [header("top/link", LINK, linkname="../../canary")],
    "a link through the folder and up": [header("top/a/link", LINK, linkname="../b/../../../canary")],
    "a link up to what has the name of a member": [
        header("top/file", size=1),
        header("top/a/link", LINK, linkname="../../../top/file"),
    ],
    "an absolute link": [header("top/link", LINK, linkname="/etc/passwd")],
    "a link to nothing": [header("top/link", LINK, linkname="nothing")],
    "a link to its own folder": [header("top/a/link", LINK, linkname="..")],
    "a link to itself": [header("top/link", LINK, linkname="link")],
    "a chain of links": [
        header("top/file", size=1),
        header("top/one", LINK, linkname="file"),
        header("top/two", LINK, linkname="one"),
    ],
    "a file through a link": [
        header("top/folder", tarfile.DIRTYPE),
        header("top/link", LINK, linkname="folder"),
        header("top/link/file", size=1),
    ],
    "a link in place of a folder": [header("top/a/file", size=1), header("top/a", LINK, linkname="b")],
    "a link through a link": [
        header("top/folder/file", size=1),
        header("top/link", LINK, linkname="folder"),
        header("top/other", LINK, linkname="link/file"),
    ],
    "a file over a link": [
        header("top/file", size=1),
        header("top/link", LINK, linkname="file"),
        header("top/link", size=1),
    ],
    "a hard link to nothing": [header("top/link", HARD, linkname="top/nothing")],
    "a hard link up": [header("top/link", HARD, linkname="top/../../canary")],
    "a hard link to a link": [
        header("top/file", size=1),
        header("top/one", LINK, linkname="file"),
        header("top/two", HARD, linkname="top/one"),
    ],
    "a hard link to a folder": [header("top/a", tarfile.DIRTYPE), header("top/b", HARD, linkname="top/a")],
    "a character device": [header("top/zero", tarfile.CHRTYPE, devmajor=1, devminor=5)],
    "a block device": [header("top/disk", tarfile.BLKTYPE, devmajor=8)],
    "a pipe": [header("top/pipe", tarfile.FIFOTYPE)],
    "a file twice": [header("top/file", size=1), header("top/file", size=2)],
    "a folder over a file": [header("top/file", size=1), header("top/file", tarfile.DIRTYPE)],
    "a file below a file": [header("top/file", size=1), header("top/file/more", size=1)],
    "more bytes than it may have": [header("top/file", size=MOST)],
    "a path beyond the longest": beyond_the_longest_path("top", up=3, to="canary"),
}


@pytest.mark.skipif(not unpack_module.BY_DESCRIPTOR, reason="links are refused here for another reason")
@pytest.mark.parametrize("name", HOSTILE)
def test_what_leads_elsewhere_or_is_no_file_is_refused(into, name):
    assert refused(archive_of(*HOSTILE[name]), into).startswith("ArchiveError")


def test_links_are_refused_where_folders_have_no_descriptors(into, monkeypatch):
    monkeypatch.setattr(unpack_module, "BY_DESCRIPTOR", False)
    content = archive_of(header("top/file", size=1), header("top/link", LINK, linkname="file"))
    assert "cannot make links safely" in refused(content, into)


def lengthened(content: bytes, by: int) -> bytes:
    """The first member's size, made larger, with a right checksum."""
    changed = header(content[:100].rstrip(b"\0").decode(), size=by)
    return changed.tobuf(tarfile.USTAR_FORMAT) + content[512:]


PLAIN = archive_of(header("top/file", size=5))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        PLAIN[:700],
        PLAIN[:512],
        PLAIN[:1024],
        b"x" * 2048,
        PLAIN[:-1] + b"x",
        PLAIN + PLAIN,
        lengthened(PLAIN, 1_000_000),
        PLAIN[:130] + b"\xff" + PLAIN[131:],
        header("x", tarfile.XHDTYPE, size=1 << 30).tobuf(tarfile.USTAR_FORMAT),
        header("x", tarfile.GNUTYPE_LONGNAME, size=1 << 30).tobuf(tarfile.USTAR_FORMAT),
        header("x", tarfile.XHDTYPE, size=20).tobuf(tarfile.USTAR_FORMAT)
        + b"0 path=../escaped\n\0\0".ljust(512, b"\0"),
        header("x", tarfile.XHDTYPE, size=15).tobuf(tarfile.USTAR_FORMAT)
        + b"15 size=-12345\n".ljust(512, b"\0")
        + PLAIN,
        header("x", tarfile.XGLTYPE, size=0).tobuf(tarfile.USTAR_FORMAT) + PLAIN,
    ],
)
def test_a_damaged_or_crooked_archive_is_refused(into, content):
    assert refused(content, into).startswith("ArchiveError")


def test_too_many_members_are_refused(into, monkeypatch):
    monkeypatch.setattr(unpack_module, "MOST_MEMBERS", 20)
    assert "more than 20 members" in refused(archive_of(*(header(f"top/{at}") for at in range(30))), into)


def test_not_a_byte_is_written_beyond_the_limit(into):
    content = gzip.compress(archive_of(header("top/small", size=10), header("top/zeros", size=50 * MOST)))
    assert len(content) < 500_000
    with gzip.open(io.BytesIO(content)) as plain, pytest.raises(ArchiveError, match="more than"):
        unpack(plain, into, most_bytes=MOST)
    assert sum(path.stat().st_size for path in into.rglob("*") if path.is_file()) == 10


@pytest.mark.skipif(not unpack_module.BY_DESCRIPTOR, reason="folders have no descriptors here")
def test_a_link_that_somebody_puts_in_place_of_a_folder_is_not_followed(into, tmp_path):
    class Swaps(io.BytesIO):
        """While the second file is read, the folder that it goes to becomes a link to the canary's."""

        def read(self, size=-1):
            if self.tell() >= 1024 + 512 and not (into / "top" / "a").is_symlink() and (into / "top").exists():
                (into / "top" / "a").rename(into / "top" / "was")
                (into / "top" / "a").symlink_to(tmp_path / "home")
            return super().read(size)

    members = header("top/a/one", size=1), header("top/b/two", size=1), header("top/a/canary", size=1)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        unpack(Swaps(archive_of(*members)), into, most_bytes=MOST)


@pytest.mark.skipif(not unpack_module.BY_DESCRIPTOR, reason="folders have no descriptors here")
def test_a_file_that_is_there_already_is_not_written_through(into, tmp_path):
    (into / "top").mkdir()
    (into / "top" / "file").symlink_to(tmp_path / "home" / "canary")
    with pytest.raises(FileExistsError):
        unpack(io.BytesIO(PLAIN), into, most_bytes=MOST)


def test_archives_with_changed_bytes_are_refused_or_stay_inside(into):
    long = "n" * 150
    good = archive_of(
        header("top", tarfile.DIRTYPE),
        header(f"top/{long}", size=700),
        header("top/link", LINK, linkname=long),
        header("top/again", HARD, linkname=f"top/{long}"),
    )
    unpack(io.BytesIO(good), None, most_bytes=MOST)
    draw, ends = random.Random(7), set()
    for at in range(300):
        content = bytearray(good)
        for _ in range(draw.choice((1, 2, 5))):
            content[draw.randrange(len(content))] = draw.randrange(256)
        for start in range(0, len(content) - 511, 512):  # most with right checksums
            block = bytes(content[start : start + 512])
            if block[257:262] == b"ustar" and draw.random() < 0.9:
                content[start + 148 : start + 156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
        (into / str(at)).mkdir()
        try:
            unpack(io.BytesIO(bytes(content)), into / str(at), most_bytes=MOST)
            ends.add("unpacked")
        except ArchiveError:
            ends.add("refused")
    assert ends == {"unpacked", "refused"}
