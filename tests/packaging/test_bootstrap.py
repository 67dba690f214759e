"""The set-up: one hash decides, half-made work is thrown away, two starts take turns, failures are explained."""

import errno
import importlib.util
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import ModuleType

import pytest

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
[project]
name = "ace-studio"
version = "0.1.0"
dependencies = ["numpy>=1"]
[tool.ruff]
line-length = 120
"""


def load_bootstrap(root: Path, checkout: Path) -> ModuleType:
    """The module, pointed at another checkout."""
    packaging = str(root / "packaging")
    sys.path.insert(0, packaging)
    try:
        spec = importlib.util.spec_from_file_location("bootstrap", root / "packaging" / "bootstrap.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["bootstrap"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(packaging)
    module.ROOT = checkout
    module.CONSTRAINTS = checkout / "packaging" / "constraints.txt"
    module.VENV = checkout / ".venv"
    module.STAMP = module.VENV / "ace-stamp.json"
    module.INSTALLING = module.VENV / "ace-installing"
    module.LOG = module.VENV / "ace-setup.log"
    module.LOCK = checkout / ".venv.lock"
    module.VENV_PYTHON = module.VENV / module.VENV_PYTHON.relative_to(root / ".venv")
    return module


@pytest.fixture
def checkout(tmp_path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "packaging").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "packaging" / "constraints.txt").write_text("numpy==2.0.0\n")
    return folder


@pytest.fixture
def bootstrap(root, checkout, monkeypatch):
    module = load_bootstrap(root, checkout)
    monkeypatch.setattr(module, "install_system_packages", lambda **_: None)
    monkeypatch.delenv("PIP_CERT", raising=False)
    monkeypatch.setattr(module, "SYSTEM_CERTIFICATES", ())
    # Without pip a .venv is made in a tenth of a second instead of five.
    monkeypatch.setattr(module, "MAKE_VENV", (*module.MAKE_VENV, "--without-pip"))
    monkeypatch.setattr(module, "VENV_PROBE", module.VENV_PROBE.replace(", pip", ""))
    yield module
    sys.modules.pop("bootstrap")
    sys.modules.pop("system_packages", None)
    sys.modules.pop("parallel_tests", None)


@pytest.fixture
def system_packages(bootstrap):
    return sys.modules["system_packages"]


@pytest.fixture
def parallel_tests(bootstrap):
    return sys.modules["parallel_tests"]


@pytest.fixture
def pip_calls(bootstrap, monkeypatch) -> list[tuple[str, ...]]:
    """The extras of every installation; nothing is installed."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(bootstrap, "run_pip", lambda extras: calls.append(tuple(extras)))
    return calls


def test_the_second_start_installs_nothing(bootstrap, pip_calls):
    bootstrap.set_up(("all",))
    assert bootstrap.is_ready(("all",))
    bootstrap.set_up(("all",))
    assert pip_calls == [("all",)]


def test_asking_for_another_extra_installs_it_on_top_and_keeps_the_others(bootstrap, pip_calls):
    bootstrap.set_up(("all",))
    assert not bootstrap.is_ready(("all", "test"))
    bootstrap.set_up(("test",))
    assert pip_calls == [("all",), ("all", "test")]
    assert bootstrap.is_ready(("all",))


@pytest.mark.parametrize(
    ("file", "before", "after", "is_still_ready"),
    [
        ("pyproject.toml", "numpy>=1", "numpy>=2", False),
        ("pyproject.toml", "hatchling", "hatchling>=1.25", False),
        ("packaging/constraints.txt", "2.0.0", "2.0.1", False),
        ("pyproject.toml", "line-length = 120", "line-length = 100", True),
    ],
)
def test_only_what_pip_reads_makes_the_stamp_differ(
    bootstrap, pip_calls, checkout, file, before, after, is_still_ready
):
    bootstrap.set_up(("all",))
    text = (checkout / file).read_text()
    assert before in text
    (checkout / file).write_text(text.replace(before, after))
    assert bootstrap.is_ready(("all",)) is is_still_ready


def test_a_changed_project_is_upgraded_in_place(bootstrap, pip_calls, checkout):
    bootstrap.set_up(("all",))
    keepsake = bootstrap.VENV / "keepsake"
    keepsake.touch()
    (checkout / "pyproject.toml").write_text(PYPROJECT.replace("numpy>=1", "numpy>=2"))
    bootstrap.set_up(("all",))
    assert len(pip_calls) == 2
    assert keepsake.exists()


def test_a_venv_left_half_made_is_made_anew(bootstrap, pip_calls):
    bootstrap.make_venv()
    bootstrap.INSTALLING.touch()
    rubbish = bootstrap.VENV / "rubbish"
    rubbish.touch()
    bootstrap.set_up(("all",))
    assert not rubbish.exists()
    assert not bootstrap.INSTALLING.exists()


