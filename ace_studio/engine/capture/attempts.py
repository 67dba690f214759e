"""Capture attempts: one capture method is run under its time limit, and its graph is compared with eager."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from torch.export import ExportedProgram

from ace_studio.engine.capture.batch_only import offered
from ace_studio.engine.capture.diagnose import Failure, diagnose
from ace_studio.engine.capture.findings import GraphInputs
from ace_studio.engine.capture.heartbeat import watched_attempt
from ace_studio.engine.capture.limit import CaptureInterruptedError, CaptureTimeoutError
from ace_studio.engine.capture.methods import CaptureMethod
from ace_studio.engine.capture.output import captured_output
from ace_studio.engine.capture.prove import Prover
from ace_studio.engine.capture.reference import EagerReference
from ace_studio.engine.capture.verify import Mismatch
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.graph_table import build_graph_table
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import AttemptEnded, Phase
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
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

    def note(self, outcome: CaptureAttempt) -> None:
        """Keep an outcome and tell the user."""
        self.outcomes.append(outcome)
        self.reporter.emit(AttemptEnded(job=self.reporter.job, outcome=outcome))

    def try_method(self, method: CaptureMethod) -> WholeCapture | None:
        """The method's graph if it has one that equals eager; the outcome is noted.

        A graph that refuses an example may have taken a size inside the model for 1 (a feature map shrunk to a point)
        that is 1 in the traced example only. Then one is traced that is as large as any in every free size at once.
        """
        started = time.monotonic()
        outcome, accepted = self._try_once(method)
        if outcome.status is AttemptStatus.WRONG and (wider := self.reference.widened()) is not None:
            self.reference = wider
            outcome, accepted = self._try_once(method)
        self.note(msgspec.structs.replace(outcome, seconds=time.monotonic() - started))
        return accepted

    def _try_once(self, method: CaptureMethod) -> tuple[CaptureAttempt, WholeCapture | None]:
        program = self._capture(method, self.reference.tracing)
        if isinstance(program, Failure):
            return failed_attempt(method.name, program), None
        table = build_graph_table(program, module=self.reference.module)
        count = len(self.reference.examples)
        self.reporter.phase(Phase.VERIFY, f"{method.name}: {table.op_count} ops on {count} examples")
        unseen = Prover(self.reference, self.reporter).prove(program)
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
            return diagnose(error, reference.module, leaf_names=reference.leaf_names, printed=printed.getvalue())
        finally:
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
