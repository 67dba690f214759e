"""Climbing the ladder: run eager, try one rung after the other, prove the graph, take the first that holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import torch
from torch import nn
from torch.export import ExportedProgram

from ace_studio.engine.capture.batch_only import offered
from ace_studio.engine.capture.controls import Controls
from ace_studio.engine.capture.diagnose import diagnose, is_specific
from ace_studio.engine.capture.eager import EagerRun, copied, has_bad_numbers, run_example
from ace_studio.engine.capture.findings import GraphInputs
from ace_studio.engine.capture.limit import CaptureInterruptedError, CaptureTimeoutError
from ace_studio.engine.capture.output import captured_output
from ace_studio.engine.capture.prove import Proof, Prover
from ace_studio.engine.capture.rungs import RUNGS, CaptureMethod
from ace_studio.engine.capture.verify import Mismatch, random_ops
from ace_studio.engine.capture.watched import watched_rung
from ace_studio.engine.examples.leaves import describe, forward_parameters, named_leaves
from ace_studio.engine.flow import Example
from ace_studio.engine.graph_table import build_graph_table, user_place
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.shapes import compare_examples, tracing_example, widest_example
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import AttemptEnded, Phase
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimVerdict, InputFinding

if TYPE_CHECKING:
    from ace_studio.engine.capture.partial import PartialCapture

_Found = TypeVar("_Found")

_HALVES = frozenset({torch.float16, torch.bfloat16})


@dataclass
class Accepted:
    """The rung of whole graphs that was taken."""

    rung: str
    program: ExportedProgram
    table: GraphTable
    findings: tuple[InputFinding, ...]
    unseen: tuple[Example, ...]


@dataclass
class Ladder:
    """One capture, from the first eager call to the accepted rung."""

    module: nn.Module
    examples: tuple[Example, ...]
    recipe: Recipe
    reporter: Reporter
    rungs_done: tuple[CaptureAttempt, ...] = ()
    """Outcomes of an earlier process, which one of them ended."""
    capture_subgraphs: Callable[[Ladder], PartialCapture | Problem] | None = None
    """The rung that takes a model to subgraphs; None in the ladder of a subgraph."""
    outcomes: list[CaptureAttempt] = field(default_factory=list)

    # --- eager ---

    def run_eager(self) -> None:
        """Run every example, compare them, and choose what to trace. Raises AceError for what the user must correct."""
        if not self.examples:
            raise AceError.of(
                ErrorCode.NO_DATA,
                "There is no example to run the model with",
                remedy="Add a row to the shape table, or name a function that returns examples.",
                where="[inputs]",
            )
        self.reporter.phase(Phase.EAGER)
        self.eager = EagerRun.of(self.module)
        self.parameters = forward_parameters(self.module)
        self.expected: list[Any] = []
        self._written: tuple[int, ...] = ()
        for number, example in enumerate(self.examples, start=1):
            self.reporter.advance((number - 1) / len(self.examples), f"example {number} of {len(self.examples)}")
            self.expected.append(run_example(self.eager, example, label=f"example {number}"))
            self._written = self.eager.writes_into if number == 1 else self._written
        self.inputs = compare_examples(self.module, self.examples, choices=self.recipe.inputs.dims)
        self.controls = Controls(self.recipe.capture.controls, self.module)
        self._choose_tracing_example()
        self._warn_about_the_model()

    def _choose_tracing_example(self) -> None:
        self.tracing, self.is_grown = tracing_example(self.examples, self.inputs)
        if not self.is_grown:
            return
        try:
            self.eager.output(self.tracing)
        except Exception as error:
            shown = describe(self.tracing, self.parameters)
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                "No example has all its changing dimensions at 2 or more, and none could be made",
                why=f"one was grown by repeating content ({shown}), and forward raises on it: {str(error)[:160]}",
                remedy="Add one example in which every dimension that may change is at least 2.",
                where="[inputs]",
            ) from error

    def _warn_about_the_model(self) -> None:
        if has_bad_numbers(self.expected):
            self.reporter.warn("bad-numbers", "The model's own results hold NaN or infinity on the examples")
        halves = sorted({str(one.dtype)[6:] for one in self.module.parameters() if one.dtype in _HALVES and one.is_cpu})
        if halves:
            self.reporter.warn(
                "half-model",
                f"Weights of the model are {' and '.join(halves)}: few runtimes take such a graph on a CPU, and fewer "
                "in 8 bits. Call .float() on the model and give float32 examples; targets have 16-bit arithmetic of "
                "their own (bf16 and fp16 in the plan)",
            )
        for leaf in named_leaves(self.examples[0], self.parameters):
            if leaf.tensor is None and leaf.value is not None:
                self.reporter.warn("fixed-argument", f"Input '{leaf.name}' is fixed at {leaf.value!r:.60} in the graph")
        training = [name for name, child in self.module.named_modules() if child.training]
        if training:
            shown = ", ".join(f"'{name}'" if name else "the model" for name in training[:5])
            self.reporter.warn("still-training", f"In training mode although eval() was called: {shown}")
        names = [leaf.name for leaf in named_leaves(self.examples[0], self.parameters) if leaf.tensor is not None]
        changed = [names[at] for at in self._written]
        if changed:
            self.reporter.warn(
                "mutates-input", f"forward() writes into its input {', '.join(changed)}; runtimes may not repeat that"
            )

    # --- the rungs ---

    def climb(self) -> Accepted | PartialCapture:
        """Try the recipe's rungs in order and return the first that holds; the others are tried if it asks to compare.

        Raises: AceError(NOT_CAPTURED) with the causes, the most telling first.
        """
        accepted: Accepted | PartialCapture | None = None
        given_up = {one.name: one for one in self.rungs_done if one.error is not None}
        for name in self.recipe.capture.rungs:
            if name in given_up:
                self.outcomes.append(self._given_up(given_up[name]))
            elif accepted is not None and not self.recipe.capture.compare_rungs:
                self._note(CaptureAttempt(name=name, status=AttemptStatus.SKIPPED))
            else:
                found = self._try_subgraphs(name) if RUNGS[name].capture is None else self.try_rung(RUNGS[name])
                accepted = accepted or found
        if accepted is None:
            for title in self.controls.unused():
                self.reporter.warn("idle-control", f"The control {title} did nothing in any rung")
            first, *others = _causes(self.outcomes)
            raise AceError(msgspec.structs.replace(first, code=ErrorCode.NOT_CAPTURED), *others)
        self._warn_about_idle_controls(accepted.rung)
        if isinstance(accepted, Accepted):
            self._warn_about_the_graph(accepted)
        return accepted

    def _given_up(self, outcome: CaptureAttempt) -> CaptureAttempt:
        """The outcome as it was told; a rung that hung says as well what may help."""
        if outcome.error is None or outcome.status is not AttemptStatus.TIMEOUT:
            return outcome
        return msgspec.structs.replace(outcome, error=offered(outcome.error, self.inputs))

    def _note(self, outcome: CaptureAttempt) -> None:
        self.outcomes.append(outcome)
        self.reporter.emit(AttemptEnded(job=self.reporter.job, outcome=outcome))

    def _try_subgraphs(self, name: str) -> PartialCapture | None:
        capture_subgraphs = self.capture_subgraphs
        if capture_subgraphs is None:
            return None
        started = time.monotonic()
        found = self._guarded(name, lambda: capture_subgraphs(self))
        seconds = time.monotonic() - started
        if isinstance(found, Problem):
            status = _STATUS_OF.get(found.code, AttemptStatus.FAILED)
            self._note(CaptureAttempt(name=name, status=status, seconds=seconds, error=found))
            return None
        ops = sum(subgraph.captured.table.op_count for subgraph in found.subgraphs)
        self._note(CaptureAttempt(name=name, status=AttemptStatus.OK, seconds=seconds, ops=ops))
        return found

    def try_rung(self, rung: CaptureMethod) -> Accepted | None:
        """The rung's graph if there is one and it holds; what became of it is among `outcomes`.

        A graph that refuses an example may have taken a size inside the model for 1 (a feature map shrunk to a point)
        that is 1 in the traced example only. Then one is traced that is as large as any in every free size at once.
        """
        started = time.monotonic()
        outcome, accepted = self._try_once(rung)
        if outcome.status is AttemptStatus.WRONG and self._widen():
            outcome, accepted = self._try_once(rung)
        self._note(msgspec.structs.replace(outcome, seconds=time.monotonic() - started))
        return accepted

    def _widen(self) -> bool:
        """Trace a wider example from now on; False if there is none, or forward raises on it."""
        wider = widest_example(self.tracing, self.inputs)
        if wider is None:
            return False
        try:
            self.eager.output(wider)
        except Exception:  # noqa: BLE001 - the user's code may raise anything at sizes that nobody gave
            return False
        self.tracing, self.is_grown = wider, True
        return True

    def _try_once(self, rung: CaptureMethod) -> tuple[CaptureAttempt, Accepted | None]:
        """The rung with the example that is to be traced, and its graph if that holds."""
        status, error, accepted, ops = AttemptStatus.OK, None, None, 0
        program = self._capture(rung, self.tracing)
        if isinstance(program, Problem):
            error = program
            status = AttemptStatus.TIMEOUT if program.code is ErrorCode.TIMEOUT else AttemptStatus.FAILED
        else:
            table = build_graph_table(program, module=self.module)
            ops = table.op_count
            self.reporter.phase(Phase.VERIFY, f"{rung.name}: {ops} ops on {len(self.examples)} examples")
            prover = Prover(
                self.eager, self.examples, self.expected, self.tracing, self.inputs, self.is_grown, self.reporter
            )
            proof = prover.prove(program)
            if isinstance(proof, Mismatch):
                status, error = AttemptStatus.WRONG, self._wrong(rung, proof)
            else:
                accepted = self._accept(rung, program, table, proof)
        return CaptureAttempt(name=rung.name, status=status, seconds=0.0, ops=ops, error=error), accepted

    def _accept(self, rung: CaptureMethod, program: ExportedProgram, table: GraphTable, proof: Proof) -> Accepted:
        names = [leaf.name for leaf in named_leaves(self.tracing, self.parameters)]
        view = GraphInputs(program, self.inputs, names)
        run = [*self.examples, *proof.unseen, *([self.tracing] if self.is_grown else [])]
        findings = view.findings(run, examples=len(self.examples))
        return Accepted(rung.name, program, table, findings, proof.unseen)

    def _wrong(self, rung: CaptureMethod, mismatch: Mismatch) -> Problem:
        """The problem with the line to look at: tracing the example that the graph refuses ends there."""
        where = ""
        if mismatch.example is not None:
            other = self._capture(rung, mismatch.example)
            where = other.where if isinstance(other, Problem) else ""
        return mismatch.problem(where=where)

    def _capture(self, rung: CaptureMethod, example: Example) -> ExportedProgram | Problem:
        """The rung's graph, or why it has none."""
        assert rung.capture is not None
        free = sum(len(one.dynamic_dims()) for one in self.inputs)
        slow = "; several free sizes can take minutes" if free > 2 else ""
        self.reporter.phase(Phase.CAPTURE, f"{rung.name}: {rung.label}{slow}")
        own, capture = copied(example), rung.capture
        return self._guarded(
            rung.name, lambda: capture(self.module, own, self.inputs, lambda: self.controls.applied(rung.name))
        )

    def _guarded(self, name: str, work: Callable[[], _Found]) -> _Found | Problem:
        """What a rung finds, or why it finds nothing: too slow, or stopped at something; state is put back."""
        limit_s = self.recipe.capture.time_limit_s
        try:
            with (
                captured_output() as printed,
                watched_rung(name, limit_s, module=self.module, reporter=self.reporter),
            ):
                return work()
        except CaptureTimeoutError:
            return self._too_slow(RUNGS[name], limit_s)
        except CaptureInterruptedError:
            self.reporter.check()
            raise
        except Cancelled:
            raise
        except AceError as error:
            return error.problem
        except Exception as error:  # noqa: BLE001 - tracers raise anything; each is diagnosed
            names = [leaf.name for leaf in named_leaves(self.tracing, self.parameters)]
            return diagnose(error, self.module, leaf_names=names, printed=printed.getvalue())
        finally:
            self.eager.state.restore()

    def _too_slow(self, rung: CaptureMethod, limit_s: float) -> Problem:
        free = [f"{one.name}.{dim}" for one in self.inputs for dim in one.dynamic_dims()]
        problem = Problem(
            code=ErrorCode.TIMEOUT,
            what=f"Capturing with {rung.name} took longer than {limit_s:g} s",
            why=f"{', '.join(free)} are all free, and every size in the model becomes an expression of them"
            if len(free) > 1
            else "the model is large, or its Python code runs for long",
            remedy="Raise [capture] time_limit_s.",
            where="[capture] time_limit_s",
        )
        return offered(problem, self.inputs)

    def _warn_about_idle_controls(self, rung: str) -> None:
        for title, why in self.controls.idle(rung):
            self.reporter.warn("idle-control", f"The control {title} did nothing: {why}")

    def _warn_about_the_graph(self, accepted: Accepted) -> None:
        nodes = {node.name: node for node in accepted.program.graph.nodes}
        for name in random_ops(accepted.program):
            file, line = user_place(nodes[name].meta.get("stack_trace", ""))
            where = f"{file}:{line}" if file else ""
            if "dropout" in str(nodes[name].target):
                self.reporter.warn(
                    "dropout-in-eval", f"{name} drops values although the model is in eval mode", where=where
                )
            else:
                self.reporter.warn(
                    "random", f"{name} draws random numbers: results differ from call to call", where=where
                )
        for found in accepted.findings:
            for dim in found.dims:
                if dim.verdict is DimVerdict.DYNAMIC and "no other size could be tried" in dim.reason:
                    self.reporter.warn(
                        "unproven-size", f"{found.name}.{dim.index} could not be tried at a size that nobody gave"
                    )


