"""The engine on a host, seen from here: sends requests and files, takes events, brings results back.

If the connection is lost, the job goes on there, and the events since then come with the next connection.
Threads: one connects and reads; one sends requests and files, and fetches results.
"""

import queue
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec
from msgspec.structs import replace

from ace_studio.jobs.channel import ChannelLost
from ace_studio.jobs.hosts import frames
from ace_studio.jobs.hosts.packing import checked_departure
from ace_studio.jobs.hosts.places import Places, output_of
from ace_studio.jobs.hosts.transport import HostConnection, KeeperGone
from ace_studio.records import messages
from ace_studio.records.bundle import Bundle, bundle_of
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import EngineChoice, LimitsChoice
from ace_studio.records.sending import Departure, LeavingFile

RETRY_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Pauses between attempts to connect again; the last one repeats."""
GIVE_UP_S = 24 * 3600.0
"""Seconds without a connection after which its jobs are given up; as long as the keeper waits."""
QUIET_S = 5.0
"""Seconds beside its grace after which a cancelled job is given up, if nothing came: ssh takes 30 to notice a loss."""
CLOSE_S = 2.0


@dataclass
class _Job:
    """A request that has not ended."""

    number: int
    request: messages.AnyRequest
    contain: bool | None
    is_strange: bool
    limits: LimitsChoice | None
    departure: Departure | None = None
    bundle: Bundle | None = None
    sources: dict[str, LeavingFile] = field(default_factory=dict)
    """Which file has the content of each hash."""
    places: Places | None = None
    is_cancelled: bool = False
    grace_s: float = 3.0
    is_asked: bool = False
    """Whether the keeper may know of it."""


class HostLink:
    """An engine on a host, for as long as this object is open. All methods may be called from any thread.

    A host that cannot be reached, or an engine that dies there, ends the job with a JobFailed: the engine here is as
    it was.
    """

    def __init__(self, engine: EngineChoice, put: Callable[[messages.AnyEvent], None]) -> None:
        """Nothing is connected before the first request.

        Args:
            engine: Which host, and its Python.
            put: Takes the events.
        """
        self._engine, self._put = engine, put
        self._session = secrets.token_hex(16)
        self._lock = threading.RLock()
        self._jobs: dict[int, _Job] = {}
        self._count = 0
        self._seen = 0
        self._heard = 0
        """Frames that came, of any connection."""
        self._connection: HostConnection | None = None
        self._folder = ""
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[frames.ToLink | None] = queue.SimpleQueue()
        self._is_connected = threading.Event()
        self.over = threading.Event()
        """Set when it serves no further request."""
        self._threads: list[threading.Thread] = []

    # --- called by the owner ---

    def send(
        self,
        request: messages.AnyRequest,
        *,
        contain: bool | None = None,
        is_strange: bool = False,
        limits: LimitsChoice | None = None,
    ) -> bool:
        """Send a request with the files that it needs; its events come to ``put``. False if the link is over.

        Nothing is connected and nothing leaves this machine before the user trusts the code and lets the files go.
        """
        departure, refused = None, tuple[Problem, ...]()
        if isinstance(request, messages.TraceRequest):
            try:
                departure, refused = checked_departure(request)
            except (AceError, OSError) as error:
                refused = error.problems if isinstance(error, AceError) else (_unreadable(error),)
        if refused:
            self._put(messages.JobFailed(job=request.job, problems=refused))
            return True
        with self._lock:
            if self.over.is_set():
                return False
            self._count += 1
            job = _Job(self._count, request, contain, is_strange, limits, departure)
            self._jobs[job.number] = job
            self._work.put(partial(self._ask, job))
            if not self._threads:
                ways = self._stay_connected, self._do_work
                self._threads = [threading.Thread(target=one, name="ace-host", daemon=True) for one in ways]
                for thread in self._threads:
                    thread.start()
            return True

    def has(self, job: str) -> bool:
        """Whether a job of this name has not ended."""
        return any(one.request.job == job for one in list(self._jobs.values()))

    def cancel(self, job: str, grace_s: float) -> None:
        """Stop a job: there if it got there, else here."""
        with self._lock:
            found = next((one for one in self._jobs.values() if one.request.job == job), None)
            if found is None:
                return
            found.is_cancelled, found.grace_s = True, grace_s
            if not found.is_asked:
                self._end(found, messages.JobCancelled(job=job))
                return
        if self._is_connected.is_set():
            # Not in this thread: nobody may be reading on the other side.
            threading.Thread(target=self._send_cancel, args=(found,), name="ace-host", daemon=True).start()
        self._watch_cancelled(found)

    def close(self) -> None:
        """End the engine there, and the connection. Jobs end without an event."""
        with self._lock:
            self._jobs.clear()
            was_over = self.over.is_set()
            self.over.set()
            connection = self._connection
        if connection is not None and not was_over:
            connection.say_goodbye(frames.encode(frames.Bye()))
        self._let_go()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(CLOSE_S)

    # --- the thread that connects and reads ---

    def _stay_connected(self) -> None:
        lost_s, tries = 0.0, 0
        while not self.over.is_set():
            try:
                connection = self._connect(is_resumed=self._folder != "")
            except (AceError, KeeperGone) as error:
                is_over = not lost_s or isinstance(error, KeeperGone) or time.monotonic() - lost_s > GIVE_UP_S
                if is_over:
                    self._fail_all(self._gone() if isinstance(error, KeeperGone) else error.problems)
                    break
                self.over.wait(RETRY_S[min(tries, len(RETRY_S) - 1)])
                tries += 1
                continue
            if lost_s:
                self._say(f"The connection to {self._engine.host} stands again")
            tries = 0
            self._read(connection)
            lost_s = time.monotonic()
            with self._lock:
                if not self._jobs:
                    self.over.set()  # the next request makes a new link
            if not self.over.is_set():
                self._say(f"The connection to {self._engine.host} was lost; the job goes on there. Connecting again")
        self._let_go()

    def _connect(self, *, is_resumed: bool) -> HostConnection:
        self._tell_progress(messages.Phase.CONNECT, self._engine.host)
        connection = HostConnection(self._engine, self._session, is_resumed=is_resumed)
        try:
            connection.channel.send(frames.encode(frames.Hello(seen=self._seen)))
            welcome = frames.decode_for_link(connection.channel.receive())
        except ChannelLost as error:
            raise AceError(connection.end_problem()) from error
        assert isinstance(welcome, frames.Welcome)
        with self._lock:
            self._folder, self._connection = welcome.folder, connection
            self._heard += 1
            jobs = list(self._jobs.values())
            self._is_connected.set()
        for job in jobs:  # the keeper serves none twice
            if job.is_asked:
                self._work.put(partial(self._ask, job))
            if job.is_asked and job.is_cancelled:
                self._work.put(partial(self._send_cancel, job))
        if self.over.is_set():  # closed while it was connecting
            connection.say_goodbye(frames.encode(frames.Bye()))
        return connection

    def _read(self, connection: HostConnection) -> None:
        """Take frames until the connection is lost."""
        try:
            while True:
                frame = frames.decode_for_link(connection.channel.receive())
                self._heard += 1
                self._take(frame)
        except (ChannelLost, msgspec.DecodeError):
            pass
        with self._lock:
            self._is_connected.clear()
            self._connection = None
        self._answers.put(None)
        connection.close()

    def _take(self, frame: frames.ToLink) -> None:
        match frame:
            case frames.Happened(seq=seq, event=event):
                if seq > self._seen:  # what came before a connection was lost is not taken twice
                    self._seen = seq
                    self._take_event(event)
                if seq % 20 == 0:
                    self._transmit(frames.Seen(number=seq))
            case frames.Want(number=number, hashes=hashes):
                if job := self._jobs.get(number):
                    self._work.put(partial(self._send_contents, job, hashes))
            case frames.Written() | frames.Piece():
                self._answers.put(frame)

    def _take_event(self, payload: bytes) -> None:
        name = messages.decode_event(payload).job
        job = next((one for one in self._jobs.values() if one.request.job == name), None)
        event = messages.decode_event(payload if job is None or job.places is None else job.places.here(payload))
        match event:
            case messages.WorkerReady(python=python, torch=torch):
                self._say(f"The engine on {self._engine.host} is ready: Python {python}, torch {torch or 'none'}")
            case messages.WorkerLost(problem=problem):
                is_cancel = problem.code is ErrorCode.CANCELLED
                for one in list(self._jobs.values()) if job is None else [job]:
                    ended = messages.JobCancelled(job="") if is_cancel else messages.JobFailed(problems=(problem,))
                    self._work.put(partial(self._fetch, one, replace(ended, job=one.request.job)))
            case _ if job is not None and isinstance(event, messages.JOB_ENDS):
                self._work.put(partial(self._fetch, job, event))
            case _ if job is not None:
                self._put(event)

    # --- the thread that sends, and fetches results ---

    def _do_work(self) -> None:
        while (work := self._work.get()) is not None:
            while not self.over.is_set():
                self._is_connected.wait()
                try:
                    work()
                    break
                except ChannelLost:
                    self.over.wait(0.05)  # until it is known that the connection is lost

    def _ask(self, job: _Job) -> None:
        """Send a request; the first time, hash its files."""
        if job.number not in self._jobs:
            return
        try:
            if job.departure is not None and job.bundle is None:
                self._pack(job, job.departure)
        except OSError as error:
            self._end(job, messages.JobFailed(job=job.request.job, problems=(_unreadable(error),)))
            return
        with self._lock:
            if job.number not in self._jobs:
                return  # cancelled meanwhile
            job.is_asked = True
        request = job.request if job.places is None else job.places.there(job.request)
        self._transmit(
            frames.Ask(
                number=job.number,
                request=messages.encode_message(request),
                bundle=job.bundle,
                contain=job.contain,
                is_strange=job.is_strange,
                limits=job.limits,
            )
        )

    def _pack(self, job: _Job, departure: Departure) -> None:
        """Hash the files of a request. Raises: OSError."""
        self._tell_progress(messages.Phase.SEND, "finding the files")
        assert isinstance(job.request, messages.TraceRequest)
        for line in departure.stay_lines:
            self._say(line)
        bundle, job.sources = bundle_of(job.request.recipe, departure)
        job.places = Places(
            departure.folder,
            bundle.folder,
            output_of(job.request),
            files_there=f"{self._folder}/{frames.files_folder(bundle)}",
            output_there=f"{self._folder}/{job.number}/{frames.OUTPUT}",
        )
        job.bundle = bundle

    def _send_contents(self, job: _Job, hashes: tuple[str, ...]) -> None:
        """Send the contents that the keeper wants, in pieces."""
        sent = 0
        try:
            total = sum(job.sources[one].size for one in hashes) or 1
            for sha256 in hashes:
                with (file := job.sources[sha256]).open() as stream:
                    data = stream.read(frames.CHUNK_BYTES)
                    while True:
                        if job.number not in self._jobs or job.is_cancelled:
                            return
                        following = stream.read(frames.CHUNK_BYTES)
                        piece = frames.Content(number=job.number, sha256=sha256, data=data, is_last=not following)
                        self._transmit(piece)
                        sent += len(data)
                        detail = f"{file.name.name} to {self._engine.host}"
                        event = messages.Progress(phase=messages.Phase.SEND, detail=detail, fraction=sent / total)
                        self._put(replace(event, job=job.request.job))
                        data = following
                        if not data:
                            break
        except ChannelLost:
            return  # with the next connection the keeper says what it still lacks
        except OSError as error:
            self._end(job, messages.JobFailed(job=job.request.job, problems=(_unreadable(error),)))

    def _send_cancel(self, job: _Job) -> None:
        with suppress(ChannelLost):
            self._transmit(frames.Cancel(number=job.number, job=job.request.job, grace_s=job.grace_s))

    def _fetch(self, job: _Job, event: messages.AnyEvent) -> None:
        """Bring what the job wrote here, and then let it end. Raises: ChannelLost; it may be called again then."""
        try:
            if job.places is not None and job.places.output is not None:
                self._fetch_files(job, job.places)
        except ChannelLost:
            raise
        except OSError as error:
            problem = Problem(
                code=ErrorCode.SYSTEM,
                what=f"The results of {self._engine.host} could not be written here",
                why=str(error),
                remedy="Make room, and run it again",
                where=str(error.filename or ""),
            )
            event = messages.JobFailed(job=job.request.job, problems=(problem,))
        self._end(job, event)
        with suppress(ChannelLost):
            self._transmit(frames.Seen(number=self._seen))

    def _fetch_files(self, job: _Job, places: Places) -> None:
        written = self._request(frames.Fetch(number=job.number))
        assert isinstance(written, frames.Written)
        total, done = sum(file.size for file in written.files) or 1, 0
        for file in written.files:
            if places.has(file):
                continue
            with places.writing(file) as stream:
                while stream.tell() < file.size:
                    piece = self._request(frames.Fetch(number=job.number, path=file.path, offset=stream.tell()))
                    if not isinstance(piece, frames.Piece) or not piece.data:
                        raise OSError(f"{file.path} is gone there")
                    stream.write(piece.data)
                    done += len(piece.data)
            detail = f"{file.path} from {self._engine.host}"
            event = messages.Progress(phase=messages.Phase.FETCH, detail=detail, fraction=done / total)
            self._put(replace(event, job=job.request.job))

    def _request(self, frame: frames.Fetch) -> frames.ToLink:
        """Send a frame that has an answer, and wait for it. Raises: ChannelLost."""
        while not self._answers.empty():
            self._answers.get()  # of a connection that was lost
        self._transmit(frame)
        answer = self._answers.get()
        if answer is None:
            raise ChannelLost("while files were fetched")
        return answer

    # --- shared ---

    def _transmit(self, frame: frames.ToKeeper) -> None:
        connection = self._connection
        if connection is None:
            raise ChannelLost("not connected")
        connection.channel.send(frames.encode(frame))

    def _end(self, job: _Job, event: messages.AnyEvent) -> None:
        with self._lock:
            is_there = self._jobs.pop(job.number, None) is not None
        if is_there:
            self._put(event)

    def _watch_cancelled(self, job: _Job) -> None:
        quiet_s = QUIET_S if self._is_connected.is_set() else 0.0
        timer = threading.Timer(job.grace_s + quiet_s, self._give_up_cancelled, (job, self._heard))
        timer.daemon = True
        timer.start()

    def _give_up_cancelled(self, job: _Job, heard: int) -> None:
        """End a job here if it has not ended there, and nothing came since ``heard``."""
        if job.number not in self._jobs:
            return
        if self._heard != heard:
            self._watch_cancelled(job)
        else:
            self._say(f"{self._engine.host} cannot be reached: the job there ends by itself")
            self._end(job, messages.JobCancelled(job=job.request.job))

    def _fail_all(self, problems: tuple[Problem, ...]) -> None:
        with self._lock:
            self.over.set()
            jobs = list(self._jobs.values())
        for job in jobs:
            self._end(job, messages.JobFailed(job=job.request.job, problems=problems))

    def _gone(self) -> tuple[Problem, ...]:
        return (
            Problem(
                code=ErrorCode.HOST,
                what=f"The job on {self._engine.host} is lost",
                why="the engine there has ended: the machine was started anew, or memory ran out",
                remedy="Run it again",
                where=self._engine.host,
            ),
        )

    def _let_go(self) -> None:
        """Nothing waits for this link any more."""
        with self._lock:
            self.over.set()
            connection, self._connection = self._connection, None
            self._is_connected.set()
        self._answers.put(None)
        self._work.put(None)
        if connection is not None:
            connection.close()

    def _say(self, text: str) -> None:
        with self._lock:
            names = [job.request.job for job in self._jobs.values()]
        for name in names[:1]:
            self._put(messages.LogLine(job=name, text=text))

    def _tell_progress(self, phase: messages.Phase, detail: str) -> None:
        with self._lock:
            names = [job.request.job for job in self._jobs.values()]
        for name in names[:1]:
            self._put(messages.Progress(job=name, phase=phase, detail=detail))


def _unreadable(error: OSError) -> Problem:
    what = "A file of the job cannot be read"
    return Problem(code=ErrorCode.NOT_FOUND, what=what, why=str(error), where=str(error.filename or ""))
