"""One connection to the keeper on a host, over a process of the system's ssh, and the source that is sent there."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

import ace_studio
from ace_studio.jobs.autopsy import MISSING_MODULE
from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.hosts.landing import MARK
from ace_studio.jobs.hosts.ssh import connection_problem, python_words, start_python
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.places import resource_folder
from ace_studio.records.recipes.recipe import EngineChoice
from ace_studio.records.system_faults import system_problem

LANDING_FILE = Path(__file__).with_name("landing.py")
END_S = 3.0
"""Seconds that ssh has to end, and to say why."""
TAIL_LINES = 200
_LEFT_OUT = frozenset({"gui", "cli", "sweeps", "session", "resources", "__pycache__"})
"""What no engine imports."""
_SUFFIXES = frozenset({".py", ".json", ".j2", ".sql", ".toml", ".typed"})


class Source(NamedTuple):
    """The archive and its hash."""

    archive: bytes
    """An uncompressed tar; ssh may compress, and it is sent once."""
    sha256: str


@cache
def engine_source() -> Source:
    """The package without the window and the command line: the same bytes for the same content. Raises: OSError."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for inside, path in _files():
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"ace_studio/{inside}")  # no time, no owner: the same bytes everywhere
            entry.size = len(content)
            entry.mode = 0o600
            archive.addfile(entry, io.BytesIO(content))
    content = buffer.getvalue()
    return Source(content, sha256(content).hexdigest())


def _files() -> Iterator[tuple[str, Path]]:
    """Path in the package and path here, in order."""
    package = Path(str(ace_studio.__file__)).parent
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        if not _LEFT_OUT & set(inside.parts) and path.suffix in _SUFFIXES:
            yield inside.as_posix(), path
    resources = resource_folder()
    for path in (resources / "report.css", *sorted((resources / "recipes").glob("*.toml"))):
        yield f"resources/{path.relative_to(resources).as_posix()}", path


class KeeperGone(Exception):  # noqa: N818 - named for what happened
    """The host is there, the keeper of this session is not."""


class HostConnection:
    """A running ssh, and the channel through it."""

    def __init__(self, engine: EngineChoice, session: str, *, is_resumed: bool) -> None:
        """Connect, send the source if it is not there, and reach the keeper; this may take a while.

        Raises: AceError if that fails; KeeperGone if ``is_resumed`` and there is no keeper.
        """
        self._engine = engine
        self._said: deque[str] = deque(maxlen=TAIL_LINES)
        self._process: subprocess.Popen[bytes] = start_python(
            engine.host, engine.python, stderr=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._reader = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        pipes = _Pipes(self._process)
        self.channel = Channel(pipes)
        try:
            self._land(pipes, session, is_resumed=is_resumed)
        except OSError as error:
            raise AceError(self.end_problem()) from error
        except KeeperGone:
            self.close()
            raise

    def close(self) -> None:
        """End ssh; the keeper stays."""
        self.channel.shut()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._reader.join(END_S)
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def say_goodbye(self, frame: bytes) -> None:
        """Send the last frame, and wait until the other side has gone."""
        with suppress(ChannelLost, subprocess.TimeoutExpired):
            self.channel.send(frame)
            self._process.wait(END_S)

    def end_problem(self) -> Problem:
        """Close it, and say why it ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)  # it is about to say that itself
        self.close()
        return self._problem()

    def _land(self, pipes: _Pipes, session: str, *, is_resumed: bool) -> None:
        source, program = engine_source(), LANDING_FILE.read_bytes()
        asked = {"sha256": source.sha256, "session": session, "is_resumed": is_resumed}
        pipes.sendall(b"%d\n%s%s\n" % (len(program), program, json.dumps(asked).encode()))
        if pipes.read_word() == "send":
            pipes.sendall(b"%d\n" % len(source.archive))
            pipes.sendall(source.archive)
        if pipes.read_word() == "gone":
            raise KeeperGone

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            for line in iter(stream.readline, b""):
                self._said.append(line.decode(errors="replace").rstrip())

    def _problem(self) -> Problem:
        """Why the connection did not come about, from what ssh and the program there said."""
        host, said = self._engine.host, "\n".join(self._said)
        called = python_words(self._engine.python)
        code = self._process.returncode
        exit_code = 255 if code is None else code
        if found := MISSING_MODULE.search(said):
            return Problem(
                code=ErrorCode.NOT_INSTALLED,
                what=f"The Python on {host} has no {found[1].partition('.')[0]}",
                why=f"{called} there cannot import {found[1]}",
                remedy=f"ace-studio engine host install {host} installs what is missing; with check it only says it",
                where=host,
                details=said,
            )
        if "ACE Studio needs Python" in said:
            remedy = 'Name a newer one there: [engine] python = "..."'
            what = f"The Python on {host} is too old"
            return Problem(code=ErrorCode.NOT_INSTALLED, what=what, why=said, remedy=remedy, where=host)
        fault = system_problem(OSError(said)) if exit_code == 6 else None  # as `landing` ends at an OSError
        if fault is not None:
            remedy = "Make room there, or set XDG_CACHE_HOME there to a folder with room"
            return Problem(code=fault.code, what=f"{fault.what} on {host}", why=said, remedy=remedy, where=host)
        return connection_problem(host, self._engine.python, exit_code, said)


class _Pipes:
    """The two pipes of a process as the socket that a `Channel` has. Pipes, because Windows gives ssh no sockets."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout
        self._process, self._in, self._out = process, process.stdin, process.stdout

    def sendall(self, content: bytes, /) -> None:
        """Write all of it. Raises: OSError."""
        view = memoryview(content)
        while view:
            try:
                view = view[self._in.write(view) or 0 :]
            except ValueError as error:
                raise ChannelLost("closed") from error

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read what is there; 0 at the end. Raises: OSError."""
        try:
            return self._out.readinto(buffer) or 0  # type: ignore[attr-defined]
        except ValueError as error:
            raise ChannelLost("closed") from error

    def read_word(self) -> str:
        """The word of the next line with the mark; a shell may print others before. Raises: ChannelLost at the end."""
        line, letter = bytearray(), bytearray(1)
        while True:
            if not self.recv_into(memoryview(letter)):
                raise ChannelLost("ended")
            if letter != b"\n":
                line += letter
                continue
            _, mark, word = line.decode(errors="replace").partition(MARK)
            if mark:
                return word.strip()
            line.clear()

    def shutdown(self, _how: int, /) -> None:
        """End the process: whoever reads gets the end."""
        with suppress(OSError):
            self._process.terminate()

    def close(self) -> None:
        """Nothing more than `shutdown`: the pipes are closed by their owner."""
