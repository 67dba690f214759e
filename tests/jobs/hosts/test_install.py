"""What is missing on a host is installed there, into an environment of its own."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from ace_studio.jobs.hosts.install import install_there
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.errors import AceError, ErrorCode
from tests.jobs.hosts.ssh_host import HOST, needs_ssh
from tests.jobs.hosts.wheels import make_wheel

pytestmark = needs_ssh


@pytest.mark.slow
def test_packages_are_installed_into_an_environment_there(host, tmp_path):
    said: list[str] = []
    python = install_there(
        HOST, sys.executable, [str(make_wheel(tmp_path, "tiny-there", "1.0", "ANSWER = 42"))], said.append
    )
    assert Path(python).is_relative_to(host.home) and any("Successfully installed tiny-there" in line for line in said)
    program = "import msgspec, tiny_there; print(tiny_there.ANSWER)"  # the one comes from the Python that it is made of
    done = subprocess.run([python, "-P", "-c", program], capture_output=True, check=True)
    assert done.stdout == b"42\n"
    with pytest.raises(AceError) as caught:  # a second call goes on with the environment
        install_there(HOST, sys.executable, [str(tmp_path / "none.whl")], said.append)
    problem = caught.value.problem
    assert problem.code is ErrorCode.NOT_INSTALLED and "none.whl" in problem.why and problem.remedy


@pytest.mark.slow
def test_ending_ssh_ends_pip_there(host, monkeypatch):
    """pip waits for an index that never answers; when the connection ends, it does not go on."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        settings = host.home / ".config" / "pip" / "pip.conf"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"[global]\nindex-url = http://127.0.0.1:{index.getsockname()[1]}/simple\ntimeout = 600\n")
        started: list[subprocess.Popen[str]] = []
        problems: list[AceError] = []

        def install() -> None:
            with pytest.raises(AceError) as caught:
                install_there(HOST, sys.executable, ["never-there"], lambda _line: None, started=started.append)
            problems.append(caught.value)

        thread = threading.Thread(target=install)
        thread.start()
        connection, _ = index.accept()  # pip has begun
        with connection:
            ours = [one for one in psutil.process_iter(["cmdline"]) if "never-there" in (one.info["cmdline"] or ())]
            assert ours
            started[0].kill()
            thread.join(20)
            _, alive = psutil.wait_procs(ours, timeout=20)
        settings.unlink()
    assert not alive and problems


@pytest.mark.parametrize(
    ("said", "exit_code", "code", "what"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", 1,
         ErrorCode.SYSTEM, "The disk is full on box"),
        ("ensurepip is not available", 1, ErrorCode.NOT_INSTALLED, "could not be installed on box"),
        ("Permission denied (publickey).", 255, ErrorCode.HOST, "box refused the key"),
    ],
)  # fmt: skip
def test_what_fails_there_is_told_with_a_remedy(tmp_path, monkeypatch, said, exit_code, code, what):
    path = tmp_path / "ssh"
    path.write_text(f"#!/bin/sh\nread line\necho '{said}' >&2\nexit {exit_code}\n")
    path.chmod(0o755)
    monkeypatch.setenv(SSH_VARIABLE, str(path))
    with pytest.raises(AceError) as caught:
        install_there("box", "", ["torch"], lambda line: None)
    problem = caught.value.problem
    assert problem.code is code and what in problem.what and problem.remedy and said in problem.details
