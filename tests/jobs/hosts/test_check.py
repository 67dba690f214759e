"""A host is asked over a real SSH server, and every way in which that fails has its own words."""

import sys
import tomllib
from pathlib import Path

import pytest

from ace_studio.jobs.hosts import check as check_module
from ace_studio.jobs.hosts.check import check_host, check_python
from ace_studio.jobs.hosts.probe import MARK, NAMES
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.hosts import NEEDED
from ace_studio.records.targets import TARGET_ROWS
from tests.jobs.hosts.ssh_host import HOST, make_key, needs_ssh

pytestmark = needs_ssh


def failure(*given: str, **options: float):
    with pytest.raises(AceError) as caught:
        check_host(*given, **options)
    return caught.value.problem


def fake_ssh(folder: Path, monkeypatch, script: str) -> None:
    path = folder / "ssh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv(SSH_VARIABLE, str(path))


def fake_python(folder: Path, said: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{MARK}{said}'\n")
    path.chmod(0o755)
    return str(path)


def test_a_host_says_what_its_python_has(host):
    report = check_host(HOST, sys.executable)
    assert report.version == sys.version.split()[0] and report.executable == sys.executable
    assert report.packages["torch"] and not report.missing and not report.problems
    assert Path(report.cache).is_relative_to(host.home) and report.disk_free_bytes > 0
    assert report.targets["onnxruntime"] == ""


def test_what_is_missing_comes_with_the_line_that_installs_it(host, tmp_path):
    said = (
        '{"version": "3.12.1", "executable": "/opt/a b/python", "platform": "x", "machine": "x", "cores": 1, '
        '"memory_bytes": 1, "cache": "/c", "disk_free_bytes": 5000000000, "disk_refusal": "", '
        '"packages": {"torch": "2.9.1+cu128", "numpy": "2.1.0"}}'
    )
    report = check_host(HOST, fake_python(tmp_path, said))
    assert set(report.missing) == set(NEEDED.values()) - {NEEDED["numpy"]}
    assert report.install.startswith("'/opt/a b/python' -m pip install 'msgspec>=0.19,<1' ")
    assert report.targets["openvino"] == f"'/opt/a b/python' -m {TARGET_ROWS['openvino'].install}"
    assert report.problems[0].code is ErrorCode.NOT_INSTALLED and report.install in report.problems[0].remedy


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"version": "3.8.2"}, "The Python on tester@box is too old: 3.8.2"),
        ({"disk_free_bytes": 1000}, "The disk of tester@box is nearly full"),
        (
            {"disk_refusal": "[Errno 28] No space left on device"},
            "No file can be written on tester@box: the disk is full",
        ),
    ],
)
def test_an_old_python_and_a_full_disk_are_problems_of_the_report(host, changed, what):
    found = {
        "version": "3.12.1", "executable": "/p", "platform": "x", "machine": "x", "cores": 1, "memory_bytes": 1,
        "cache": "/c", "disk_free_bytes": 10**10, "disk_refusal": "",
        "packages": {name: text.partition("=")[2].partition(",")[0] for name, text in NEEDED.items()},
    }  # fmt: skip
    (problem,) = check_module._report(HOST, "", {**found, **changed}, 0.1).problems
    assert problem.what == what and problem.why and problem.remedy and problem.where


def test_a_wrong_key_an_unknown_key_of_the_host_and_no_python_are_told_apart(host, tmp_path, monkeypatch):
    problem = failure(HOST, "/no/such/python")
    assert problem.code is ErrorCode.NOT_INSTALLED and problem.what == "tester@box has no /no/such/python"
    (tmp_path / "empty").touch()
    monkeypatch.setenv(SSH_VARIABLE, host.ssh_with(known_hosts=str(tmp_path / "empty")))
    assert failure(HOST).what == "The key of tester@box is not known yet"
    monkeypatch.setenv(SSH_VARIABLE, host.ssh_with(identity=str(make_key(tmp_path / "other"))))
    problem = failure(HOST)
    assert problem.code is ErrorCode.HOST and problem.what == "tester@box refused the key"
    assert "ssh-copy-id" in problem.remedy and "Permission denied" in problem.why


def test_no_ssh_and_no_answer_are_problems_too(tmp_path, monkeypatch):
    monkeypatch.setenv(SSH_VARIABLE, str(tmp_path / "none"))
    assert failure("box").what == "There is no ssh on this machine"
    fake_ssh(tmp_path, monkeypatch, "exec sleep 60")
    problem = failure("box", limit_s=0.2)
    assert problem.code is ErrorCode.TIMEOUT and "did not answer" in problem.what


def test_a_python_in_the_home_there_is_found_and_quoted(host):
    link = host.home / "my env"
    link.symlink_to(sys.executable)
    assert check_host(HOST, "~/my env").version == sys.version.split()[0]
    link.unlink()


def test_what_an_engine_needs_is_what_the_project_says(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    known = {*project["dependencies"], *project["optional-dependencies"]["engine"]}
    only_here = {text for text in known if text.startswith(("cryptography", "rich", "typer"))}
    assert set(NEEDED.values()) == known - only_here
    assert set(NEEDED) <= set(NAMES)


def test_a_python_of_this_machine_is_asked_without_ssh(monkeypatch, tmp_path):
    monkeypatch.setenv(SSH_VARIABLE, "/no/ssh")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    report = check_host("", sys.executable)
    assert (report.host, report.python, report.problems) == ("", sys.executable, ())
    monkeypatch.chdir(tmp_path)
    Path("env").symlink_to(Path(sys.executable).parents[1])
    assert check_python("env/bin/python") == str(tmp_path / "env" / "bin" / "python")


def test_what_is_wrong_with_a_python_of_this_machine_is_said_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(AceError) as caught:
        check_python(str(bare))
    problem = caught.value.problem
    assert problem.what == "The Python on this machine lacks what an engine needs"
    assert "-m pip install 'msgspec" in problem.remedy and "ssh" not in problem.remedy
    assert failure("", "/no/python").what == "The Python of the engine cannot be started"
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\necho no python >&2; exit 3\n")
    text.chmod(0o755)
    problem = failure("", str(text))
    assert problem.what == f"{text} does not work as a Python" and problem.why == "no python (exit code 3)"