_STATUS_OF = {ErrorCode.TIMEOUT: AttemptStatus.TIMEOUT, ErrorCode.WRONG_CAPTURE: AttemptStatus.WRONG}


def _causes(outcomes: list[CaptureAttempt]) -> list[Problem]:
    """The reasons of the rungs that were tried, one per line of code, the most telling first."""
    tried = [one for one in outcomes if one.error is not None and one.status is not AttemptStatus.SKIPPED]
    if not tried:
        return [
            Problem(
                code=ErrorCode.NOT_CAPTURED,
                what="No capture rung was tried",
                why="the recipe names none that this version has",
                remedy="Use rungs = ['export', 'export-strict', 'dynamo', 'fx', 'partial'].",
                where="[capture] rungs",
            )
        ]
    problems: dict[str, Problem] = {}
    for one in sorted(tried, key=_telling):
        assert one.error is not None
        problems.setdefault(one.error.where.partition(",")[0] or one.error.what, one.error)  # one word per line of code
    return list(problems.values())


def _telling(outcome: CaptureAttempt) -> tuple[bool, bool, bool]:
    """Sort key: a comparison with eager tells most, then a known cause, then one with a place."""
    problem = outcome.error
    assert problem is not None
    return (outcome.status is not AttemptStatus.WRONG, not is_specific(problem), not problem.where)
