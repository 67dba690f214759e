"""What is missing on a host is installed there, into an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ace_studio.jobs.hosts.install import install_there
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.errors import AceError, ErrorCode
from tests.jobs.hosts.ssh_host import HOST, needs_ssh

pytestmark = needs_ssh


def make_wheel(folder: Path) -> Path:
    """A package of one module, which pip installs without a network."""
    path, info = folder / "tiny_there-1.0-py3-none-any.whl", "tiny_there-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_there.py", "ANSWER = 42")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-there\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.slow
def test_packages_are_installed_into_an_environment_there(host, tmp_path):
    said: list[str] = []
    python = install_there(HOST, sys.executable, [str(make_wheel(tmp_path))], said.append)
    assert Path(python).is_relative_to(host.home) and any("Successfully installed tiny-there" in line for line in said)
    program = "import msgspec, tiny_there; print(tiny_there.ANSWER)"  # the one comes from the Python that it is made of
    done = subprocess.run([python, "-P", "-c", program], capture_output=True, check=True)
    assert done.stdout == b"42\n"
    with pytest.raises(AceError) as caught:  # a second call goes on with the environment
        install_there(HOST, sys.executable, [str(tmp_path / "none.whl")], said.append)
    problem = caught.value.problem
    assert problem.code is ErrorCode.NOT_INSTALLED and "none.whl" in problem.why and problem.remedy


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
    path.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{said}' >&2\nexit {exit_code}\n")
    path.chmod(0o755)
    monkeypatch.setenv(SSH_VARIABLE, str(path))
    with pytest.raises(AceError) as caught:
        install_there("box", "", ["torch"], lambda line: None)
    problem = caught.value.problem
    assert problem.code is code and what in problem.what and problem.remedy and said in problem.details
