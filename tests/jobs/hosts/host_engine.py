"""Serves the jobs of the tests of hosts, without torch; ``[model] entry`` says how a job behaves."""

import ctypes
import os
import signal
import time
from pathlib import Path

from ace_studio.engine.progress import Reporter
from ace_studio.records import messages
from ace_studio.records.safe_file import file_sha256


def work(request: messages.TraceRequest, reporter: Reporter) -> None:
    """Says what it sees, and writes an artifact of more than one piece."""
    reporter.phase(messages.Phase.MEASURE, str(Path(request.folder) / "model.py"))
    output = Path(getattr(request, "output", "") or request.folder)
    seen = [f"home {os.environ['HOME']}"]
    seen += [f"{path.name} {path.read_text()}" for path in Path(request.folder).iterdir() if path.is_file()]
    (output / "seen.txt").write_text("\n".join(seen))
    (output / "artifacts").mkdir(exist_ok=True)
    (output / "artifacts" / "model.pt2").write_bytes(b"artifact" * 200_000)
    reporter.emit(messages.JobFinished(output=str(output)))


def spoil(request: messages.TraceRequest, reporter: Reporter) -> None:
    """Says where its files are and what is in one of them, and writes into it."""
    data = Path(request.folder) / "data.txt"
    (Path(request.output) / "seen.txt").write_text(f"{data.parent.stat().st_ino}\n{data.read_text()}")  # type: ignore[attr-defined]
    data.write_text("spoiled")
    reporter.emit(messages.JobFinished())


def wait(request: messages.TraceRequest, reporter: Reporter) -> None:
    """Goes on until the file exists that the job's name ends with."""
    gate = Path(request.job.partition(" ")[2])
    gate.with_name("gate.begun").touch()
    while not gate.exists():
        reporter.phase(messages.Phase.MEASURE, "waiting")
        time.sleep(0.02)
    reporter.phase(messages.Phase.MEASURE, "the last step")
    (Path(request.output) / "seen.txt").write_text("waited")  # type: ignore[attr-defined]
    reporter.emit(messages.JobFinished())


def gated(request: messages.TraceRequest, reporter: Reporter) -> None:
    """Tells its progress until the file exists that gate.txt names, and then works."""
    gate = Path(request.folder, "gate.txt").read_text()
    while not Path(gate).exists():
        reporter.phase(messages.Phase.MEASURE, "waiting")
        time.sleep(0.01)
    work(request, reporter)


def listen(request: messages.TraceRequest, reporter: Reporter) -> None:
    while True:
        reporter.phase(messages.Phase.LOAD)
        time.sleep(0.01)


def stubborn(request: messages.TraceRequest, reporter: Reporter) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reporter.phase(messages.Phase.LOAD)
    while True:
        try:
            time.sleep(600)
        except BaseException:  # noqa: BLE001 - that is the misbehaviour
            continue


def crash(request: messages.TraceRequest, reporter: Reporter) -> None:
    ctypes.string_at(0)


def echo(request: messages.TraceRequest, reporter: Reporter) -> None:
    reporter.emit(messages.JobFinished())


def trace(request: messages.TraceRequest, reporter: Reporter) -> None:
    globals()[request.recipe.model.entry or "echo"](request, reporter)


def inspect(request: messages.InspectRequest, reporter: Reporter) -> None:
    sha256 = file_sha256(Path(request.path))
    report = messages.FileReport(path=request.path, kind="python", label="", sha256=sha256, size_bytes=1, trust="code")
    reporter.emit(messages.FileInspected(report=report))


def doctor(request: messages.DoctorRequest, reporter: Reporter) -> None:
    report = messages.EnvironmentReport(
        python="3", executable=os.environ["HOME"], platform="", cpu="", cores=1, memory_bytes=1, versions={}
    )
    reporter.emit(messages.EnvironmentFound(report=report))


run = fix = preview_prune = sensitivity = values = catch_inputs = trace
