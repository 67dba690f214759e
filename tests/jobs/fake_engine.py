"""What the worker of the tests serves requests with: misbehaviour by name, given as the path of an InspectRequest.

No torch, so that a worker is up in a fraction of a second.
"""

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ace_studio.engine.progress import Reporter
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import AttemptStatus, CaptureAttempt, RunStatus, TargetRun

FOREVER_S = 600.0
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def echo(argument: str, reporter: Reporter) -> str:
    reporter.phase(messages.Phase.LOAD, argument)
    return argument


def listen(argument: str, reporter: Reporter) -> str:
    """A well-behaved long job: reports, and so notices a cancel."""
    while True:
        reporter.phase(messages.Phase.MEASURE, argument)
        time.sleep(0.01)


def sleep(argument: str, reporter: Reporter) -> str:
    """Never reports, but can be interrupted."""
    reporter.phase(messages.Phase.LOAD, "asleep")
    time.sleep(FOREVER_S)
    return ""


def sleep_unseen(argument: str, reporter: Reporter) -> str:
    """Reports nothing at all."""
    time.sleep(FOREVER_S)
    return ""


def import_and_sleep(argument: str, reporter: Reporter) -> str:
    """Imports ``slow_to_import`` of a folder, and sleeps then."""
    sys.path.insert(0, argument)
    reporter.phase(messages.Phase.LOAD, "importing")
    importlib.import_module("slow_to_import")
    time.sleep(FOREVER_S)
    return ""


def imported(argument: str, reporter: Reporter) -> str:
    """A global of the module that `import_and_sleep` imported."""
    return str(getattr(sys.modules["slow_to_import"], argument))