def test_a_venv_that_does_not_start_is_made_anew(bootstrap, pip_calls):
    bootstrap.VENV_PYTHON.parent.mkdir(parents=True)
    bootstrap.VENV_PYTHON.write_text("not a program")
    bootstrap.set_up(("all",))
    assert bootstrap.venv_tag() == sys.implementation.cache_tag


def test_a_working_venv_that_somebody_else_made_is_kept(bootstrap, pip_calls):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bootstrap.VENV], check=True)
    keepsake = bootstrap.VENV / "keepsake"
    keepsake.touch()
    bootstrap.set_up(("all",))
    assert keepsake.exists()
    assert pip_calls == [("all",)]


def test_a_new_venv_has_pip_and_one_without_pip_counts_as_none(bootstrap, monkeypatch):
    bootstrap.make_venv()
    monkeypatch.undo()
    assert bootstrap.venv_tag() is None
    assert bootstrap.make_venv() == sys.implementation.cache_tag
    assert bootstrap.venv_tag() == sys.implementation.cache_tag


def test_an_installation_that_failed_is_not_called_ready(bootstrap, monkeypatch):
    def fail(extras):
        raise bootstrap.SetupError("no network")

    monkeypatch.setattr(bootstrap, "run_pip", fail)
    with pytest.raises(bootstrap.SetupError):
        bootstrap.set_up(("all",))
    assert not bootstrap.is_ready(("all",))
    assert bootstrap.INSTALLING.exists()


def test_a_stamp_that_cannot_be_read_counts_as_none(bootstrap, pip_calls):
    bootstrap.set_up(("all",))
    bootstrap.STAMP.write_text("[half a stam")
    assert not bootstrap.is_ready(("all",))


@pytest.mark.parametrize(("settings", "is_trusted"), [("", True), ("global.cert='/mine.crt'", False)])
def test_the_certificates_of_the_system_are_used_unless_pip_has_others(
    bootstrap, monkeypatch, tmp_path, settings, is_trusted
):
    certificates = tmp_path / "ca.crt"
    certificates.touch()
    bootstrap.VENV_PYTHON.parent.mkdir(parents=True)
    bootstrap.VENV_PYTHON.write_text(f'#!/bin/sh\necho "{settings}"\n')
    bootstrap.VENV_PYTHON.chmod(0o755)
    monkeypatch.setattr(bootstrap, "SYSTEM_CERTIFICATES", (tmp_path / "not there", certificates))
    monkeypatch.setenv("PIP_CERT", "")
    bootstrap.trust_system_certificates()
    assert (bootstrap.os.environ["PIP_CERT"] == str(certificates)) is is_trusted


def test_too_little_room_is_said_before_anything_is_made(bootstrap, monkeypatch):
    usage = type("Usage", (), {"free": 1_000_000_000})
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(bootstrap.SetupError, match=r"1\.0 GB left.*about 3 GB"):
        bootstrap.set_up(("all",))
    assert not bootstrap.VENV.exists()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "the disk is full"),
        (
            "Retrying after connection broken by 'NewConnectionError'\nERROR: No matching distribution found for x",
            "the package index cannot be reached",
        ),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'", "certificate"),
        ("ERROR: No matching distribution found for torch==2.13.0", "torch==2.13.0"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "may not be written"),
        ("OSError: [Errno 30] Read-only file system: 'x'", "the disk is read-only"),
        ("one\ntwo\nERROR: resolution is impossible", "resolution is impossible"),
    ],
)
def test_every_usual_failure_of_pip_has_a_cause_and_a_remedy(bootstrap, output, expected):
    what, remedy = bootstrap.explain_failure(output, "pip could not install the packages")
    assert expected in what
    assert bool(remedy) == ("resolution" not in expected)  # no output of pip was kept that could be read


def test_a_failed_set_up_ends_with_a_message_and_code_6(bootstrap, monkeypatch, capsys):
    def fail(extras):
        raise bootstrap.SetupError("no network", "plug it in")

    monkeypatch.setattr(bootstrap, "run_pip", fail)
    with pytest.raises(SystemExit) as ended:
        bootstrap.main(["doctor"])
    assert ended.value.code == 6
    shown = capsys.readouterr().err
    assert "ace: no network" in shown
    assert "remedy: plug it in" in shown


