"""Starts the worker process: its command, its clean environment, and the private channel to it."""

import hmac
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ace_studio.jobs.boot import CONFIG_VARIABLE
from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.engine_packs import best_pack
from ace_studio.jobs.processes import MARK_VARIABLE
from ace_studio.records.private_folder import LIBRARY_CACHES
from ace_studio.records.scratch import make_scratch, remove_scratch

BOOT_FILE = Path(__file__).with_name("boot.py")
TOKEN_TIMEOUT_S = 2.0

DROPPED_VARIABLES = (
    "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONSAFEPATH", "PYTHONWARNINGS", "PYTHONBREAKPOINT",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD",
    "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH", "QML2_IMPORT_PATH", "QML_IMPORT_PATH",
)  # fmt: skip
"""Variables that would mislead the worker's interpreter, weaken `torch.load`, or name the window's Qt plugins."""


class Transport(StrEnum):
    """How the two processes are connected."""

    PAIR = "pair"
    """A socket pair inherited by the child: nobody else can connect at all. POSIX."""
    LOOPBACK = "loopback"
    """A port of 127.0.0.1 that accepts one connection, with a one-time token. All platforms."""


def default_interpreter() -> str:
    """The Python that runs the engine if the user chose none: the one that runs this, or that of an engine pack.

    A frozen window has no Python of its own; then ``ACE_STUDIO_PYTHON``, else the best pack, else one on the PATH.
    """
    is_frozen = bool(getattr(sys, "frozen", False))
    if is_frozen and (named := os.environ.get("ACE_STUDIO_PYTHON")):
        return named
    if (is_frozen or importlib.util.find_spec("torch") is None) and (pack := best_pack()):
        return pack.python
    return sys.executable if not is_frozen else shutil.which("python3") or shutil.which("python") or "python3"


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Options for starting a worker process."""

    interpreter: str = field(default_factory=default_interpreter)
    transport: Transport = Transport.PAIR if os.name == "posix" else Transport.LOOPBACK
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables on top of the clean environment."""
    contained_to: tuple[str, ...] | None = None
    """Folders that a contained worker may write to, besides a temporary one of its own; None: not contained."""


