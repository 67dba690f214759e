"""Engine packs: installed whole or not at all, chosen by version, removed when nobody uses them."""

import errno
import subprocess
import sys
import tarfile
from collections import namedtuple
from pathlib import Path

import pytest

from ace_studio.jobs import engine_packs, launch
from ace_studio.jobs.engine_packs import InstallStep, best_pack, find_packs, install, offered_files, remove
from ace_studio.records.errors import AceError, ErrorCode
from tests.jobs.packs import SERIES, make_pack, pack_named, write_hash

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the packs of a user who has none."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return engine_packs.packs_folder()


def quietly(*_: object) -> None:
    """Nobody follows the progress."""


def code_of(file: Path, is_cancelled=bool) -> ErrorCode:
    with pytest.raises(AceError) as raised:
        install(file, quietly, is_cancelled)
    assert raised.value.problem.why or raised.value.problem.code is ErrorCode.NOT_FOUND
    return raised.value.problem.code


def left(place: Path) -> list[str]:
    return [path.name for path in place.iterdir()] if place.exists() else []


def test_an_installed_pack_runs_and_its_steps_were_reported_in_order(tmp_path, place):
    file = make_pack(tmp_path)
    write_hash(file)
    heard: list[tuple[InstallStep, float]] = []
    pack = install(file, lambda step, fraction: heard.append((step, fraction)))
    assert list(dict.fromkeys(step for step, _ in heard)) == list(InstallStep)
    assert heard[-2] == (InstallStep.UNPACK, 1.0)
    assert best_pack() == pack and not pack.fault and left(place) == [pack_named()]
    said = subprocess.run([pack.python, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True)
    assert said.stdout == "42\n"


def test_a_pack_that_is_there_is_left_alone_and_a_damaged_one_is_replaced(tmp_path):
    file = make_pack(tmp_path)
    module = Path(install(file, quietly).folder) / "lib" / "module.py"
    before = module.stat().st_ino
    install(file, quietly)
    assert module.stat().st_ino == before
    module.write_bytes(b"")
    install(file, quietly)
    assert module.stat().st_size == 600_000


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def change_after_hashing(file: Path) -> None:
    file.with_name(f"{file.name}.sha256").write_text("0" * 64)


def as_before_3_11_4(monkeypatch):
    """Debian 12's Python has no filters of archives."""
    extract = tarfile.TarFile.extract
    filters = {"filter": "fully_trusted"} if sys.version_info >= (3, 12) else {}
    monkeypatch.delattr(tarfile, "data_filter")
    monkeypatch.setattr(tarfile.TarFile, "extract", lambda self, member, path: extract(self, member, path, **filters))


def test_a_pack_is_installed_by_a_python_without_filters_of_archives(tmp_path, place, monkeypatch):
    as_before_3_11_4(monkeypatch)
    install(make_pack(tmp_path), quietly)
    assert left(place) == [pack_named()]


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
@pytest.mark.parametrize("is_old", [False, True])
def test_a_pack_that_is_not_what_it_says_or_leads_outside_leaves_nothing(
    tmp_path, place, said, members, is_old, monkeypatch
):
    if is_old:
        as_before_3_11_4(monkeypatch)
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

    monkeypatch.setattr("tarfile.TarFile.extract", full)
    assert code_of(file) is ErrorCode.SYSTEM and left(place) == []


@pytest.mark.parametrize("polls", [1, 20, 70])
def test_cancelling_at_any_moment_leaves_nothing(tmp_path, place, polls):
    file = make_pack(tmp_path)
    asked = []
    assert code_of(file, lambda: asked.append(0) or len(asked) > polls) is ErrorCode.CANCELLED
    assert left(place) == []


def test_versions_stay_side_by_side_and_the_newest_with_most_packages_is_used(tmp_path, monkeypatch):
    names = [pack_named(f"{SERIES}.10"), pack_named(f"{SERIES}.9"), pack_named(f"{SERIES}.10", "small")]
    for name, packages in zip(names, (2, 3, 1), strict=True):
        install(make_pack(tmp_path, name, packages=packages), quietly)
    assert [pack.name for pack in find_packs()] == [names[0], names[2], names[1]]
    (Path(find_packs()[0].folder) / "bin" / "python3").unlink()
    assert best_pack().name == names[2] and "missing" in find_packs()[-1].fault
    remove(names[2])
    assert best_pack().name == names[1]
    monkeypatch.setattr("ace_studio.__version__", "99.0.0")
    assert best_pack() is None and len(find_packs()) == 2


def test_a_pack_in_use_and_one_beside_the_program_are_not_removed(tmp_path, place, monkeypatch):
    pack = install(make_pack(tmp_path), quietly)
    sleeper = Path(pack.folder) / "bin" / "sleeper"
    sleeper.symlink_to("/bin/sleep")
    with subprocess.Popen([sleeper, "60"]) as process:
        with pytest.raises(AceError, match="in use"):
            remove(pack.name)
        process.kill()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "program" / "ace-studio"))
    (tmp_path / "program").mkdir()
    place.rename(tmp_path / "program" / "engines")
    with pytest.raises(AceError, match="program's own folder"):
        remove(pack.name)
    assert best_pack().is_portable
    with pytest.raises(AceError, match="No engine pack"):
        remove("ace-engine-1-a-b-c")


def test_a_frozen_program_takes_what_the_packager_names_then_a_pack_then_the_path(tmp_path, monkeypatch):
    assert launch.default_interpreter() == sys.executable
    pack = install(make_pack(tmp_path), quietly)
    assert launch.default_interpreter() == sys.executable
    with monkeypatch.context() as patched:
        patched.setattr(launch.importlib.util, "find_spec", lambda _: None)
        assert launch.default_interpreter() == pack.python
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert launch.default_interpreter() == pack.python
    monkeypatch.setenv("ACE_STUDIO_PYTHON", "/named/python")
    assert launch.default_interpreter() == "/named/python"
    monkeypatch.delenv("ACE_STUDIO_PYTHON")
    remove(pack.name)
    monkeypatch.setenv("PATH", "")
    assert launch.default_interpreter() == "python3"


def test_packs_among_the_downloads_that_fit_are_offered_the_newest_first(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_downloads_dir", lambda: str(tmp_path))
    for name in (
        pack_named(f"{SERIES}.1"),
        pack_named(f"{SERIES}.10") + " (1)",
        pack_named("98.0.0"),
        "ace-engine-x-y",
    ):
        (tmp_path / f"{name}.tar.gz").touch()
    assert [file.name.split("-")[2] for file in offered_files()] == [f"{SERIES}.10", f"{SERIES}.1"]