@pytest.mark.parametrize(
    ("number", "why", "remedy"),
    [
        (errno.EROFS, "the disk is read-only", "copy the checkout to a folder you may write to"),
        (errno.EACCES, "a file may not be written", "check who owns the checkout"),
    ],
)
def test_a_checkout_that_cannot_be_written_is_told_with_the_file_the_cause_and_a_remedy(
    bootstrap, monkeypatch, capsys, number, why, remedy
):
    class Locked(type(bootstrap.LOCK)):
        def open(self, *_, **__):
            raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(bootstrap, "LOCK", Locked(bootstrap.LOCK))
    with pytest.raises(SystemExit) as ended:
        bootstrap.main(["doctor"])
    assert ended.value.code == 6
    shown = capsys.readouterr().err
    assert f"set-up failed: [Errno {number}]" in shown and str(bootstrap.LOCK) in shown
    assert f"why: {why}" in shown and f"remedy: {remedy}" in shown


ALL_TESTS = ("-m", "not benchmark", "-q", "--bar", "--durations=10")
SPREAD = ("-n", "3", "--dist", "worksteal")


@pytest.mark.parametrize(
    ("words", "arguments", "is_window"),
    [
        ([], ("-P", "-m", "ace_studio"), True),
        (["open", "a.pt2"], ("-P", "-m", "ace_studio", "open", "a.pt2"), True),
        (["net.py", "net.pth"], ("-P", "-m", "ace_studio", "net.py", "net.pth"), True),
        (["run", "r.toml", "--json"], ("-P", "-m", "ace_studio", "run", "r.toml", "--json"), False),
        (["demo"], ("-P", "-m", "ace_studio", "demo"), False),
        (["test", "-k", "x"], ("-m", "pytest", *ALL_TESTS, *SPREAD, "-k", "x"), False),
        (["test", "a_test.py::b"], ("-m", "pytest", *ALL_TESTS, "a_test.py::b"), False),
        (["check", "--static"], ("packaging/check.py", "--static"), False),
    ],
)
def test_each_word_starts_its_program(bootstrap, parallel_tests, monkeypatch, words, arguments, is_window):
    monkeypatch.setattr(parallel_tests, "usable_cores", lambda: 2)
    monkeypatch.setattr(parallel_tests, "memory_gib", lambda: 16.0)
    start = bootstrap.choose_start(words)
    assert start.arguments == arguments
    assert start.is_window is is_window


@pytest.mark.parametrize(("cores", "gib", "processes"), [(1, 64.0, 0), (2, 64.0, 3), (64, 999.0, 8), (4, 5.9, 0)])
def test_tests_run_on_the_cores_that_memory_is_there_for(parallel_tests, monkeypatch, cores, gib, processes):
    monkeypatch.setattr(parallel_tests, "usable_cores", lambda: cores)
    monkeypatch.setattr(parallel_tests, "memory_gib", lambda: gib)
    assert parallel_tests.xdist_options() == (("-n", str(processes), "--dist", "worksteal") if processes else ())


@pytest.mark.parametrize(
    ("words", "is_spread"),
    [
        ("tests/gui -k x", True),
        ("a.py b.py", True),
        ("a.py", False),
        ("a.py::b", False),
        ("-n3", False),
        ("--pdb", False),
    ],
)
def test_a_single_file_and_whoever_chooses_the_processes_get_one(parallel_tests, monkeypatch, words, is_spread):
    monkeypatch.setattr(parallel_tests, "usable_cores", lambda: 2)
    monkeypatch.setattr(parallel_tests, "memory_gib", lambda: 16.0)
    assert bool(parallel_tests.xdist_options(words.split())) is is_spread


def test_this_machine_has_cores_and_memory(parallel_tests):
    assert parallel_tests.usable_cores() >= 1
    assert parallel_tests.memory_gib() > 0.1


def test_tests_and_checks_need_the_test_extra_and_run_in_the_root(bootstrap):
    for word in ("test", "check"):
        start = bootstrap.choose_start([word])
        assert start.extras == ("all", "test")
        assert start.is_in_root


TWO_STARTS = """\
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_bootstrap import load_bootstrap
bootstrap = load_bootstrap(Path({root!r}), Path({checkout!r}))
bootstrap.install_system_packages = lambda **_: None
bootstrap.MAKE_VENV += ("--without-pip",)
bootstrap.VENV_PROBE = bootstrap.VENV_PROBE.replace(", pip", "")
def run_pip(extras):
    with open({calls!r}, "a") as file:
        file.write("begin ")
    time.sleep(1)
    with open({calls!r}, "a") as file:
        file.write("end ")
bootstrap.run_pip = run_pip
bootstrap.set_up(("all",))
assert bootstrap.is_ready(("all",))
"""


def test_two_starts_at_once_install_once(root, checkout, tmp_path):
    calls = tmp_path / "calls"
    places = {"tests": Path(__file__).parent, "root": root, "checkout": checkout, "calls": calls}
    code = textwrap.dedent(TWO_STARTS).format(**{name: str(place) for name, place in places.items()})
    starts = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    messages = [start.communicate(timeout=120)[1] for start in starts]
    assert [start.returncode for start in starts] == [0, 0], messages
    assert calls.read_text() == "begin end "
    assert sum("waiting for it" in message for message in messages) == 1