def stubborn(argument: str, reporter: Reporter) -> str:
    """Ignores SIGTERM and swallows every KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reporter.phase(messages.Phase.LOAD, "stubborn")
    while True:
        try:
            time.sleep(FOREVER_S)
        except BaseException:  # noqa: BLE001 - that is the misbehaviour
            continue


def hold_lock(argument: str, reporter: Reporter) -> str:
    """Native code that never gives the interpreter lock back: no thread of Python runs any more."""
    reporter.phase(messages.Phase.LOAD, "holding the lock")
    ctypes.PyDLL(None).sleep(600)
    return ""


def repeat(argument: str, reporter: Reporter) -> str:
    """An answer of so many letters."""
    return "x" * int(argument)


def announce(argument: str, reporter: Reporter) -> str:
    """News of so many letters, before the answer."""
    reporter.phase(messages.Phase.LOAD, "x" * int(argument))
    return ""


def flood(argument: str, reporter: Reporter) -> str:
    for number in range(int(argument)):
        print(f"line {number} " + "x" * 60)
    print("the last line")
    return argument


def shout(argument: str, reporter: Reporter) -> str:
    """Prints by every way there is, a child process included."""
    print("by print")
    print("by stderr", file=sys.stderr)
    os.write(1, b"by descriptor\n")
    subprocess.run([sys.executable, "-S", "-c", "print('by a child')"], check=True)
    return ""


def read_stdin(argument: str, reporter: Reporter) -> str:
    return repr(sys.stdin.read())


def leave(argument: str, reporter: Reporter) -> str:
    print("leaving")
    os._exit(int(argument))


def exit_politely(argument: str, reporter: Reporter) -> str:
    sys.exit(int(argument))


def interrupt(argument: str, reporter: Reporter) -> str:
    raise KeyboardInterrupt


def write_home(argument: str, reporter: Reporter) -> str:
    (Path.home() / "from-the-job").write_text("x")
    return ""


def fail(argument: str, reporter: Reporter) -> str:
    raise AceError.of(ErrorCode.BAD_INPUT, "No good", why="the test says so")


def divide(argument: str, reporter: Reporter) -> str:
    return str(1 / 0)


def exhaust(argument: str, reporter: Reporter) -> str:
    raise MemoryError("no more")


def eat(argument: str, reporter: Reporter) -> None:
    """Takes memory until it is ended, or to 1 GB at most."""
    held = []
    for _ in range(100):
        held.append(bytearray(b"x") * 10_000_000)
        time.sleep(0.01)


def give_up(argument: str, reporter: Reporter) -> None:
    """A rung that was interrupted in time, in the middle of something."""


def say_nothing(argument: str, reporter: Reporter) -> None:
    return None


def crash(argument: str, reporter: Reporter) -> str:
    """A segmentation fault in native code."""
    ctypes.string_at(0)
    return ""


def close_descriptors(argument: str, reporter: Reporter) -> str:
    os.closerange(3, int(argument))
    time.sleep(0.2)
    reporter.phase(messages.Phase.LOAD, "still talking")
    return "still here"


def spawn(argument: str, reporter: Reporter) -> str:
    """Leaves children behind: one of our group, one in a session of its own, one that is a plain fork."""
    pids = [subprocess.Popen([sys.executable, "-S", "-c", CHILD]).pid]
    pids.append(subprocess.Popen([sys.executable, "-S", "-c", CHILD], start_new_session=True).pid)
    forked = os.fork()
    if forked == 0:
        time.sleep(FOREVER_S)
        os._exit(0)
    pids.append(forked)
    time.sleep(0.3)
    return " ".join(map(str, pids))


def environment(argument: str, reporter: Reporter) -> str:
    return os.environ.get(argument, "<unset>")


def path(argument: str, reporter: Reporter) -> str:
    import ace_studio

    return "\n".join([str(Path(ace_studio.__file__).parent), *sys.path])


def inspect(request: messages.InspectRequest, reporter: Reporter) -> None:
    if Path(request.path).is_file():
        size = Path(request.path).stat().st_size
        report = messages.FileReport(
            path=request.path, kind="python", label="", sha256="", size_bytes=size, trust="data"
        )
        reporter.emit(messages.FileInspected(report=report))
        return
    name, _, argument = request.path.partition(" ")
    answer = globals()[name](argument, reporter)
    if answer is not None:
        report = messages.FileReport(path=answer, kind="answer", label="", sha256="", size_bytes=0, trust="inspect")
        reporter.emit(messages.FileInspected(report=report))


def doctor(request: object, reporter: Reporter) -> None:
    raise NotImplementedError


def trace(request: messages.TraceRequest, reporter: Reporter) -> None:
    """The entry names the misbehaviour; or the rungs do, each its own."""
    reporter.phase(messages.Phase.CAPTURE, request.recipe.model.source)
    if request.recipe.model.entry == "climb":
        _climb(request, reporter)
        return
    globals()[request.recipe.model.entry or "echo"]("", reporter)
    reporter.emit(messages.JobFinished())


def run(request: messages.RunRequest, reporter: Reporter) -> None:
    """As `trace`; the entry ``build`` works for the targets that the recipe names, and the one called crash crashes."""
    if request.recipe.model.entry != "build":
        trace(request, reporter)
        return
    for name in request.recipe.targets.names:
        problem = request.targets_lost.get(name)
        if problem is None:
            reporter.emit(messages.TargetAtWork(target=name))
            if name == "openvino":
                # In a thread of its own, so that the stack has no line of this file, which is not the engine's.
                native = threading.Thread(target=ctypes.string_at, args=(0,))
                native.start()
                native.join()
            if name == "inductor":
                crash("", reporter)
            reporter.emit(messages.TargetAtWork())
        status = RunStatus.OK if problem is None else RunStatus.FAILED
        found = TargetRun(target=name, precision="fp32", status=status, error=problem)
        reporter.emit(messages.TargetFinished(fingerprint="", index=0, run=found))
    reporter.emit(messages.JobFinished())


fix = trace
preview_prune = trace
sensitivity = trace
values = trace
catch_inputs = doctor


def _climb(request: messages.TraceRequest, reporter: Reporter) -> None:
    """A ladder of misbehaviours."""
    done = {one.name for one in request.rungs_done}
    for name in request.recipe.capture.rungs:
        if name in done:
            continue
        reporter.emit(messages.AttemptStarted(name=name, limit_s=request.recipe.capture.time_limit_s))
        function, _, argument = name.partition(" ")
        globals()[function](argument, reporter)
        status = AttemptStatus.TIMEOUT if function == "give_up" else AttemptStatus.OK
        reporter.emit(messages.AttemptEnded(outcome=CaptureAttempt(name=name, status=status)))
    reporter.emit(messages.JobFinished())
