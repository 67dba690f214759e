"""A program in the place of ssh: it keeps every byte that it is given, and runs the command in a home of its own."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE

HOST = "eve@far"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="it is a shell script")
CANARY = b"canary-3f1c0e57-of-the-user"


@dataclass
class PretendedSsh:
    """What was sent to it."""

    folder: Path

    @property
    def received(self) -> bytes:
        """All bytes, of all connections."""
        path = self.folder / "received"
        return path.read_bytes() if path.exists() else b""

    @property
    def is_called(self) -> bool:
        """Whether anybody connected."""
        return (self.folder / "hosts").exists()

    @property
    def hosts(self) -> list[str]:
        """Whom somebody connected to."""
        return (self.folder / "hosts").read_text().split()


def pretend_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedSsh:
    """Put the program in the place of ssh; engines there have the handlers of `tests/jobs/hosts/host_engine.py`."""
    (folder / "home").mkdir(parents=True)
    quoted, program = shlex.quote(str(folder)), folder / "ssh"
    program.write_text(
        f'#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done\necho "$2" >> {quoted}/hosts\n'
        f"exec env -u XDG_CACHE_HOME -u XDG_DATA_HOME -u XDG_STATE_HOME HOME={quoted}/home "
        f'sh -c "cd; $3" < <(exec tee -a {quoted}/received 2> /dev/null)\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv(SSH_VARIABLE, str(program))
    monkeypatch.setenv(HANDLERS_VARIABLE, str(Path(__file__).with_name("host_engine.py")))
    return PretendedSsh(folder)
