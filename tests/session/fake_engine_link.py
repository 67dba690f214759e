"""An engine for session tests: remembers what it was asked, and answers with recorded events when told to."""

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixKind, FixReport, FixStatus
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import (
    CaptureAttempt,
    CaptureReport,
    Latency,
    Result,
    ResultStatus,
    RunStatus,
    TargetRun,
)
from ace_studio.session.document import Part
from ace_studio.session.session import Session


class FakeEngineLink:
    def __init__(self) -> None:
        self.sent: list[messages.AnyRequest] = []
        self.cancelled: list[str] = []
        self.restarts = 0

    def send(self, request: messages.AnyRequest) -> None:
        self.sent.append(request)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)

    def restart(self) -> None:
        self.restarts += 1

    @property
    def job(self) -> str:
        """The job sent last."""
        return self.sent[-1].job


READY = messages.WorkerReady(protocol=1, pid=1, python="3.11", torch="2.13")


def lost(code: ErrorCode = ErrorCode.CRASH, job: str = "") -> messages.WorkerLost:
    return messages.WorkerLost(job=job, problem=Problem(code=code, what="gone"))


def entry(
    name: str, required_arguments: int = 0, kind: str = "function", is_module: bool = False
) -> messages.EntryPoint:
    return messages.EntryPoint(
        name=name, line=1, kind=kind, signature="()", required_arguments=required_arguments, is_module=is_module
    )


def inspected(
    job: str,
    *names: str,
    sha256: str = "aa",
    trust: str = "code",
    path: str = "/m/model.py",
    files: tuple[messages.FileToTrust, ...] = (),
) -> messages.FileInspected:
    entries = tuple(entry(name, required_arguments=1 if name == "evaluate" else 0) for name in names)
    report = messages.FileReport(
        path=path, kind="python", label="Python", sha256=sha256, size_bytes=1, trust=trust, entries=entries, files=files
    )
    return messages.FileInspected(job=job, report=report)


def graph(*op_ids: str) -> GraphTable:
    count = len(op_ids)
    blank, zero = ("",) * count, (0,) * count
    return GraphTable(
        op_id=op_ids, kind=(OpKind.OP,) * count, op=blank, module=blank, shape=blank, dtype=blank, device=blank,
        file=zero, line=zero, flops=zero, weight_bytes=zero, output_bytes=zero, edge_source=(), edge_target=(),
    )  # fmt: skip


CAPTURE = CaptureReport(rung="export", ops=2, seconds=1.0)
RUNG = CaptureAttempt(name="export", status="ok")  # type: ignore[arg-type]


def captured(job: str, *op_ids: str) -> messages.ModelCaptured:
    return messages.ModelCaptured(job=job, fingerprint="f1", capture=CAPTURE, graph=graph(*op_ids))


def target_run(target: str, artifact: str | None = None) -> TargetRun:
    latency = Latency(p10=1.0, p50=2.0, p90=3.0, n=10)
    return TargetRun(
        target=target, status=RunStatus.OK, precision="bf16", latency_ms=latency, speedup=2.0, artifact=artifact
    )


def result(*runs: TargetRun) -> Result:
    return Result(
        status=ResultStatus.OK, fingerprint="f1", environment={}, runs=runs, chosen=0 if runs else None, goal_met=True
    )


class Watcher:
    def __init__(self, session: Session) -> None:
        self.parts: list[frozenset[Part]] = []
        session.subscribe(lambda document, parts: self.parts.append(parts))

    def taken(self) -> set[Part]:
        seen = set().union(*self.parts)
        self.parts.clear()
        return seen


def fix_of(file: str, line: int, status: FixStatus = FixStatus.GREEN, **more) -> FixReport:
    return FixReport(
        kind=FixKind.NONSTRICT_TRACE, title="mark pick as nonstrict_trace", status=status, file=file, line=line, **more
    )
