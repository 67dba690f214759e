"""The system's ssh: its command, and what its failures mean.

Keys, known hosts, jump hosts and names are OpenSSH's own affair, as its configuration has them. It is never given a
password and never asks for one: who has a key with a passphrase uses ssh-agent.
"""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from ace_studio.jobs.launch import LaunchOptions, clean_environment
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.hosts import HOST_WORD

SSH_VARIABLE = "ACE_STUDIO_SSH"
"""Environment variable: another command than ``ssh``, with options of its own."""
CONNECT_TIMEOUT_S = 15
OPTIONS = (
    "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}", "-o", "ServerAliveInterval=10",
    "-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes",
)  # fmt: skip
DEFAULT_PYTHON = "python3"
NOT_HERE = "import sys;sys.path[:]=filter(None,sys.path);"
"""Before any other import: the folder that a Python is started in may be a stranger's, with a ``json.py`` in it."""
FIRST_WORDS = NOT_HERE + "exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
"""What Python is called with there: reads the program from stdin, and leaves the rest of stdin to it."""


def ssh_command(host: str, words: str) -> list[str]:
    """The command that runs ``words`` in the shell of a host.

    Raises: AceError(USAGE) if the host is no name.
    """
    if not HOST_WORD.fullmatch(host):
        raise AceError.of(
            ErrorCode.USAGE,
            f"'{host}' is not the name of a host",
            why="it is written name, user@name, or as your ssh configuration calls it",
            remedy="Write for example user@box; a port and a key belong in ~/.ssh/config",
        )
    program = shlex.split(os.environ.get(SSH_VARIABLE, "")) or ["ssh"]
    return [*program, *OPTIONS, "--", host, words]


def python_command(host: str, python: str) -> list[str]:
    """The command that runs a Python of a host; it reads its program from stdin, as `FIRST_WORDS` say."""
    return ssh_command(host, f"{python_words(python)} -u -c '{FIRST_WORDS}'")


def start_python(host: str, python: str, **options: Any) -> subprocess.Popen[Any]:
    """Start `python_command`, with more options of `subprocess.Popen`. Raises: AceError if there is no ssh here."""
    command, pipe = python_command(host, python), subprocess.PIPE
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ssh_environment(), **options)
    except OSError as error:
        raise AceError(no_ssh(error)) from error


def ssh_environment() -> dict[str, str]:
    """The environment for ssh: a frozen window's own libraries do not fit the system's programs."""
    return clean_environment(LaunchOptions(interpreter="ssh"), os.environ)


def python_words(python: str) -> str:
    """How the shell of a host calls a Python; ``~/`` is the home there."""
    python = python or DEFAULT_PYTHON
    if python.startswith("~/"):
        return '"$HOME"/' + shlex.quote(python[2:])
    return shlex.quote(python)


def no_ssh(error: OSError) -> Problem:
    """The problem if ssh itself cannot be started."""
    program = (shlex.split(os.environ.get(SSH_VARIABLE, "")) or ["ssh"])[0]
    return Problem(
        code=ErrorCode.NOT_INSTALLED,
        what="There is no ssh on this machine",
        why=f"{program}: {error.strerror or error}",
        remedy="Install OpenSSH's client (Debian: apt-get install openssh-client; Windows: Optional features)",
        where=program,
    )


_CAUSES = tomllib.loads(Path(__file__).with_name("ssh_causes.toml").read_text(encoding="utf-8"))["cause"]
_NO_PYTHON = re.compile(r"not found|No such file or directory|Permission denied|not recognized", re.IGNORECASE)


def connection_problem(host: str, python: str, exit_code: int, said: str) -> Problem:
    """Why a command on a host failed, from the exit code of ssh (255 is its own) and from what it printed to stderr."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if not line.startswith("debug")), "ssh printed nothing")
    name = host.rpartition("@")[2]
    if exit_code in (126, 127):
        called = python or DEFAULT_PYTHON
        why = next((line for line in lines if _NO_PYTHON.search(line)), last)
        remedy = 'Install Python 3.11 or newer there, or name it: --python, or [engine] python = "..."'
        what = f"{host} has no {called}"
        return Problem(code=ErrorCode.NOT_INSTALLED, what=what, why=why, remedy=remedy, where=host, details=said)
    if exit_code == 255:
        for pattern, *texts in (cause.values() for cause in _CAUSES):
            if re.search(pattern, said, re.IGNORECASE):
                why = next((line for line in lines if re.search(pattern, line, re.IGNORECASE)), last)
                what, remedy = (text.format(host=host, name=name) for text in texts)
                return Problem(code=ErrorCode.HOST, what=what, why=why, remedy=remedy, where=host, details=said)
    return Problem(
        code=ErrorCode.HOST,
        what=f"The command on {host} failed",
        why=f"{last} (exit code {exit_code})",
        remedy=f"Try it by hand: ssh {host} {python_words(python)} --version",
        where=host,
        details=said,
    )
