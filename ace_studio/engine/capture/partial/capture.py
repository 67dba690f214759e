"""Partial capture: record the subgraphs, capture each, prove the whole, and join their tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import torch
from torch import nn

from ace_studio.engine.capture.diagnose import Failure
from ace_studio.engine.capture.eager import EagerRun, call_in_turn
from ace_studio.engine.capture.partial import subgraph_modules
from ace_studio.engine.capture.partial.breaks import breaks_of_problems, describe_breaks
from ace_studio.engine.capture.partial.left_eager import EagerOps, left_eager, run_eager_ops
from ace_studio.engine.capture.partial.one_graph import join_tables
from ace_studio.engine.capture.partial.one_subgraph import capture_subgraph
from ace_studio.engine.capture.partial.recording import (
    ForwardStep,
    RecordedFrame,
    Recording,
    record_frames,
    recorded_calls,
)
from ace_studio.engine.capture.reference import EagerReference
from ace_studio.engine.capture.verify import Mismatch, check_consecutive_calls, check_example, unseen_label
from ace_studio.engine.flow import Example, PartialModel, Subgraph
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import InputDims, example_at, free_places, unseen_sizes
from ace_studio.engine.subgraphs.run_pieces import HostedSubgraph, Place, SubgraphRunner
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import Phase
from ace_studio.records.results import CaptureReport, GraphBreak, SubgraphKind, SubgraphReport
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding

FEWEST_OPS = 3
"""A frame without weights and with fewer ops stays eager, because calling a runtime would cost more."""

READING_S = 90.0
"""Seconds that the compiler may read the code with every size free; models that compute with sizes can take minutes."""
_MOST_UNSEEN = 2
_MOST_TRIES = 6


@dataclass(frozen=True)
class PartialCapture:
    """A model in subgraphs that was proven equal to eager."""

    subgraphs: tuple[Subgraph, ...]
    reports: tuple[SubgraphReport, ...]
    """Of the subgraphs, and of the parts that could not become one."""
    breaks: tuple[GraphBreak, ...]
    table: GraphTable
    findings: tuple[InputFinding, ...]
    unseen: tuple[Example, ...]
    ops_left_eager: int
    controls: tuple[tuple[str, str], ...]
    rung: str = "partial"

    def model(self, **common: Any) -> PartialModel:
        """The captured model, from these subgraphs and what every capture has."""
        return PartialModel(**common, subgraphs=self.subgraphs, controls=self.controls)

    def described(self, report: CaptureReport) -> CaptureReport:
        """The report with the breaks and the subgraphs."""
        return msgspec.structs.replace(
            report, graph_breaks=self.breaks, pieces=self.reports, ops_left_eager=self.ops_left_eager
        )


@dataclass
class PartialJob:
    """One partial capture of a model."""

    reference: EagerReference
    reporter: Reporter
    problems: tuple[Problem, ...] = ()
    """Why the capture methods before this one failed."""
    sources: dict[str, subgraph_modules.SubgraphSource] = field(default_factory=dict)
    captured: dict[tuple[str, ...], Subgraph | Problem] = field(default_factory=dict)
    """Identity of a subgraph -> the result, so that a second recording captures nothing twice."""

    names: dict[tuple[str, ...], str] = field(default_factory=dict)

    def run(self) -> PartialCapture | Failure:
        """Record, capture, prove. A failure if nothing could be captured, or if the whole is not equal to eager."""
        reference = self.reference
        self.unseen = unseen_examples(reference)
        self.changing = frozenset(reference.eager.changed_by(reference.examples[0])[1])
        limit_s = min(READING_S, reference.recipe.capture.time_limit_s / 4)
        first = recording = self._record((), limit_s=limit_s)
        if first.given_up:
            self.reporter.warn(
                "reading-given-up",
                f"The compiler did not read the code of this model to the end ({first.given_up}); its submodules are "
                "the subgraphs",
            )
        subgraphs = self._frame_subgraphs(recording)
        modules = self._module_subgraphs({name for subgraph in subgraphs for _, name in subgraph.place.weights})
        if modules:
            # They run as the user's own submodules, to keep the compiler out of them.
            hosted = [HostedSubgraph(subgraph.place, subgraph.captured.module) for subgraph in modules]
            recording = self._record(hosted, limit_s=None if first.given_up else limit_s)
            if recording.given_up:
                recording = self._record(hosted, limit_s=None)
            subgraphs = self._frame_subgraphs(recording)
        if not subgraphs and not modules:
            subgraphs = self._frame_subgraphs(recording, fewest=1)  # a small subgraph is better than none
        subgraphs = recording.in_order([*subgraphs, *modules])
        subgraphs, mismatch = self._proven(subgraphs)
        if mismatch is not None:
            return mismatch.failure()
        if not subgraphs:
            return Failure(self._nothing(first))
        return self._result(subgraphs, first, recording)

    # --- finding subgraphs ---

    def _record(self, modules: Sequence[HostedSubgraph], *, limit_s: float | None) -> Recording:
        self.reporter.phase(Phase.CAPTURE, "partial: looking for subgraphs")
        tracing = self.reference.tracing
        given = [tracing, *(one for one in self.reference.examples if one is not tracing)]
        order = [*given, *(example for example, _ in self.unseen)]

        def call(function: Callable[..., Any], example: Example) -> Any:
            self.reporter.check()
            with self.reference.controls.applied("partial"):
                return call_in_turn(function, [example])

        recording = record_frames(
            self.reference.module, order, modules, changing=self.changing, call=call, limit_s=limit_s
        )
        # A path that only a made-up size takes runs eagerly.
        recording.frames = [one for one in recording.frames if one.begun_in < len(given)]
        return recording

    def _frame_subgraphs(self, recording: Recording, *, fewest: int = FEWEST_OPS) -> list[Subgraph]:
        found = []
        for frame in recording.frames:
            if not frame.weights and frame.op_count < fewest:
                continue
            key = ("frame", frame.frame.digest, *frame.weight_names)
            frame.name = self._name_of(key)
            found.append(self._captured(key, partial(self._frame_source, frame)))
        return [subgraph for subgraph in found if isinstance(subgraph, Subgraph)]

    def _frame_source(self, frame: RecordedFrame, name: str) -> subgraph_modules.SubgraphSource:
        return subgraph_modules.frame_source(frame, self.reference.module, name=name)

    def _module_subgraphs(self, covered: set[str]) -> list[Subgraph]:
        """Subgraphs for the largest submodules without any weight in another subgraph."""
        waiting, found = _children("", self.reference.module), []
        while waiting:
            path = waiting.pop(0)
            child = self.reference.module.get_submodule(path)
            names = {f"{path}.{name}" for name, _ in child.named_parameters()}
            if not names or names <= covered:
                continue
            subgraph = None if names & covered else self._module_subgraph(path)
            if isinstance(subgraph, Subgraph):
                found.append(subgraph)
            else:
                waiting = [*_children(path, child), *waiting]
        return found

    def _module_subgraph(self, path: str) -> Subgraph | Problem | None:
        child = self.reference.module.get_submodule(path)
        if type(child).forward is nn.Module.forward:  # a container, which is never called
            return None
        with recorded_calls(self.reference.module, [path]) as calls_of:
            eager = EagerRun.of(self.reference.module)  # knows the hooks that record, and so leaves them
            eager.output(self.reference.tracing)
            first = calls_of[path].count
            for example in [*self.reference.examples, *(example for example, _ in self.unseen)]:
                calls_of[path].begin_forward()
                eager.output(example)
        calls = calls_of[path]
        if not calls.count:
            return None

        def source(name: str) -> subgraph_modules.SubgraphSource:
            return subgraph_modules.module_source(self.reference.module, path, calls, name=name, first=first)

        return self._captured(("module", path), source)

    def _captured(
        self, key: tuple[str, ...], source_of: Callable[[str], subgraph_modules.SubgraphSource]
    ) -> Subgraph | Problem:
        if key not in self.captured:
            name = self._name_of(key)
            self.reporter.phase(
                Phase.CAPTURE, f"partial: subgraph {name} ({key[1] if key[0] == 'module' else 'frame'})"
            )
            try:
                source = self.sources[name] = source_of(name)
                self.captured[key] = capture_subgraph(
                    source, self.reference.recipe, device=self._device, reporter=self.reporter
                )
            except subgraph_modules.NotASubgraphError as error:
                self.captured[key] = Problem(
                    code=ErrorCode.NOT_CAPTURED,
                    what="This part cannot be a subgraph of its own",
                    why=str(error),
                    remedy="It runs eagerly; nothing else is lost.",
                )
        return self.captured[key]

    def _name_of(self, key: tuple[str, ...]) -> str:
        return self.names.setdefault(key, f"p{len(self.names)}")

    @property
    def _device(self) -> torch.device:
        tensors = self.reference.tracing.tensors()
        return tensors[0].device if tensors else torch.device("cpu")

    # --- proof ---

    def _proven(self, subgraphs: list[Subgraph]) -> tuple[list[Subgraph], Mismatch | None]:
        """The subgraphs with which the model equals eager; a wrong subgraph is left out."""
        self.reporter.phase(
            Phase.VERIFY, f"partial: {len(subgraphs)} subgraphs on {len(self.reference.examples)} examples"
        )
        if not subgraphs or (mismatch := self._mismatch(subgraphs)) is None:
            return self._still_captured(subgraphs), None
        kept = []
        for subgraph in subgraphs:
            if (found := self._mismatch([subgraph])) is None:
                kept.append(subgraph)
            else:
                self._refuse(subgraph, found)
        if not kept or len(kept) == len(subgraphs):
            return [], mismatch
        mismatch = self._mismatch(kept)
        return self._still_captured(kept), mismatch

    def _still_captured(self, subgraphs: Sequence[Subgraph]) -> list[Subgraph]:
        return [subgraph for subgraph in subgraphs if any(one is subgraph for one in self.captured.values())]

    def _refuse(self, subgraph: Subgraph, mismatch: Mismatch) -> None:
        key = next(key for key, one in self.captured.items() if one is subgraph)
        self.captured[key] = mismatch.failure().problem

    def _mismatch(self, subgraphs: Sequence[Subgraph]) -> Mismatch | None:
        """Why the model with these subgraphs differs from eager; subgraphs that no call reaches are refused."""
        reference = self.reference
        hosted = [host(subgraph) for subgraph in subgraphs]
        runner = SubgraphRunner(reference.module, hosted, controls=reference.controls.marks())
        run = partial(EagerRun.of(runner.module).outputs, function=runner)
        run([reference.tracing])  # the first example of the recording comes first here too
        first, *others = zip(reference.examples, reference.expected, strict=True)
        if found := check_consecutive_calls(reference.eager, run, first[0], expected=first[1]):
            return found
        for number, (example, expected) in enumerate(others, start=2):
            self.reporter.check()
            if found := check_example(run, example, expected=expected, number=number):
                return found
        for example, expected in self.unseen:
            label = unseen_label(example, reference.module)
            if found := check_example(run, example, expected=expected, label=label):
                return found
        for subgraph in [one for one in subgraphs if one.name in runner.waiting]:
            self._refuse(subgraph, _NOT_FOUND_AGAIN)
        return None

    # --- the result ---

    def _result(self, subgraphs: Sequence[Subgraph], first: Recording, recording: Recording) -> PartialCapture:
        ran = run_eager_ops(self.reference.eager, self.reference.tracing, subgraphs)
        left = left_eager(ran, subgraphs, recording)
        breaks = describe_breaks(first.breaks, self.reference.module, ran, left)
        breaks = breaks or breaks_of_problems(self.problems, ran, left)
        findings = self._findings()
        steps = _with_breaks(recording.steps, breaks, ran)
        table, breaks = join_tables(subgraphs, breaks, steps, module=self.reference.module, findings=findings)
        return PartialCapture(
            subgraphs=tuple(subgraphs),
            reports=tuple(self._reports(subgraphs)),
            breaks=breaks,
            table=table,
            findings=findings,
            unseen=tuple(example for example, _ in self.unseen),
            ops_left_eager=left.total(),
            controls=self.reference.controls.marks(),
        )

    def _reports(self, subgraphs: Sequence[Subgraph]) -> list[SubgraphReport]:
        """Reports of the subgraphs in the order of the graph, then of the parts that stayed eager."""
        found = [self._report(subgraph.place, subgraph) for subgraph in subgraphs]
        for key, problem in self.captured.items():
            source = self.sources.get(self._name_of(key))
            if isinstance(problem, Problem):
                place = source.place if source else Place(name=self._name_of(key), kind=key[0], module="")
                report = SubgraphReport(
                    name=place.name, kind=SubgraphKind(place.kind), module=place.module, error=problem
                )
                found.append(report)
        return found

    def _report(self, place: Place, subgraph: Subgraph) -> SubgraphReport:
        table = subgraph.captured.table
        return SubgraphReport(
            name=place.name,
            kind=SubgraphKind(place.kind),
            module=place.module,
            ops=table.op_count,
            calls=self.sources[place.name].first_forward,
            weight_bytes=sum(table.weight_bytes),
            inputs=subgraph.captured.inputs,
        )

    def _findings(self) -> tuple[InputFinding, ...]:
        """A verdict per dimension, from the sizes that were run: Python between the subgraphs takes any size."""
        run = [*self.reference.examples, *(example for example, _ in self.unseen)]
        shapes = [[tensor.shape for tensor in example.tensors()] for example in run]
        traced = [tensor.shape for tensor in self.reference.tracing.tensors()]
        symbols: dict[tuple[int, ...], str] = {}
        found = []
        for leaf, one in enumerate(self.reference.inputs):
            dims = []
            for dim in range(one.rank):
                finding = _dim_finding(one, dim, traced[leaf][dim], sorted({shape[leaf][dim] for shape in shapes}))
                if finding.verdict is DimVerdict.DYNAMIC:  # equal sizes in all examples get one symbol
                    symbol = symbols.setdefault(one.sizes[dim], f"s{len(symbols)}")
                    finding = msgspec.structs.replace(finding, symbol=symbol)
                dims.append(finding)
            found.append(InputFinding(name=one.name, dtype=one.dtype, dims=tuple(dims)))
        return tuple(found)

    def _nothing(self, recording: Recording) -> Problem:
        refused = [one for one in self.captured.values() if isinstance(one, Problem)]
        if refused:
            return msgspec.structs.replace(refused[0], what=f"No subgraph could be captured: {refused[0].what}")
        return Problem(
            code=ErrorCode.NOT_CAPTURED,
            what="No subgraph of the model could be captured",
            why="no part of it, down to single layers, computes something with tensors that can be captured"
            if not recording.breaks
            else "its layers are not called as modules, and every function that uses their weights breaks",
            remedy="Move the computation into submodules with a forward of their own.",
        )


def host(subgraph: Subgraph) -> HostedSubgraph:
    """A captured subgraph, to be run in its place in the model."""
    return HostedSubgraph(subgraph.place, subgraph.captured.program.module(check_guards=False))


def _with_breaks(steps: Sequence[ForwardStep], breaks: Sequence[GraphBreak], ran: EagerOps) -> list[ForwardStep]:
    """The steps, with the breaks that only the first recording met, in which the compiler read the submodules too."""
    found = list(steps)
    known = {step.line for step in steps if step.is_break}
    for one in breaks:
        line = (one.file, one.line)
        if line not in known:
            after = [number for number, step in enumerate(found) if step.name and step.name == ran.behind.get(line)]
            found.insert(after[0] + 1 if after else 0, ForwardStep(line=line))
    return found


_NOT_FOUND_AGAIN = Mismatch(
    what="The compiler gives another graph here when it reads the model a second time",
    why="a subgraph is found by the code around it, which differs from one reading to the next",
    remedy="It runs eagerly; look for code that depends on what ran before, such as counters and caches.",
)


def _children(path: str, module: nn.Module) -> list[str]:
    return [f"{path}.{name}" if path else name for name, _ in module.named_children()]


def _dim_finding(one: InputDims, dim: int, size: int, run: Sequence[int]) -> DimFinding:
    if one.is_dynamic(dim):
        verdict, reason = DimVerdict.DYNAMIC, "subgraphs take any size here, or run eagerly; these sizes equal eager"
    elif set(one.sizes[dim]) == {1} and one.choices[dim] is DimChoice.AUTO:
        verdict, reason = DimVerdict.UNKNOWN, "only ever 1 in the examples: another row would tell"
    else:
        verdict, reason = DimVerdict.STATIC, "the same in all examples; at another size the subgraphs run eagerly"
    return DimFinding(index=dim, verdict=verdict, size=size, verified_sizes=tuple(run), reason=reason)


def unseen_examples(reference: EagerReference) -> list[tuple[Example, Any]]:
    """At most two examples at new sizes that eager accepts, with their results; no graph tells which sizes are tied.

    Dimensions with equal sizes in all examples get equal new sizes, because they may be tied.
    """
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for leaf, dim in free_places(reference.inputs):
        groups.setdefault(reference.inputs[leaf].sizes[dim], []).append((leaf, dim))
    choices = {sizes: list(unseen_sizes(sizes)) for sizes in groups}
    known = [example.shapes() for example in reference.examples]
    found: list[tuple[Example, Any]] = []
    for attempt in range(_MOST_TRIES if groups else 0):
        sizes = {
            place: choices[alike][min(attempt, len(choices[alike]) - 1)] for alike in groups for place in groups[alike]
        }
        example = example_at(reference.tracing, sizes)
        if len(found) == _MOST_UNSEEN or example.shapes() in known:
            continue
        known.append(example.shapes())
        if (result := reference.eager.output_if_accepted(example)) is not None:
            found.append((example, result))
    return found
