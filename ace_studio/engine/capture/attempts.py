"""Capture attempts: one capture method is run under its time limit, and its graph is compared with eager."""

import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from torch import nn
from torch.export import ExportedProgram

from ace_studio.engine.capture.batch_only import offered
from ace_studio.engine.capture.diagnose import Failure, diagnose
from ace_studio.engine.capture.findings import GraphInputs
from ace_studio.engine.capture.limit import CaptureInterruptedError, CaptureTimeoutError, interruptible
from ace_studio.engine.capture.methods import CaptureMethod
from ace_studio.engine.capture.output import captured_output
from ace_studio.engine.capture.prove import Prover
from ace_studio.engine.capture.reference import EagerReference
from ace_studio.engine.capture.verify import Mismatch
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.graph_table import build_graph_table
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.torch_private import dynamo
from ace_studio.engine.user_files import is_user_file
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import AttemptEnded, AttemptStarted, Phase, Progress
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from ace_studio.records.system_faults import system_problem
from ace_studio.records.tensors import InputFinding

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class WholeCapture:
    """A graph of the whole model that was proven equal to eager."""

    rung: str
    """The capture method that gave it."""
    program: ExportedProgram
    table: GraphTable
    findings: tuple[InputFinding, ...]
    unseen: tuple[Example, ...]

    def model(self, **common: Any) -> CapturedModel:
        """The captured model, from this graph and what every capture has."""
        return CapturedModel(**common, program=self.program)

    def described(self, report: CaptureReport) -> CaptureReport:
        """The report with what only this kind of capture can say: nothing."""
        return report


