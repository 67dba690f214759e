"""Tests of the window, each in a process that is forked from one whose window is ready: a zygote.

Building a window and bringing it somewhere takes a second, and most tests begin at one of few places. So each place is
made once, by the fixtures that bring it about, in a process that then waits. pytest's process forks the first zygote
when it has collected the tests. Each further one executes one more fixture, such as ``desk`` or ``traced``, and is
forked from the zygote of the fixtures before. A test is forked from the zygote at which it begins: it finds the values
of these fixtures in pytest's cache, and the files as the zygote left them. Nothing that it does reaches another test.

Tests run in pytest's own process where the system is not Linux, and where a person looks on (``-s``, ``--pdb``).
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import itertools
import os
import pkgutil
import shutil
import signal
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.runner import CallInfo, call_and_report, runtestprotocol

from ace_studio import gui
from ace_studio.records.scratch import process_mark, remove_scratch
from ace_studio.session.kept import autosave
from tests.conftest import ENDS_WITH_TEST

HERE = Path(__file__).parent
WINDOW = "desk"
"""The fixture that makes a window. Its value has the methods ``rest`` and ``go_on_in``."""
BEGINNINGS = {
    "open_example": "opened",
    "trusted": "trusted",
    "captured": "trusted",
    "traced": "traced",
    "ran": "ran",
    "running": "running",
    "two_plans": "compared_plans",
    "two_records": "opened",
}
"""Methods of a desk and functions of one, and the fixture that does the same, or what they begin with."""
PASSIVE = {"monkeypatch", "no_widgets_of_earlier_tests", "qtbot", "request", "tmp_path"}
"""Fixtures that change nothing by themselves: it does not matter whether the window is made before or after them."""
KEPT = 8
"""So many zygotes wait at a time; those used longest ago end."""
GRACE_S = 10.0
"""What is over its time ends itself. What cannot is killed after these seconds."""
PREPARED_WITHIN_S = 120.0
OF_PYTEST_ITSELF = {"tests.seconds", "xdist.remote"}
"""Modules whose plugins have nothing to do in another process than pytest's own."""

Step = tuple[str, str]
"""A fixture: where it is defined, and its name."""

ZYGOTES = pytest.StashKey["Zygotes"]()
"""In pytest's process."""
RUN = pytest.StashKey[Callable[[pytest.Item], None]]()
"""In a process that was forked: how it runs a test."""
LIMIT_S = pytest.StashKey[float]()
"""Seconds that a test may take."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fork the first zygote from a process that has collected the tests and done nothing else."""
    options = session.config.option
    is_watched = options.usepdb or options.trace or options.capture == "no" or options.setupshow
    if sys.platform == "linux" and not options.collectonly and not is_watched and any(map(_has_window, session.items)):
        session.stash[ZYGOTES] = Zygotes(session)


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Leave it to the process of a test to keep its time; pytest's own sees to it from afar."""
    if ZYGOTES not in item.session.stash or not _has_window(item):
        return None
    item.stash[LIMIT_S] = settings.timeout
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of the window in a process of its own; or, in such a process, here."""
    stash = item.session.stash
    if RUN in stash:
        stash[RUN](item)
    elif ZYGOTES in stash and _has_window(item):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in (*stash[ZYGOTES].run(item), *_end_modules(item, nextitem)):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    else:
        return None
    return True


def _has_window(item: pytest.Item) -> bool:
    """Whether a test of this folder uses Qt. One with real engines stays in the process that has their fork server."""
    names = getattr(item, "fixturenames", ())
    return "qapp" in names and "forked_engines" not in names and item.path.is_relative_to(HERE)


def _end_modules(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Tear down what earlier tests have set up in pytest's process and the next one does not use. Returns: faults."""
    session = item.session
    following = None if session.shouldfail or session.shouldstop else nextitem
    call = CallInfo.from_call(lambda: session._setupstate.teardown_exact(following), when="teardown")
    return [] if call.excinfo is None else [pytest.TestReport.from_item_and_call(item, call)]