KILLED_START = """\
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_bootstrap import load_bootstrap
bootstrap = load_bootstrap(Path({root!r}), Path({checkout!r}))
with bootstrap.setup_lock():
    bootstrap.run_pip(("all",))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there the set-up is not replaced but waited for")
def test_a_killed_start_keeps_the_others_out_until_its_pip_has_ended(bootstrap, root, checkout, tmp_path):
    is_up, may_end = tmp_path / "up", tmp_path / "end"
    bootstrap.VENV_PYTHON.parent.mkdir(parents=True)
    bootstrap.VENV_PYTHON.write_text(f"#!/bin/sh\n: > {is_up}\nwhile [ ! -e {may_end} ]; do sleep 0.05; done\n")
    bootstrap.VENV_PYTHON.chmod(0o755)
    places = {"tests": Path(__file__).parent, "root": root, "checkout": checkout}
    code = KILLED_START.format(**{name: str(place) for name, place in places.items()})
    start = subprocess.Popen([sys.executable, "-c", code])
    wait_until(is_up.exists)
    start.kill()
    start.wait()
    with bootstrap.LOCK.open("a+b") as file:
        assert not bootstrap._try_lock(file.fileno())
        may_end.touch()
        wait_until(lambda: bootstrap._try_lock(file.fileno()))


def wait_until(is_true, *, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def need(system_packages, purpose: str, *, is_there: bool):
    return system_packages.SystemNeed(purpose, f"lib{purpose}.so", lambda: is_there, (f"lib{purpose}1",))


def test_missing_libraries_are_listed_with_the_line_that_installs_them(system_packages, monkeypatch, capsys):
    monkeypatch.setattr(system_packages, "is_debian", lambda: True)
    monkeypatch.setattr(system_packages, "apt_names", lambda needs: [name for row in needs for name in row.packages])
    system_packages.describe_missing(
        [need(system_packages, purpose, is_there=False) for purpose in ("window", "inductor")]
    )
    shown = capsys.readouterr().err
    assert "libwindow.so (the window needs them)" in shown
    assert "sudo apt-get install -y libwindow1 libinductor1" in shown


def test_nothing_is_installed_for_someone_who_is_not_root(system_packages, monkeypatch):
    monkeypatch.setattr(system_packages, "SYSTEM_NEEDS", (need(system_packages, "window", is_there=False),))
    monkeypatch.setattr(system_packages.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "apt_get", lambda *words: pytest.fail(f"apt-get {words}"))
    monkeypatch.setattr(system_packages, "apt_names", lambda needs: ["libwindow1"])
    system_packages.install_system_packages()


@pytest.mark.parametrize("with_tests", [True, False])
def test_what_only_tests_need_is_installed_for_tests_only(system_packages, monkeypatch, with_tests):
    monkeypatch.setattr(system_packages, "SYSTEM_NEEDS", (need(system_packages, "test", is_there=False),))
    monkeypatch.setattr(system_packages, "is_debian", lambda: True)
    monkeypatch.setattr(system_packages.os, "geteuid", lambda: 0)
    monkeypatch.delenv("ACE_NO_APT", raising=False)
    monkeypatch.setattr(system_packages, "apt_names", lambda needs: [name for row in needs for name in row.packages])
    done = []
    monkeypatch.setattr(system_packages, "apt_get", lambda *words: done.append(words))
    system_packages.install_system_packages(with_tests=with_tests)
    assert [words[-1] for words in done] == (["update", "libtest1"] if with_tests else [])


def test_nothing_is_installed_where_nothing_is_missing(system_packages, monkeypatch, capsys):
    monkeypatch.setattr(system_packages, "SYSTEM_NEEDS", (need(system_packages, "window", is_there=True),))
    monkeypatch.setattr(system_packages, "apt_get", lambda *words: pytest.fail(f"apt-get {words}"))
    system_packages.install_system_packages()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("platform", "is_stopped"), [("offscreen", False), ("", True)])
def test_the_window_is_stopped_by_what_a_screen_needs_only_where_there_is_one(
    bootstrap, system_packages, monkeypatch, platform, is_stopped
):
    rows = (need(system_packages, "window", is_there=True), need(system_packages, "screen", is_there=False))
    monkeypatch.setattr(system_packages, "SYSTEM_NEEDS", rows)
    monkeypatch.setattr(system_packages, "apt_names", lambda needs: ["libscreen1"])
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    if is_stopped:
        with pytest.raises(bootstrap.SetupError, match="window cannot start"):
            bootstrap.check_window_libraries()
    else:
        bootstrap.check_window_libraries()