@dataclass
class CaptureAttempts:
    """The attempts to capture one model, one capture method after the other."""

    reference: EagerReference
    reporter: Reporter
    outcomes: list[CaptureAttempt] = field(default_factory=list)
    spent_on_paths_s: float = 0.0
    """Time of the methods whose graphs refused an example by a condition on sizes: all methods trace such a path."""
    _refused: Example | None = None
    """The user's example that the last graph refused by a condition on sizes."""
    _traced: list[tuple[Example, ExportedProgram | Failure]] = field(default_factory=list)
    """What the method that is tried gave for each example; a large model takes minutes to trace."""

    def note(self, outcome: CaptureAttempt) -> None:
        """Keep an outcome and tell the user."""
        self.outcomes.append(outcome)
        self.reporter.emit(AttemptEnded(job=self.reporter.job, outcome=outcome))

    def try_method(self, method: CaptureMethod) -> WholeCapture | None:
        """The method's graph if it has one that equals eager; the outcome is noted.

        A graph that refuses an example may have taken a size inside the model for 1 (a feature map shrunk to a point)
        that is 1 in the traced example only. Then one is traced that is as large as any in every free size at once.
        If a condition of the model's code refuses it, the refused example is traced: its path may hold for both.
        """
        started = time.monotonic()
        outcome, accepted = self._try_once(method)
        if outcome.status is AttemptStatus.WRONG and (wider := self.reference.widened()) is not None:
            self.reference = wider
            outcome, accepted = self._try_once(method)
        is_path = self._refused is not None
        if self._refused is not None and (other := self.reference.traced_at(self._refused)) is not None:
            before, self.reference = self.reference, other
            if (second := self._try_once(method))[1] is not None:
                outcome, accepted = second
            else:
                self.reference = before
        seconds = time.monotonic() - started
        self.spent_on_paths_s += seconds if is_path and accepted is None else 0.0
        self.note(msgspec.structs.replace(outcome, seconds=seconds))
        self._traced.clear()
        return accepted

    def _try_once(self, method: CaptureMethod) -> tuple[CaptureAttempt, WholeCapture | None]:
        program = self._capture(method, self.reference.tracing)
        if isinstance(program, Failure):
            return failed_attempt(method.name, program), None
        table = build_graph_table(program, module=self.reference.module)
        count = len(self.reference.examples)
        self.reporter.phase(Phase.VERIFY, f"{method.name}: {table.op_count} ops on {count} examples")
        unseen = Prover(self.reference, self.reporter).prove(program)
        self._refused = unseen.example if isinstance(unseen, Mismatch) and unseen.by_guard and unseen.number else None
        if isinstance(unseen, Mismatch):
            outcome = failed_attempt(method.name, self._wrong(method, unseen))
            return msgspec.structs.replace(outcome, ops=table.op_count), None
        view = GraphInputs(program, self.reference.inputs, self.reference.leaf_names)
        findings = view.findings([*self.reference.verified, *unseen], examples=count)
        outcome = CaptureAttempt(name=method.name, status=AttemptStatus.OK, ops=table.op_count)
        return outcome, WholeCapture(method.name, program, table, findings, unseen)

    def _wrong(self, method: CaptureMethod, mismatch: Mismatch) -> Failure:
        """The failure with the line to look at: tracing the example that the graph refuses ends there."""
        where = ""
        if mismatch.example is not None:
            other = self._capture(method, mismatch.example)
            where = other.problem.where if isinstance(other, Failure) else ""
        return mismatch.failure(where=where)

    def _capture(self, method: CaptureMethod, example: Example) -> ExportedProgram | Failure:
        """The method's graph, or why it has none."""
        found = next((program for traced, program in self._traced if traced is example), None)
        if found is None:
            found = self._trace(method, example)
            self._traced.append((example, found))
        return found

    def _trace(self, method: CaptureMethod, example: Example) -> ExportedProgram | Failure:
        assert method.capture is not None
        reference, capture, own = self.reference, method.capture, example.copied()
        free = sum(len(one.dynamic_dims()) for one in reference.inputs)
        slow = "; several free sizes can take minutes" if free > 2 else ""
        self.reporter.phase(Phase.CAPTURE, f"{method.name}: {method.label}{slow}")
        return self.guarded(
            method.name,
            lambda: capture(reference.module, own, reference.inputs, lambda: reference.controls.applied(method.name)),
        )

    def guarded(self, name: str, work: Callable[[], _Found]) -> _Found | Failure:
        """What ``work`` gives within the time limit, else why it gives nothing; the module's state is put back."""
        reference, limit_s = self.reference, self.reference.recipe.capture.time_limit_s
        try:
            with (
                captured_output() as printed,
                watched_attempt(name, limit_s, module=reference.module, reporter=self.reporter),
            ):
                return work()
        except CaptureTimeoutError:
            return self._too_slow(name, limit_s)
        except CaptureInterruptedError:
            self.reporter.check()
            raise
        except Cancelled:
            raise
        except AceError as error:
            return Failure(error.problem)
        except Exception as error:  # noqa: BLE001 - tracers raise anything; each is diagnosed
            if (fault := system_problem(error)) is not None:
                return Failure(fault)  # nothing about the model
            return diagnose(error, reference.module, leaf_names=reference.leaf_names, printed=printed.getvalue())
        finally:
            dynamo.leave_transforms()
            reference.eager.state.restore()

    def _too_slow(self, name: str, limit_s: float) -> Failure:
        inputs = self.reference.inputs
        free = [f"{one.name}.{dim}" for one in inputs for dim in one.dynamic_dims()]
        problem = Problem(
            code=ErrorCode.TIMEOUT,
            what=f"Capturing with {name} took longer than {limit_s:g} s",
            why=f"{', '.join(free)} are all free, and every size in the model becomes an expression of them"
            if len(free) > 1
            else "the model is large, or its Python code runs for long",
            remedy="Raise [capture] time_limit_s.",
            where="[capture] time_limit_s",
        )
        return Failure(offered(problem, inputs))


_STATUS_OF = {ErrorCode.TIMEOUT: AttemptStatus.TIMEOUT, ErrorCode.WRONG_CAPTURE: AttemptStatus.WRONG}


def failed_attempt(name: str, failure: Failure) -> CaptureAttempt:
    """The outcome of an attempt that gave no graph."""
    status = _STATUS_OF.get(failure.problem.code, AttemptStatus.FAILED)
    return CaptureAttempt(
        name=name,
        status=status,
        error=failure.problem,
        is_explained=failure.is_explained,
        refused_example=failure.example,
    )