class Zygotes:
    """The zygotes of one process of pytest, as it sees them: the other ends of their pipes."""

    def __init__(self, session: pytest.Session) -> None:
        session.config._tmp_path_factory.getbasetemp()  # the same for all of them
        self._index = {item: at for at, item in enumerate(session.items)}
        self._first, theirs = Pipe()
        if _fork() == 0:
            self._first.close()
            _Process(session, theirs).serve()
        theirs.close()
        self._others: dict[tuple[Step, ...], Connection] = {}
        """By the fixtures that they have executed; those used last are at the end."""

    def run(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Run a test in a process of its own."""
        begun_s = time.perf_counter()
        zygote, depth = self._zygote_for(item)
        prepared_s = time.perf_counter() - begun_s
        told, fault = self._fork_test(item, zygote, depth)
        if fault:
            return [_report(item, fault, took_s=time.perf_counter() - begun_s)]
        hook = item.config.hook
        reports = [hook.pytest_report_from_serializable(config=item.config, data=data) for data in told]
        reports[0].duration += prepared_s
        return reports

    def _zygote_for(self, item: pytest.Item) -> tuple[Connection, int]:
        """The zygote at which a test begins, and how many fixtures it has executed."""
        keys = list(itertools.accumulate((step,) for step in _steps(item)[0]))
        for key in set(keys) & set(self._others):
            self._others[key] = self._others.pop(key)
        depth = max((at for at, key in enumerate(keys, start=1) if key in self._others), default=0)
        zygote = self._others[keys[depth - 1]] if depth else self._first
        while depth < len(keys) and (made := self._fork_zygote(zygote, self._index[item], depth + 1)) is not None:
            self._others[keys[depth]] = zygote = made
            depth += 1  # a fixture that fails is left to the test, which reports it
        while len(self._others) > KEPT:
            self._others.pop(next(iter(self._others))).close()
        return zygote, depth

    def _fork_zygote(self, before: Connection, index: int, depth: int) -> Connection | None:
        """A zygote that executes one fixture more for the test of this index; None if that fails."""
        made, theirs = Pipe()
        with suppress(OSError, EOFError):
            before.send(("prepare", index, depth))
            send_handle(before, theirs.fileno(), None)
            theirs.close()
            pid = made.recv()
            if not made.poll(PREPARED_WITHIN_S):
                os.killpg(pid, signal.SIGKILL)
            if made.recv():
                return made
        made.close()
        return None

    def _fork_test(self, item: pytest.Item, zygote: Connection, depth: int) -> tuple[list[dict[str, Any]], str]:
        """The reports of a test as data; or why there are none."""
        limit_s, told = item.stash.get(LIMIT_S, None), []
        try:
            zygote.send(("run", self._index[item], depth))
            pid = zygote.recv()
            is_over = not zygote.poll(limit_s and limit_s + GRACE_S)
            if is_over:
                os.killpg(pid, signal.SIGKILL)
            while isinstance(answer := zygote.recv(), list):
                told = answer
        except (OSError, EOFError):
            self._others = {key: other for key, other in self._others.items() if other is not zygote}
            return [], "The process with the window that it begins with has ended"
        if is_over:
            return [], f"Timeout: it took longer than {limit_s} s, and its process had to be killed"
        if answer < 0:
            return [], f"Its process was ended by {signal.Signals(-answer).name}"
        return told, "" if told else f"Its process ended with status {answer} and told nothing"


def _report(item: pytest.Item, fault: str, *, took_s: float) -> pytest.TestReport:
    """The report of a test whose process could not write one, with what it had printed."""
    report = pytest.TestReport(
        item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", fault, "call", duration=took_s
    )
    printed = item.config.pluginmanager.getplugin("capturemanager").read_global_capture()
    report.sections += [(f"Captured {name}", text) for name, text in printed._asdict().items() if text]
    return report


def _steps(item: pytest.Item) -> tuple[list[Step], str]:
    """What is done to the window before a test, as far as other tests may need the same.

    Returns: Fixtures in the order of their execution, and the name of the last one if it does what the test itself
        would do first, else "".
    """
    first = _first_act(item.function)
    definitions = _definitions(item, first)
    params = item.callspec.params if hasattr(item, "callspec") else {}
    passive, steps = set(PASSIVE), {}
    for name, definition in definitions.items():
        needed = set(definition.argnames) if definition is not None else set()
        is_same = name not in params and needed <= passive | set(steps)
        if name == WINDOW or (is_same and needed & set(steps)):
            steps[name] = definition.baseid, name
        elif definition is None or definition.scope != "function" or (name in params and not needed & set(steps)):
            passive.add(name)
        elif name not in PASSIVE:
            return list(steps.values()), ""
    return list(steps.values()), first if first not in item.fixturenames else ""


def _definitions(item: pytest.Item, first: str) -> dict[str, Any]:
    """The fixtures of a test, and the one that does what it does first, each after those that it needs."""
    found: dict[str, Any] = {}
    own, all_fixtures = item._fixtureinfo.name2fixturedefs, item.session._fixturemanager

    def visit(name: str) -> None:
        if name not in found:
            known = own.get(name) or all_fixtures.getfixturedefs(name, item)
            for needed in known[-1].argnames if known else ():
                visit(needed)
            found[name] = known[-1] if known else None

    for name in (*item.fixturenames, *([first] if first else [])):
        visit(name)
    return found


def _first_act(test: Callable[..., object]) -> str:
    """The fixture that does what a test does first, read from its source; "" if there is none.

    It is what is called first, of the desk or with it, in the first statement that mentions an argument of the test.
    """
    source = None
    with suppress(OSError, SyntaxError):  # the file was changed after the tests were collected
        source = ast.parse(textwrap.dedent(inspect.getsource(test))).body[0]
    if not isinstance(source, ast.FunctionDef):
        return ""
    arguments = {one.arg for one in source.args.args}
    mentioned = ((line, {one.id for one in ast.walk(line) if isinstance(one, ast.Name)}) for line in source.body)
    first = next((line for line, names in mentioned if names & arguments), None)
    part = getattr(first, "value", None)
    while isinstance(part, ast.Call | ast.Attribute):
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=act)) if name == WINDOW:
                return BEGINNINGS.get(act, "")
            case ast.Call(func=ast.Name(id=act), args=[ast.Name(id=name), *_]) if name == WINDOW:
                return BEGINNINGS.get(act, "")
        part = part.func if isinstance(part, ast.Call) else part.value
    return ""


class _Process:
    """A zygote, and what is forked from it, as they see themselves."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session = session
        self._connection = connection
        self._values: dict[str, Any] = {}
        """What the fixtures have returned."""
        self._copy: Path | None = None
        """A copy of the folder of the window's files as they are when a test begins."""
        self._marks: list[bytes] = []
        """The processes that have written them."""
        for plugin in session.config.pluginmanager.get_plugins():
            if type(plugin).__module__ in OF_PYTEST_ITSELF:
                session.config.pluginmanager.unregister(plugin)
        os.environ["QT_NO_GUI_THREADPOOL"] = "1"  # Qt would wait for its threads, which a fork does not copy
        os.fsync = int  # what a test writes need not outlast a power cut
        for module in pkgutil.walk_packages(gui.__path__, f"{gui.__name__}."):
            importlib.import_module(module.name)
        gc.collect()
        gc.freeze()

    def serve(self) -> NoReturn:
        """Fork what pytest's process orders, until it closes the pipe."""
        with suppress(EOFError, OSError):
            while True:
                order, index, depth = self._connection.recv()
                _forget_the_dead()
                item = self._session.items[index]
                if order == "run":
                    self._fork_test(item, depth)
                else:
                    self._fork_zygote(item, depth)
        os._exit(0)

    def _fork_test(self, item: pytest.Item, depth: int) -> None:
        pid = _fork()
        if pid == 0:
            try:
                gc.disable()
                self._session.stash[ENDS_WITH_TEST] = True
                self._lead_a_group()
                self._connection.send(self._run(item, depth))
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what the test has started and not ended
        self._connection.send(os.waitstatus_to_exitcode(status))

    def _fork_zygote(self, item: pytest.Item, depth: int) -> None:
        """Fork a zygote; it goes on here, with a pipe of its own."""
        with Connection(recv_handle(self._connection)) as theirs:
            if _fork() != 0:
                return
            self._connection.close()
            self._connection = Connection(os.dup(theirs.fileno()))
        try:
            self._lead_a_group()
            is_ready = self._prepare(item, depth)
        except BaseException:  # noqa: BLE001 - nobody is here to see it; the test will meet it again
            os._exit(1)
        self._connection.send(is_ready)

    def _lead_a_group(self) -> None:
        os.setpgid(0, 0)
        self._connection.send(os.getpid())

    def _prepare(self, item: pytest.Item, depth: int) -> bool:
        """Execute one more fixture of a test. Returns: whether that passed as a test."""
        self._bring_files_back()
        reports: list[pytest.TestReport] = []

        def keep(**values: object) -> None:
            self._values |= values

        names = (WINDOW, _steps(item)[0][depth - 1][1], "tmp_path")
        parameters = [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY) for one in dict.fromkeys(names)]
        keep.__signature__ = inspect.Signature(parameters)
        maker = pytest.Function.from_parent(item.parent, name="window", callobj=keep)
        self._session.stash[RUN] = lambda _: reports.extend(
            call_and_report(maker, when, log=False) for when in ("setup", "call")
        )
        item.config.hook.pytest_runtest_protocol(item=maker, nextitem=None)
        self._session._setupstate.stack.clear()  # no teardown: what the fixtures have made is kept
        self._values[WINDOW].rest()
        _end_threads()
        self._marks.append(process_mark(os.getpid()).encode())
        folder = self._values["tmp_path"]
        self._copy = folder.with_name(f"{folder.name}-{os.getpid()}")
        shutil.copytree(folder, self._copy, symlinks=True)
        gc.freeze()
        return all(report.passed for report in reports)

    def _run(self, item: pytest.Item, depth: int) -> list[dict[str, Any]]:
        """Run a test. Returns: its reports as data."""
        steps, first = _steps(item)
        self._bring_files_back()
        if depth:
            item.teardown = partial(_definitions(item, "")[WINDOW].finish, item._request)
            self._values[WINDOW].go_on_in(item._request, begun=first if depth == len(steps) else "")
        reports: list[pytest.TestReport] = []
        self._session.stash[RUN] = lambda _: reports.extend(runtestprotocol(item, log=False))
        hook = item.config.hook
        hook.pytest_runtest_protocol(item=item, nextitem=None)
        return [hook.pytest_report_to_serializable(config=item.config, report=report) for report in reports]

    def _bring_files_back(self) -> None:
        """Undo what other processes did to the files, and make them those of this process."""
        if self._copy is None:
            return
        folder, own = self._values["tmp_path"], process_mark(os.getpid()).encode()
        remove_scratch(folder)
        shutil.copytree(self._copy, folder, symlinks=True)
        for path in folder.rglob("*.json"):
            content = path.read_bytes()
            for mark in self._marks:
                content = content.replace(mark, own)
            path.write_bytes(content)


def _fork() -> int:
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads of pytest-xdist, which no test uses
        return os.fork()


def _forget_the_dead() -> None:
    """Let go of the zygotes that were forked here and have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _end_threads() -> None:
    """End all threads but this one: a fork copies none.

    Raises: RuntimeError if there are others still.
    """
    if autosave._writer.cache_info().currsize:
        autosave._writer().shutdown()
        autosave._writer.cache_clear()
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(GRACE_S)
    until_s = time.monotonic() + GRACE_S
    while len(list(Path("/proc/self/task").iterdir())) > 1:
        if time.monotonic() > until_s:
            raise RuntimeError(f"{threading.enumerate()} are left, and perhaps threads of Qt")
        time.sleep(0.001)
