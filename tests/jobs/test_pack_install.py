"""Installing a pack: examined, agreed to by its SHA-256, then installed whole or not at all."""

import errno
import gzip
import os
import subprocess
import sys
import tarfile
from collections import namedtuple
from pathlib import Path

import pytest

from ace_studio.jobs import engine_packs, pack_install, signature
from ace_studio.jobs.engine_packs import best_pack, find_packs
from ace_studio.jobs.pack_install import Consent, InstallStep, examine, install
from ace_studio.jobs.signature import Signer
from ace_studio.records.errors import AceError, ErrorCode
from tests.jobs.packs import (
    SERIES,
    Makers,
    beyond_the_longest_path,
    header,
    install_anyway,
    make_pack,
    pack_named,
    write_hash,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the packs of a user who has none, below a home with a canary."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return engine_packs.packs_folder()


@pytest.fixture
def makers(tmp_path, monkeypatch):
    made = Makers()
    key = made.write_key(tmp_path / "release-key.pub")
    monkeypatch.setattr(signature, "release_key", lambda: key)
    return made


def quietly(*_: object) -> None:
    """Nobody follows the progress."""


def code_of(file: Path, is_cancelled=bool) -> ErrorCode:
    with pytest.raises(AceError) as raised:
        install_anyway(file, quietly, is_cancelled)
    assert raised.value.problem.why or raised.value.problem.code is ErrorCode.NOT_FOUND
    return raised.value.problem.code


def left(place: Path) -> list[str]:
    return [path.name for path in place.iterdir()] if place.exists() else []


def test_an_examined_pack_was_neither_written_nor_run_and_says_what_it_is(tmp_path, place):
    offer = examine(make_pack(tmp_path, packages=3), quietly)
    assert not place.exists()
    assert offer.name == pack_named() and offer.bytes > 600_000 and len(offer.packages) == 3
    assert offer.signed.signer is Signer.NOBODY and not offer.replaces
    install_anyway(tmp_path / f"{pack_named()}.tar.gz")
    assert examine(make_pack(tmp_path, pack_named(kind="small")), quietly).replaces == pack_named()


@pytest.mark.parametrize(
    ("is_signed", "consent", "is_enough"),
    [
        (False, {}, False),
        (False, {"takes_unsigned": True}, True),
        (True, {}, True),
        (True, {"sha256": "0" * 64}, False),
        (False, {"sha256": "0" * 64, "takes_unsigned": True}, False),
        (False, {"sha256": "", "takes_unsigned": True}, False),
    ],
)
def test_only_a_yes_to_these_bytes_installs_and_unsigned_ones_need_a_second(
    tmp_path, place, makers, is_signed, consent, is_enough
):
    file = make_pack(tmp_path)
    if is_signed:
        makers.sign(file)
    offer = examine(file, quietly)
    given = Consent(**({"sha256": offer.sha256} | consent))
    if is_enough:
        pack = install(offer, given, quietly)
        assert (pack.sha256, pack.signer) == (offer.sha256, offer.signed.signer)
        assert find_packs() == (pack,)
    else:
        with pytest.raises(AceError) as raised:
            install(offer, given, quietly)
        assert raised.value.problem.code is ErrorCode.UNTRUSTED and not place.exists()


def test_an_unsigned_pack_of_the_same_name_does_not_stay_in_place_of_a_signed_one(tmp_path, makers):
    install_anyway(make_pack(tmp_path / "unsigned", members={}, said={"packages": {"torch": "evil"}}))
    makers.sign(make_pack(tmp_path / "signed"))
    offer = examine(tmp_path / "signed" / f"{pack_named()}.tar.gz", quietly)
    install(offer, Consent(sha256=offer.sha256), quietly)
    (pack,) = find_packs()
    assert pack.signer is Signer.MAKERS and "torch" not in pack.packages


def test_a_pack_that_gets_its_signature_later_is_signed_after_it_is_installed_again(tmp_path, makers):
    file = make_pack(tmp_path)
    assert install_anyway(file).signer is Signer.NOBODY
    makers.sign(file)
    assert install_anyway(file).signer is Signer.MAKERS and len(find_packs()) == 1


def test_what_a_pack_says_of_its_own_signature_does_not_count(tmp_path):
    install_anyway(make_pack(tmp_path, said={"signer": "makers", "sha256": "0" * 64}))
    assert find_packs()[0].signer is Signer.NOBODY


def swap_whole(file: Path) -> None:
    file.unlink()
    make_pack(file.parent, said={"packages": {"torch": "another"}})


def swap_in_place(file: Path) -> None:
    inode = file.stat().st_ino
    other = make_pack(file.parent / "other", said={"packages": {"torch": "another"}})
    file.write_bytes(other.read_bytes())
    assert file.stat().st_ino == inode


def add_a_byte(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


@pytest.mark.parametrize("swap", [swap_whole, swap_in_place, add_a_byte, lambda file: file.write_bytes(b"")])
def test_a_file_that_is_exchanged_between_the_question_and_the_installation_is_not_kept(tmp_path, place, makers, swap):
    file = make_pack(tmp_path)
    makers.sign(file)
    offer = examine(file, quietly)
    swap(file)
    with pytest.raises(AceError) as raised:
        install(offer, Consent(sha256=offer.sha256, takes_unsigned=True), quietly)
    assert raised.value.problem.code is ErrorCode.BAD_FILE and left(place) == []


def test_a_file_that_is_exchanged_while_it_is_unpacked_is_not_kept(tmp_path, place):
    file = make_pack(tmp_path, said={"packages": {"torch": "good"}})
    other = make_pack(tmp_path / "other", said={"packages": {"torch": "evil"}}).read_bytes()
    offer = examine(file, quietly)

    def report(step, fraction):
        if step is InstallStep.UNPACK and fraction < 0.5:
            with file.open("r+b") as stream:
                stream.seek(file.stat().st_size // 2)
                stream.write(other[file.stat().st_size // 2 :])

    with pytest.raises(AceError) as raised:
        install(offer, Consent(sha256=offer.sha256, takes_unsigned=True), report)
    assert raised.value.problem.code is ErrorCode.BAD_FILE and left(place) == []


def test_a_signature_of_other_bytes_is_refused_before_the_question(tmp_path, makers):
    file = make_pack(tmp_path)
    makers.sign(file, content=b"other")
    assert code_of(file) is ErrorCode.BAD_FILE


@pytest.mark.parametrize("up", [4, 5, 6])
def test_a_pack_with_a_path_beyond_the_longest_writes_nothing_anywhere(tmp_path, place, up):
    canary = tmp_path / ".bashrc"
    canary.write_text("alive")
    evil = beyond_the_longest_path(pack_named(), up=up, to=".bashrc")
    assert code_of(make_pack(tmp_path / "in", more=evil)) is ErrorCode.BAD_FILE
    assert canary.read_text() == "alive" and not place.exists()


@pytest.mark.parametrize(
    "evil",
    [
        header(f"{pack_named()}/link", tarfile.LNKTYPE, linkname=f"{pack_named()}/nothing"),
        header(f"{pack_named()}/pipe", tarfile.FIFOTYPE),
        header(f"{pack_named()}/zero", tarfile.CHRTYPE, devmajor=1, devminor=5),
        header(f"{pack_named()}/bin/python3", size=1),
        header(f"{pack_named()}/bin", tarfile.SYMTYPE, linkname="/bin"),
        header("/etc/passwd", size=1),
    ],
    ids=lambda one: one.name,
)
def test_a_pack_with_a_member_that_is_no_file_of_it_is_refused(tmp_path, place, evil):
    assert code_of(make_pack(tmp_path, more=[evil])) is ErrorCode.BAD_FILE and not place.exists()


def test_a_setuid_bit_is_not_taken_over(tmp_path):
    evil = header(f"{pack_named()}/su", mode=0o6777, size=0)
    pack = install_anyway(make_pack(tmp_path, said={"files": 3}, more=[evil]))
    assert (Path(pack.folder) / "su").stat().st_mode & 0o7022 == 0


def test_a_bomb_whose_size_field_lies_is_refused_before_a_byte_is_written(tmp_path, place, monkeypatch):
    monkeypatch.setattr(pack_install, "FREE_EXPANSION_BYTES", 100_000)
    plain = make_pack(tmp_path, more=[header(f"{pack_named()}/zeros", size=100_000_000)])
    with gzip.open(plain) as stream:
        content = gzip.compress(stream.read(), compresslevel=1)
    plain.write_bytes(content[:-4] + (1000).to_bytes(4, "little"))
    assert code_of(plain) is ErrorCode.BAD_FILE and not place.exists()


def test_a_name_with_a_zero_byte_is_a_problem_like_others(tmp_path):
    assert code_of(tmp_path / f"{pack_named()}\0.tar.gz") is ErrorCode.BAD_FILE


def test_a_pipe_named_like_a_pack_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / f"{pack_named()}.tar.gz")
    assert code_of(tmp_path / f"{pack_named()}.tar.gz") is ErrorCode.NOT_FOUND


def test_an_installed_pack_runs_and_its_steps_were_reported_in_order(tmp_path, place):
    file = make_pack(tmp_path)
    write_hash(file)
    heard: list[tuple[InstallStep, float]] = []
    pack = install_anyway(file, lambda step, fraction: heard.append((step, fraction)))
    assert list(dict.fromkeys(step for step, _ in heard)) == list(InstallStep)
    assert heard[-2] == (InstallStep.UNPACK, 1.0)
    assert best_pack() == pack and not pack.fault and left(place) == [pack_named()]
    said = subprocess.run([pack.python, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True)
    assert said.stdout == "42\n"


def test_a_pack_that_is_there_is_left_alone_and_a_damaged_one_is_replaced(tmp_path):
    file = make_pack(tmp_path)
    module = Path(install_anyway(file).folder) / "lib" / "module.py"
    before = module.stat().st_ino
    install_anyway(file)
    assert module.stat().st_ino == before
    module.write_bytes(b"")
    install_anyway(file)
    assert module.stat().st_size == 600_000


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def change_after_hashing(file: Path) -> None:
    file.with_name(f"{file.name}.sha256").write_text("0" * 64)


@pytest.mark.parametrize("harm", [cut_short, flip_a_byte, change_after_hashing, lambda file: file.write_text("no")])
def test_a_damaged_archive_leaves_nothing(tmp_path, place, harm):
    file = make_pack(tmp_path)
    harm(file)
    assert code_of(file) is ErrorCode.BAD_FILE and left(place) == []


@pytest.mark.parametrize(
    ("said", "members"),
    [
        ({"files": 3}, {}),
        ({"bytes": 1}, {}),
        ({"name": "another"}, {}),
        ({"python": "../../bin/sh"}, {}),
        ({"files": "two"}, {}),
        ({}, {"../escaped": b"x"}),
        ({}, {f"{pack_named()}/../../escaped": b"x"}),
        ({}, {f"{pack_named()}/more": b"x"}),
    ],
)
def test_a_pack_that_is_not_what_it_says_or_leads_outside_leaves_nothing(tmp_path, place, said, members):
    assert code_of(make_pack(tmp_path / "in", said=said, members=members)) is ErrorCode.BAD_FILE
    assert left(place) == [] and not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize("name", [f"ace-engine-{SERIES}.0-plan9-mips-cpu", pack_named("99.9.0")])
def test_a_pack_for_another_system_or_version_is_refused_before_it_is_unpacked(tmp_path, place, name):
    assert code_of(make_pack(tmp_path, name)) is ErrorCode.UNSUPPORTED and left(place) == []


def test_a_file_that_is_not_there_and_an_archive_of_something_else_are_told_apart(tmp_path):
    assert code_of(tmp_path / "none.tar.gz") is ErrorCode.NOT_FOUND
    assert code_of(make_pack(tmp_path, "other-thing-0.2.0-a-b-c")) is ErrorCode.BAD_FILE


def test_a_full_disk_is_told_before_and_while_unpacking(tmp_path, place, monkeypatch):
    file = make_pack(tmp_path)
    with monkeypatch.context() as patched:
        usage = namedtuple("usage", "total used free")(10, 9, 1000)
        patched.setattr("ace_studio.records.system_faults.shutil.disk_usage", lambda _: usage)
        assert code_of(file) is ErrorCode.SYSTEM and left(place) == []

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ace_studio.jobs.unpack.os.mkdir", full)
    assert code_of(file) is ErrorCode.SYSTEM and left(place) == []


@pytest.mark.parametrize("polls", [1, 20, 70])
def test_cancelling_at_any_moment_leaves_nothing(tmp_path, place, polls):
    file = make_pack(tmp_path)
    asked = []
    assert code_of(file, lambda: asked.append(0) or len(asked) > polls) is ErrorCode.CANCELLED
    assert left(place) == []
