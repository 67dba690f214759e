"""What pip may install has the bytes that the lock names; attacks by an index that serves others."""

import hashlib
import importlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SYSTEM = "linux-x86_64-cpython-311"


@pytest.fixture(scope="module")
def locked(root):
    sys.path.insert(0, str(root / "packaging"))
    yield importlib.import_module("locked")
    sys.path.remove(str(root / "packaging"))


def make_wheel(folder, *, says: str = "honest"):
    """A wheel of a module that says something; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ace_canary-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("ace_canary.py", f"SAYS = {says!r}\n")
        wheel.writestr("ace_canary-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ace_canary\nVersion: 1.0\n")
        wheel.writestr(
            "ace_canary-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("ace_canary-1.0.dist-info/RECORD", "")
    return path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def report_of(path):
    return {
        "install": [
            {
                "metadata": {"name": "Ace_Canary", "version": "1.0"},
                "download_info": {"url": "", "archive_info": {"hashes": {"sha256": sha256(path)}}},
            },
            {"metadata": {"name": "ace-studio", "version": "1"}, "download_info": {"url": "", "dir_info": {}}},
        ]
    }


def test_a_file_of_the_lock_is_required_by_its_hash(locked, tmp_path):
    wheel = make_wheel(tmp_path)
    lines, unknown = locked.requirements(locked.planned(report_of(wheel)), {"ace-canary==1.0": {sha256(wheel)}})
    assert (lines, unknown) == ([f"ace-canary==1.0 --hash=sha256:{sha256(wheel)}"], [])


def test_other_bytes_under_the_same_name_and_version_are_refused(locked, tmp_path):
    wheel, other = make_wheel(tmp_path / "a"), make_wheel(tmp_path / "b", says="hostile")
    lock = {"ace-canary==1.0": {sha256(wheel)}}
    with pytest.raises(locked.OtherBytesError, match=r"ace-canary==1\.0"):
        locked.requirements(locked.planned(report_of(other)), lock)


def test_a_file_whose_hash_is_not_told_is_refused(locked):
    report = {"install": [{"metadata": {"name": "a", "version": "1"}, "download_info": {"archive_info": {}}}]}
    with pytest.raises(locked.OtherBytesError, match="a==1"):
        locked.requirements(locked.planned(report), {})


def test_what_the_lock_does_not_name_is_told(locked, tmp_path):
    files = locked.planned(report_of(make_wheel(tmp_path)))
    assert locked.requirements(files, {})[1] == ["ace-canary==1.0"]


def test_the_lock_keeps_the_lines_of_other_systems(locked, tmp_path):
    path, files = tmp_path / "hashes.txt", locked.planned(report_of(make_wheel(tmp_path)))
    locked.write_lock(path, files, "darwin-arm64-cpython-312")
    locked.write_lock(path, files, SYSTEM)
    locked.write_lock(path, files, SYSTEM)
    assert len([line for line in path.read_text().splitlines() if not line.startswith("#")]) == 2
    assert locked.read_lock(path, SYSTEM) == {"ace-canary==1.0": {files[0].sha256}}
    assert locked.read_lock(path, "win32-amd64-cpython-311") == {}
    assert locked.read_lock(tmp_path / "none", SYSTEM) == {}


def test_every_line_of_the_lock_is_a_pinned_version_with_a_hash(locked, root):
    lines = (root / "packaging" / "constraints.txt").read_text("utf-8").splitlines()
    pins = {line for line in lines if not line.startswith("#")}
    lock = locked.read_lock(root / "packaging" / "hashes.txt", SYSTEM)
    assert len(lock) > 100
    assert {pin.partition("+")[0] for pin in lock} <= pins
    assert all(len(one) == 64 and set(one) <= set("0123456789abcdef") for hashes in lock.values() for one in hashes)


def test_pip_itself_refuses_a_file_that_was_changed_after_its_report(locked, tmp_path):
    honest = make_wheel(tmp_path / "wheels")
    lines, _ = locked.requirements(locked.planned(report_of(honest)), {"ace-canary==1.0": {sha256(honest)}})
    make_wheel(tmp_path / "wheels", says="hostile")
    (tmp_path / "exact.txt").write_text("\n".join(lines))
    pip = [sys.executable, "-I", "-m", "pip", "install", "--no-index", "--find-links", str(tmp_path / "wheels")]
    pip += ["--disable-pip-version-check", "--target", str(tmp_path / "target"), "--no-deps", "--require-hashes"]
    done = subprocess.run([*pip, "-r", str(tmp_path / "exact.txt")], capture_output=True, text=True, check=False)
    assert done.returncode and "HASH" in done.stdout + done.stderr
    assert not (tmp_path / "target" / "ace_canary.py").exists()


def test_a_set_up_stops_before_anything_is_installed_if_the_index_serves_other_bytes(
    root, locked, tmp_path, monkeypatch
):
    from tests.packaging.test_bootstrap import load_bootstrap

    bootstrap = load_bootstrap(root, tmp_path)
    (tmp_path / "packaging").mkdir()
    bootstrap.VENV.mkdir()
    honest, hostile = make_wheel(tmp_path / "a"), make_wheel(tmp_path / "b", says="hostile")
    locked.write_lock(tmp_path / "packaging" / "hashes.txt", locked.planned(report_of(honest)), locked.system())
    calls, served = [], [hostile]

    def pip(*arguments):
        calls.append(arguments)
        if "--report" in arguments:
            Path(arguments[arguments.index("--report") + 1]).write_text(json.dumps(report_of(served[0])))

    monkeypatch.setattr(bootstrap, "pip_install", pip)
    with pytest.raises(bootstrap.SetupError, match="other bytes"):
        bootstrap.run_pip(("all",))
    assert len(calls) == 1 and "--dry-run" in calls[0]
    served[0] = honest
    bootstrap.run_pip(("all",))
    assert ["--dry-run" in calls[1], "--require-hashes" in calls[2], "--editable" in calls[3]] == [True] * 3
    sys.modules.pop("bootstrap")
