"""A real SSH server on loopback with keys and a home of its own, and the configuration that leads ssh to it."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from ace_studio.jobs.answer import HANDLERS_VARIABLE

HOST = "tester@box"
needs_ssh = pytest.mark.skipif(
    os.name != "posix" or shutil.which("ssh") is None, reason="no ssh of the system, or no POSIX"
)


@dataclass
class SshHost:
    """The running server."""

    home: Path
    """The user's directory there."""
    command: str
    """For ``ACE_STUDIO_SSH``: ssh with the key and the known hosts of this server."""
    folder: Path
    commands: list[str] = field(default_factory=list)
    """What was run there."""
    _connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop | None = None
    is_refusing: bool = False
    """Whether new connections are closed at once."""

    def ssh_with(self, **changed: str) -> str:
        """The command with other options: ``identity``, ``known_hosts``."""
        words = shlex.split(self.command)
        names = {"identity": "IdentityFile", "known_hosts": "UserKnownHostsFile"}
        for name, value in changed.items():
            words = [f"{names[name]}={value}" if word.startswith(f"{names[name]}=") else word for word in words]
        return shlex.join(words)

    def cut(self) -> None:
        """End all connections, as a network does."""

        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.abort_all)

    def abort_all(self) -> None:
        """The same, in the loop's own thread."""
        for connection in self._connections:
            with suppress(Exception):  # it may be gone already
                connection.abort()
        self._connections.clear()


def make_key(path: Path) -> Path:
    """A new key pair; the private one's path."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@contextmanager
def ssh_host(folder: Path) -> Iterator[SshHost]:
    """Run a server whose commands see ``folder/home`` as their home."""
    home = folder / "home"
    home.mkdir(parents=True)
    identity, server_key = make_key(folder / "id"), make_key(folder / "server")
    host = SshHost(home=home, command="", folder=folder)
    started, over = threading.Event(), asyncio.Event()
    port: list[int] = []
    running: list[asyncio.subprocess.Process] = []

    class Server(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            host._connections.append(conn)
            if host.is_refusing:
                conn.abort()

    async def pump(source: Any, target: Any, *, closes: bool = False) -> None:
        """Copy until the source ends or one side is gone."""
        with suppress(OSError, asyncssh.Error):
            while content := await source.read(65536):
                target.write(content)
                await target.drain()
        if closes:
            target.close()

    async def handle(process: asyncssh.SSHServerProcess) -> None:
        command = process.command or ""
        host.commands.append(command)
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
        }
        if HANDLERS_VARIABLE in os.environ:
            environment[HANDLERS_VARIABLE] = os.environ[HANDLERS_VARIABLE]
        pipe = asyncio.subprocess.PIPE
        started_here = await asyncio.create_subprocess_shell(
            command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=home, env=environment, start_new_session=True
        )
        assert started_here.stdin and started_here.stdout and started_here.stderr
        running.append(started_here)
        feeding = asyncio.create_task(pump(process.stdin, started_here.stdin, closes=True))
        await asyncio.gather(
            pump(started_here.stdout, process.stdout), pump(started_here.stderr, process.stderr), started_here.wait()
        )
        feeding.cancel()
        code = started_here.returncode or 0
        process.exit(code if code >= 0 else 255)

    async def serve() -> None:
        host._loop = asyncio.get_running_loop()
        server = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=Server, server_host_keys=[str(server_key)],
            authorized_client_keys=f"{identity}.pub", process_factory=handle, encoding=None,
        )  # fmt: skip
        port.append(server.get_port())
        started.set()
        await over.wait()
        server.close()
        host.abort_all()
        for one in running:
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            await one.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(10)
    (folder / "known").write_text(f"[127.0.0.1]:{port[0]} {Path(f'{server_key}.pub').read_text()}")
    options = {
        "Port": str(port[0]), "HostName": "127.0.0.1", "IdentityFile": str(identity), "IdentitiesOnly": "yes",
        "UserKnownHostsFile": str(folder / "known"), "GlobalKnownHostsFile": "/dev/null", "IdentityAgent": "none",
    }  # fmt: skip
    settings = (word for name, value in options.items() for word in ("-o", f"{name}={value}"))
    host.command = shlex.join(["ssh", "-F", "none", *settings])
    try:
        yield host
    finally:
        assert host._loop is not None
        host._loop.call_soon_threadsafe(over.set)
        thread.join(10)