QUIET_S = 2.0
"""Time before the first report; most attempts end sooner."""
PULSE_S = 1.0
RECENT_LOOKS = 5


@contextmanager
def heartbeat(method: str, *, module: nn.Module, reporter: Reporter) -> Iterator[None]:
    """Report once a second what the calling thread traces, while the block runs."""
    beat = Heartbeat(method, module=module, reporter=reporter, thread_id=threading.get_ident())
    beat.start()
    try:
        yield
    finally:
        beat.end()


class Heartbeat(threading.Thread):
    """Reads one thread's stack and reports what it is busy with."""

    def __init__(self, method: str, *, module: nn.Module, reporter: Reporter, thread_id: int) -> None:
        super().__init__(daemon=True, name="capture-heartbeat")
        self._method = method
        self._module = module
        self._reporter = reporter
        self._thread_id = thread_id
        self._callers = tuple(frame for frame, _ in traceback.walk_stack(sys._current_frames().get(thread_id)))
        """Frames outside the block, which are not part of the work; kept alive, so that no id is used again."""
        self._outer = frozenset(map(id, self._callers))
        self._started_s = time.monotonic()
        self._looks: deque[dynamo.StackLook] = deque(maxlen=RECENT_LOOKS)
        self._paths: dict[int, str] = {}
        self._is_over = threading.Event()

    def run(self) -> None:
        """Look and report until `end`."""
        pause_s = QUIET_S
        while not self._is_over.wait(pause_s):
            pause_s = PULSE_S
            self._looks.append(self.look())
            pulse = Progress(job=self._reporter.job, phase=Phase.CAPTURE, detail=self.words(), is_pulse=True)
            if not self._is_over.is_set():
                self._reporter.tell(pulse)

    def end(self) -> None:
        """Stop reporting."""
        self._is_over.set()
        self._callers = ()

    def look(self) -> dynamo.StackLook:
        """What the thread is busy with now."""
        frame = sys._current_frames().get(self._thread_id)
        return dynamo.look_at_stack(frame, is_user_file=is_user_file, outer=self._outer)

    def words(self) -> str:
        """``export: 12 s, tracing blocks.3.conv, model.py:41``."""
        return ", ".join([f"{self._method}: {time.monotonic() - self._started_s:.0f} s", *self._doing()])

    def _doing(self) -> list[str]:
        if not self._looks:
            return []
        last = self._looks[-1]
        module = self._path_of(last.module) or dynamo.readable_path(last.module_path)
        is_size = sum(one.is_in_size_arithmetic for one in self._looks) * 2 > len(self._looks)
        verb = "working out symbolic sizes" + (" in" if module else "") if is_size else "tracing" if module else ""
        doing = f"{verb} {module}".strip()
        return [part for part in (doing, f"{Path(last.file).name}:{last.line}" if last.file else "") if part]

    def _path_of(self, module: nn.Module | None) -> str:
        if module is None:
            return ""
        if id(module) not in self._paths:
            self._paths = {id(child): path for path, child in self._module.named_modules()}
            self._paths.setdefault(id(module), "")  # a tracer may run a module that it made, which has no name
        return self._paths[id(module)]


@contextmanager
def watched_attempt(name: str, limit_s: float, *, module: nn.Module, reporter: Reporter) -> Iterator[None]:
    """Run the block, which traces, under the time limit, and report meanwhile what it is busy with.

    Raises: CaptureTimeoutError or CaptureInterruptedError out of the block.
    """
    reporter.emit(AttemptStarted(job=reporter.job, name=name, limit_s=limit_s))
    try:
        with (
            heartbeat(name, module=module, reporter=reporter),
            interruptible(limit_s, should_stop=lambda: reporter.is_cancelled),
        ):
            yield
    finally:
        # What follows runs the model and the graph, and takes as long as they do.
        reporter.tell(AttemptStarted(job=reporter.job, name=name, limit_s=None))
