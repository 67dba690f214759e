"""Sent to a Python on a host: lays down the engine's source, finds or starts the keeper, and carries bytes to it.

Standard library only. stdin begins with one line of JSON. This answers with lines that begin with the mark, and from
the word ``ready`` on both directions belong to the keeper, which lives on when the connection ends.
"""

import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

MARK = "ace-studio-link:"
START_LIMIT_S = 60.0
OLDEST_PYTHON = (3, 11)
KEEPER = "import sys; sys.path.insert(0, sys.argv[1]); from ace_studio.jobs.hosts.keeper import main; main(sys.argv[2])"


def say(word: str) -> None:
    """Send one line."""
    os.write(1, (MARK + word + "\n").encode())


def land() -> int:
    """Become the bridge to the keeper; returns the exit code."""
    if sys.version_info < OLDEST_PYTHON:
        sys.stderr.write("ACE Studio needs Python 3.11 or newer; this is %s\n" % sys.version.split()[0])  # noqa: UP031
        return 3
    asked = json.loads(sys.stdin.buffer.readline())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    cache = os.path.join(home, "ace-studio", "engine-here")  # noqa: PTH118
    os.makedirs(cache, mode=0o700, exist_ok=True)  # noqa: PTH103
    source = take_source(cache, asked["sha256"])
    if not source:
        return 5
    session = os.path.join(cache, "sessions", asked["session"])  # noqa: PTH118
    keeper = connect(session)
    if keeper is None and asked["is_resumed"]:
        say("gone")
        return 0
    if keeper is None:
        keeper = start_keeper(source, session)
    if keeper is None:
        return 4
    say("ready")
    carry(keeper)
    return 0


def take_source(cache: str, sha256: str) -> str:
    """Folder of the engine's source, which is asked for if it is not there yet; empty if it came damaged."""
    folder = os.path.join(cache, "source", sha256)  # noqa: PTH118
    if os.path.isdir(folder):  # noqa: PTH112
        say("have")
        return folder
    say("send")
    content = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    if hashlib.sha256(content).hexdigest() != sha256:
        sys.stderr.write("the source of the engine did not arrive as it was sent\n")
        return ""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
    made = tempfile.mkdtemp(dir=os.path.dirname(folder))  # noqa: PTH120
    try:
        # Its hash is that of the archive that the other side made of its own files.
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(made)
        os.rename(made, folder)  # noqa: PTH104 - at once, so that no other call sees half of it
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.isdir(folder):  # noqa: PTH112 - unless another call was faster
            raise
    return folder


def connect(session: str) -> "socket.socket | None":
    """A connection to the keeper of a session; None if there is none."""
    try:
        os.chdir(session)  # the path of a socket holds 100 bytes, a name in this folder always fits
        connection = socket.socket(socket.AF_UNIX)
        connection.connect("keeper")
    except OSError:
        return None
    return connection


def start_keeper(source: str, session: str) -> "socket.socket | None":
    """Start a keeper that outlives this connection; what it says if it cannot goes to stderr."""
    os.makedirs(session, mode=0o700, exist_ok=True)  # noqa: PTH103
    with open(os.path.join(session, "log"), "wb") as log:  # noqa: PTH118, PTH123
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", KEEPER, source, session],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=os.path.expanduser("~"),  # noqa: PTH111
        )  # fmt: skip
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        keeper = connect(session)
        if keeper is not None:
            return keeper
        time.sleep(0.02)
    with open(os.path.join(session, "log"), errors="replace") as log:  # noqa: PTH118, PTH123
        sys.stderr.write(log.read()[-4000:])
    process.kill()
    return None


def carry(keeper: socket.socket) -> None:
    """Carry bytes both ways until one side ends."""

    def inwards() -> None:
        reader = sys.stdin.buffer
        assert isinstance(reader, io.BufferedReader)  # what it has read ahead belongs to the keeper too
        try:
            while True:
                content = reader.read1(65536)
                if not content:
                    break
                keeper.sendall(content)
        except OSError:
            pass
        os._exit(0)

    threading.Thread(target=inwards, daemon=True).start()
    try:
        while True:
            content = keeper.recv(65536)
            if not content:
                break
            view = memoryview(content)
            while view:
                view = view[os.write(1, view) :]
    except OSError:
        pass


if __name__ == "__main__":
    try:
        code = land()
    except OSError as error:  # such as a full disk: the message is made of this line
        sys.stderr.write("%s: %s\n" % (type(error).__name__, error))  # noqa: UP031
        code = 6
    sys.stderr.flush()
    os._exit(code)
