"""Keeps an engine on a host while connections to it come and go.

One keeper serves one link. Its events have numbers and are kept until the link has seen them, so that a job goes on
without a connection, and the next connection goes on where the last one ended. It listens on a socket in a folder that
only its user may enter; `landing` carries the bytes.
"""

import os
import shutil
import socket
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ace_studio.jobs.channel import Channel, ChannelLost
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.hosts import frames
from ace_studio.records import containment, messages
from ace_studio.records.bundle import Bundle, BundledFile, missing, unpack
from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.outside import sent_along
from ace_studio.records.recipes.recipe import LimitsChoice
from ace_studio.records.safe_file import file_sha256, is_running, leads_out
from ace_studio.records.system_faults import system_problem

SOCKET_NAME = "keeper"
IDLE_S = 600.0
"""Seconds without a connection and without a job after which a keeper whose events were all seen ends."""
UNSEEN_S = 24 * 3600.0
"""The same, if results wait to be fetched."""
WATCH_S = 5.0


@dataclass
class _Asked:
    """One request, from the moment it came."""

    ask: frames.Ask
    lacking: set[str] = field(default_factory=set)
    """Contents that are still to come."""
    is_started: bool = False


class Keeper:
    """Serves one link at a time; a new connection takes the place of the one before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = folder.parent.parent / "content"
        self._lock = threading.RLock()
        """Guards everything below; held while events are sent, so that they come in order."""
        self._channel: Channel | None = None
        self._events: deque[frames.Happened] = deque()
        self._count = 0
        self._asked: dict[int, _Asked] = {}
        self._running = 0
        self._client: WorkerClient | None = None
        self._contain: bool | None = None
        self._limits: LimitsChoice | None = None
        self._alone_since_s = time.monotonic()
        self.over = threading.Event()

    def serve(self) -> None:
        """Serve connections until the link says goodbye, or stays away for long."""
        self._folder.joinpath("pid").write_text(str(os.getpid()))
        os.chdir(self._folder)  # the path of a socket holds 100 bytes
        with suppress(FileNotFoundError):
            Path(SOCKET_NAME).unlink()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(SOCKET_NAME)
        listener.listen(4)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        while not self.over.wait(WATCH_S):
            if self._is_forsaken():
                break
        listener.close()
        with self._lock:
            if self._client is not None:
                self._client.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_forsaken(self) -> bool:
        with self._lock:
            alone_s = time.monotonic() - self._alone_since_s
            limit_s = UNSEEN_S if self._events else IDLE_S
            return self._channel is None and self._running == 0 and alone_s > limit_s

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            old = self._channel
            if old is not None:
                old.shut()  # without the lock: somebody may wait in it for this very connection
            threading.Thread(target=self._converse, args=(Channel(connection),), daemon=True).start()

    def _converse(self, channel: Channel) -> None:
        """Serve one connection, in a thread of its own."""
        try:
            while not self.over.is_set():
                self._take(frames.decode_for_keeper(channel.receive()), channel)
        except (ChannelLost, msgspec.DecodeError):
            pass
        finally:
            channel.close()
            with self._lock:
                if self._channel is channel:
                    self._channel = None
                    self._alone_since_s = time.monotonic()

    def _take(self, frame: frames.ToKeeper, channel: Channel) -> None:
        match frame:
            case frames.Hello():
                self._welcome(frame, channel)
            case frames.Ask():
                self._ask(frame)
            case frames.Content():
                self._receive(frame)
            case frames.Cancel():
                self._cancel(frame)
            case frames.Seen(number=number):
                self._forget(number)
            case frames.Fetch():
                channel.send(frames.encode(self._fetched(frame)))
            case frames.Bye():
                self.over.set()

    # --- events, from here to the link ---

    def _welcome(self, hello: frames.Hello, channel: Channel) -> None:
        with self._lock:
            self._forget(hello.seen)
            channel.send(frames.encode(frames.Welcome(folder=str(self._folder))))
            for one in self._events:
                channel.send(frames.encode(one))
            self._channel = channel

    def _forget(self, seen: int) -> None:
        with self._lock:
            while self._events and self._events[0].seq <= seen:
                self._events.popleft()

    def _happened(self, event: messages.AnyEvent) -> None:
        """Keep an event until it was seen, and send it."""
        with self._lock:
            is_lost = isinstance(event, messages.WorkerLost)
            if is_lost or isinstance(event, messages.JOB_ENDS):
                self._running = 0 if is_lost else max(0, self._running - 1)
                self._alone_since_s = time.monotonic()
            if self._channel is None and isinstance(event, messages.Progress) and event.is_pulse:
                return  # one a second, for hours
            self._count += 1
            found = frames.Happened(seq=self._count, event=messages.encode_message(event))
            self._events.append(found)
            if self._channel is not None:
                try:
                    self._channel.send(frames.encode(found))
                except ChannelLost:
                    self._channel = None

    def _pump(self, client: WorkerClient) -> None:
        for event in client.events():
            self._happened(event)

    # --- requests, from the link to here ---

    def _ask(self, ask: frames.Ask) -> None:
        """Take a request in: start it, or say which contents it lacks."""
        with self._lock:
            asked = self._asked.setdefault(ask.number, _Asked(ask))
            if asked.is_started:
                return
            try:
                asked.lacking = set(missing(ask.bundle, self._store)) if ask.bundle is not None else set()
            except OSError as error:
                self._refuse(asked, _fault(error))
                return
            if asked.lacking and self._channel is not None:
                want = frames.Want(number=ask.number, hashes=tuple(sorted(asked.lacking)))
                self._channel.send(frames.encode(want))
            elif not asked.lacking:
                self._start(asked)

    def _receive(self, content: frames.Content) -> None:
        """Add a piece to a file of the store; the last piece makes its hash be checked."""
        with self._lock:
            asked = self._asked.get(content.number)
        if asked is None or asked.is_started or content.sha256 not in asked.lacking:
            return
        part = self._folder / f"part-{content.sha256}"
        try:
            with part.open("ab") as stream:
                stream.write(content.data)
            if not content.is_last:
                return
            if file_sha256(part) != content.sha256:
                part.unlink()
                text = f"{content.sha256} did not arrive as it was sent"
                self._refuse(asked, Problem(code=ErrorCode.BAD_FILE, what="A file was damaged on its way", why=text))
                return
            self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.replace(self._store / content.sha256)
        except OSError as error:
            part.unlink(missing_ok=True)
            self._refuse(asked, _fault(error))
            return
        with self._lock:
            asked.lacking.discard(content.sha256)
            if not asked.lacking and not asked.is_started:
                self._start(asked)

    def _start(self, asked: _Asked) -> None:
        """Lay the files out and hand the request to the engine."""
        asked.is_started = True
        request = messages.decode_request(asked.ask.request)
        output = self._folder / str(asked.ask.number) / frames.OUTPUT
        try:
            if asked.ask.bundle is not None:
                root = self._folder / frames.files_folder(asked.ask.bundle)
                request = _moved(request, asked.ask.bundle, self._store, root=root, output=output)
        except AceError as error:
            self._refuse(asked, *error.problems)
            return
        except OSError as error:
            self._refuse(asked, _fault(error))
            return
        self._contain = asked.ask.contain
        if asked.ask.is_strange and self._contain is None and containment.available()[0]:
            self._contain = True
        self._limits = asked.ask.limits
        client = self._engine()
        self._running += 1
        client.send(request)

    def _engine(self) -> WorkerClient:
        if self._client is None:
            limits = None if self._limits is None else lambda: self._limits or LimitsChoice()
            self._client = WorkerClient(sys.executable, contain=lambda: self._contain, limits=limits)
            threading.Thread(target=self._pump, args=(self._client,), daemon=True).start()
        self._client.start()
        return self._client

    def _refuse(self, asked: _Asked, *problems: Problem) -> None:
        """End a job that did not reach the engine."""
        asked.is_started = True
        self._running += 1
        request = messages.decode_request(asked.ask.request)
        self._happened(messages.JobFailed(job=request.job, problems=problems))

    def _cancel(self, cancel: frames.Cancel) -> None:
        with self._lock:
            asked, client = self._asked.get(cancel.number), self._client
            if asked is not None and not asked.is_started:
                asked.is_started = True
                self._running += 1
                self._happened(messages.JobCancelled(job=cancel.job))
                return
        if client is not None:
            client.cancel(cancel.job, grace_s=cancel.grace_s)

    # --- files that jobs wrote ---

    def _fetched(self, fetch: frames.Fetch) -> frames.ToLink:
        output = (self._folder / str(fetch.number) / frames.OUTPUT).resolve()
        if not fetch.path:
            paths = sorted(path for path in output.rglob("*") if path.is_file() and not leads_out(path, output))
            files = [
                BundledFile(
                    path=path.relative_to(output).as_posix(), sha256=file_sha256(path), size=path.stat().st_size
                )
                for path in paths
            ]
            return frames.Written(number=fetch.number, files=tuple(files))
        path, data = (output / fetch.path).resolve(), b""
        if path.is_relative_to(output):
            with suppress(OSError), path.open("rb") as stream:
                stream.seek(fetch.offset)
                data = stream.read(frames.CHUNK_BYTES)
        return frames.Piece(number=fetch.number, path=fetch.path, data=data)


def _moved(
    request: messages.AnyRequest, bundle: Bundle, store: Path, *, root: Path, output: Path
) -> messages.AnyRequest:
    """The request with its files laid out in ``root``, and a folder for what it writes.

    Raises: AceError(BAD_FILE) if a content does not have its hash; OSError.
    """
    assert isinstance(request, messages.TraceRequest)
    root.mkdir(parents=True, exist_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    for sent in bundle.files:  # what lies there is of an earlier job, whose code may have written into it
        kept, target = store / sent.sha256, root / sent.path
        if target.is_file() and not kept.samefile(target) and file_sha256(target) != sent.sha256:
            target.unlink()
    folder = unpack(bundle, {}, store, root)
    trusted = (*request.trusted_sha256, *sent_along(bundle.recipe, folder, root.resolve()))
    request = replace(request, recipe=bundle.recipe, folder=str(folder), trusted_sha256=trusted)
    match request:
        case messages.RunRequest():
            return replace(request, output=str(output), timing_lock=str(store.parent / "timing.lock"))
        case messages.ValuesRequest(save=save) if save:
            return replace(request, save=str(output / Path(save).name))
        case messages.FixRequest(file=file) if file:
            return replace(request, file=str(root / file))
        case _:
            return request


def _fault(error: OSError) -> Problem:
    """A file of the job could not be written here, for example because the disk is full."""
    name = socket.gethostname()
    found = system_problem(error)
    if found is not None:
        return replace(found, what=f"{found.what} on {name}", remedy="Make room there, or set XDG_CACHE_HOME there")
    what = f"A file of the job could not be written on {name}"
    return Problem(code=ErrorCode.SYSTEM, what=what, why=message_of(error), where=str(error.filename or ""))


def sweep_sessions(sessions: Path) -> None:
    """Remove the folders of keepers that are gone without having removed them: the machine was restarted."""
    for folder in sessions.iterdir() if sessions.is_dir() else ():
        with suppress(OSError, ValueError):
            if not is_running(int((folder / "pid").read_text())):
                shutil.rmtree(folder, ignore_errors=True)


def main(folder: str) -> None:
    """Be the keeper of a session, until its link says goodbye."""
    sweep_sessions(Path(folder).parent)
    Keeper(Path(folder).resolve()).serve()
    os._exit(0)  # threads that wait for a dead connection do not keep the process