@dataclass
class Launched:
    """A worker process that is starting."""

    process: subprocess.Popen[bytes]
    mark: str
    connect: Callable[[], Channel]
    """Waits for the worker; raises ChannelLost if it died before it connected. Called once, in one thread."""
    lifeline: int | None
    """Descriptor of a pipe; when it closes, the guard ends everything that the worker started. None on Windows."""
    scratch: Path
    """Its temporary folder, to be removed after it."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def cut_lifeline(self) -> None:
        """Close the lifeline, so that the guard cleans up; a second call does nothing."""
        with self.lock:
            descriptor, self.lifeline = self.lifeline, None
        if descriptor is not None:
            os.close(descriptor)


def launch(options: LaunchOptions) -> Launched:
    """Start the worker process. The thread that calls this must live as long as the worker (the kernel watches it).

    Raises: OSError if the interpreter cannot be started, or no temporary file can be made.
    """
    mark = secrets.token_hex(16)
    environment = clean_environment(options, os.environ)
    scratch, variables = make_scratch(environment)
    environment |= variables
    if options.contained_to is not None:
        environment |= _own_caches(scratch, environment)
    options = replace(options, environment=environment)
    config: dict[str, Any] = {"mark": mark, "scratch": str(scratch)}
    if options.contained_to is not None:
        config["contained_to"] = [*options.contained_to, str(scratch)]
    inherited: list[int] = []
    lifeline = None
    if os.name == "posix":
        reading, lifeline = os.pipe()
        config["lifeline"] = reading
        inherited.append(reading)
    try:
        if options.transport is Transport.PAIR:
            process, connect = _launch_pair(options, config, inherited)
        else:
            process, connect = _launch_loopback(options, config, inherited)
    except OSError:
        if lifeline is not None:
            os.close(lifeline)
        remove_scratch(scratch)
        raise
    finally:
        if inherited:
            os.close(inherited[0])
    return Launched(process=process, mark=mark, connect=connect, lifeline=lifeline, scratch=scratch)


def _own_caches(scratch: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Caches in the worker's own folder: a later job must not read what a stranger's code left there.

    Models that were downloaded before are still read from where they are.
    """
    home = Path(inherited.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    read_only = {"HF_HOME": home / "huggingface", "TORCH_HOME": home / "torch"}
    return {
        **{name: inherited.get(name, str(folder)) for name, folder in read_only.items()},
        **{name: str(scratch / folder) for name, folder in LIBRARY_CACHES.items()},
        "XDG_CACHE_HOME": str(scratch / "cache"),
    }


def clean_environment(options: LaunchOptions, inherited: Mapping[str, str]) -> dict[str, str]:
    """The parent's environment without the variables that do harm in another interpreter.

    ``PYTHONPATH`` is kept only for the interpreter that runs this. A frozen window replaces the library path, and keeps
    the user's in ``LD_LIBRARY_PATH_ORIG``.
    """
    kept = {name: value for name, value in inherited.items() if name not in DROPPED_VARIABLES}
    is_frozen = bool(getattr(sys, "frozen", False))
    if is_frozen or options.interpreter != sys.executable:
        kept.pop("PYTHONPATH", None)
    if is_frozen:
        kept.pop("LD_LIBRARY_PATH", None)
        if original := kept.pop("LD_LIBRARY_PATH_ORIG", ""):
            kept["LD_LIBRARY_PATH"] = original
    return {**kept, "PYTHONIOENCODING": "utf-8:backslashreplace", **options.environment}


def _launch_pair(
    options: LaunchOptions, config: dict[str, Any], inherited: list[int]
) -> tuple[subprocess.Popen[bytes], Callable[[], Channel]]:
    ours, theirs = socket.socketpair()
    with theirs:
        config["descriptor"] = theirs.fileno()
        try:
            process = _popen(options, config, (*inherited, theirs.fileno()))
        except OSError:
            ours.close()
            raise
    return process, lambda: Channel(ours)


def _launch_loopback(
    options: LaunchOptions, config: dict[str, Any], inherited: list[int]
) -> tuple[subprocess.Popen[bytes], Callable[[], Channel]]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4)
    token = secrets.token_hex(32)
    config["port"] = listener.getsockname()[1]
    config["token"] = token
    try:
        process = _popen(options, config, tuple(inherited))
    except OSError:
        listener.close()
        raise
    return process, lambda: accept_with_token(listener, token, is_alive=lambda: process.poll() is None)


def accept_with_token(listener: socket.socket, token: str, *, is_alive: Callable[[], bool]) -> Channel:
    """Accept the one connection that begins with the token, then stop listening. Others are closed at once.

    Raises: ChannelLost if ``is_alive`` turns false first.
    """
    with listener:
        listener.settimeout(0.1)
        while is_alive():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(TOKEN_TIMEOUT_S)
            if _shows_token(connection, token):
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return Channel(connection)
            connection.close()
    raise ChannelLost("the worker never connected")


def _shows_token(connection: socket.socket, token: str) -> bool:
    try:
        shown = Channel(connection, max_frame_bytes=len(token)).receive()
    except ChannelLost:
        return False
    return hmac.compare_digest(shown, token.encode())


def _popen(
    options: LaunchOptions, config: Mapping[str, str | int], inherited: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    # Never on the command line, which every user of the machine can read. boot removes the first of them.
    environment = {**options.environment, CONFIG_VARIABLE: json.dumps(config)}
    environment[MARK_VARIABLE] = str(config["mark"])
    return subprocess.Popen(
        [options.interpreter, "-u", "-X", "faulthandler", str(BOOT_FILE)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        pass_fds=inherited,
        start_new_session=os.name == "posix",
    )
