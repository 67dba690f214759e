"""Engine packs: chosen by version, removed when nobody uses them."""

import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.jobs import engine_packs, launch
from ace_studio.jobs.engine_packs import best_pack, find_packs, offered_files, remove
from ace_studio.records.errors import AceError
from tests.jobs.packs import SERIES, install_anyway, make_pack, pack_named

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the packs of a user who has none."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return engine_packs.packs_folder()


def test_versions_stay_side_by_side_and_the_newest_with_most_packages_is_used(tmp_path, monkeypatch):
    names = [pack_named(f"{SERIES}.10"), pack_named(f"{SERIES}.9"), pack_named(f"{SERIES}.10", "small")]
    for name, packages in zip(names, (2, 3, 1), strict=True):
        install_anyway(make_pack(tmp_path, name, packages=packages))
    assert [pack.name for pack in find_packs()] == [names[0], names[2], names[1]]
    (Path(find_packs()[0].folder) / "bin" / "python3").unlink()
    assert best_pack().name == names[2] and "missing" in find_packs()[-1].fault
    remove(names[2])
    assert best_pack().name == names[1]
    monkeypatch.setattr("ace_studio.__version__", "99.0.0")
    assert best_pack() is None and len(find_packs()) == 2


def test_a_pack_in_use_and_one_beside_the_program_are_not_removed(tmp_path, place, monkeypatch):
    pack = install_anyway(make_pack(tmp_path))
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
    pack = install_anyway(make_pack(tmp_path))
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
