"""Measures one row of the zoo, in a process of its own; what is found is written after every step.

python -m tests.benchmarks.capture_row NAME --out FILE [--limit SECONDS] [--ours]
"""

from __future__ import annotations

import argparse
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.capture.eager import EagerRun, ModuleState
from ace_studio.engine.capture.limit import CaptureTimeoutError, interruptible
from ace_studio.engine.capture.partial.capture import host
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel, PartialModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import compare_examples, tracing_example
from ace_studio.engine.subgraphs.run_pieces import HostedSubgraph, SubgraphRunner
from ace_studio.engine.torch_private.dynamo import forget_traces
from ace_studio.records.errors import AceError
from ace_studio.records.messages import AttemptEnded, Event, Phase, Progress
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import CaptureAttempt, CaptureReport
from ace_studio.records.tensors import DimVerdict
from tests.benchmarks.bare_tools import TOOLS, Question
from tests.benchmarks.zoo import ROWS, Row

LONG_ROUND_S = 15.0
"""A first round that took longer is not repeated."""
CALLS_IN_A_ROW = 3


class ToolFound(msgspec.Struct, kw_only=True):
    """What became of one tool on one row."""

    captured: bool = False
    proven: bool = False
    """One graph that equals eager on every example and at the unseen sizes."""
    seconds: float = 0.0
    cpu_s: float = 0.0
    error: str = ""


class LadderFound(msgspec.Struct, kw_only=True):
    """What became of the ladder on one row."""

    rung: str = ""
    ops: int = 0
    ops_left_eager: int = 0
    subgraphs: int = 0
    captured_subgraphs: int = 0
    idle_subgraphs: list[str] = []
    """Subgraphs that no example called."""
    missed_calls: int = 0
    """Calls of places with a subgraph that ran eagerly, because the subgraph was not made for those sizes."""
    breaks: list[str] = []
    dynamic: list[str] = []
    """Dimensions with the verdict dynamic."""
    is_exact: bool = False
    """The verdict is dynamic where the examples differ, and nowhere else."""
    unequal: str = ""
    """How a result differs from eager on an example or at the unseen sizes; empty if none does."""
    rungs: list[CaptureAttempt] = []
    seconds: float = 0.0
    cpu_s: float = 0.0
    trace_s: float = 0.0
    """Part of the seconds until the first graph is there: the rest is the proof."""
    warnings: list[str] = []
    error: str = ""
    where: str = ""

    @property
    def is_whole(self) -> bool:
        """One graph, proven, dynamic where asked."""
        return bool(self.rung) and not self.subgraphs and not self.unequal and self.is_exact

    @property
    def is_partial(self) -> bool:
        """Subgraphs, at least one of them captured and called, and equal results."""
        return self.captured_subgraphs > len(self.idle_subgraphs) and not self.unequal


class RowFound(msgspec.Struct, kw_only=True):
    """Everything about one row."""

    name: str
    family: str
    asked: list[str] = []
    """Dimensions that the examples ask to be dynamic."""
    error: str = ""
    """Why the row could not be measured at all."""
    bare: dict[str, ToolFound] = {}
    ours: LadderFound | None = None
    bare_s: list[float] = []
    """Seconds of bare ``torch.export`` in every round."""
    ours_s: list[float] = []
    trace_s: list[float] = []
    ratio: float | None = None
    """Ours, proof and all, to bare, where both give a graph; the best round of each."""
    trace_ratio: float | None = None
    """The same for the trace alone."""
    cpu_ratio: float | None = None
    """Ours to bare in process time."""
    wall_s: float = 0.0


class Measurement:
    """One row with its eager results."""

    def __init__(self, row: Row, *, limit_s: float) -> None:
        self.row = row
        self.limit_s = limit_s
        self.module = row.module()
        self.examples = tuple(Example.of(one) for one in row.examples())
        self.unseen = Example.of(row.unseen_example())
        self.eager = EagerRun.of(self.module)
        for one in (*self.examples, self.unseen):
            self.eager.output(one)  # raises if the row itself does not run
        self.inputs = compare_examples(self.module, self.examples, choices={})
        self.tracing, _ = tracing_example(self.examples, self.inputs)
        self.asked = [f"{one.name}.{dim}" for one in self.inputs for dim in one.dynamic_dims()]

    # --- the tools by hand ---

    def try_tool(self, name: str) -> ToolFound:
        """Capture with one tool, then call the result at every size."""
        found = ToolFound()
        forget_traces()
        started, cpu_started = time.perf_counter(), cpu_s()
        try:
            with torch.no_grad(), interruptible(self.limit_s, should_stop=lambda: False):
                function = TOOLS[name](Question(self.module, self.tracing, self.inputs))
                found.seconds, found.cpu_s = time.perf_counter() - started, cpu_s() - cpu_started
                found.captured = True
                found.error = self.unequal(function)
            found.proven = not found.error
        except (Exception, CaptureTimeoutError) as error:  # noqa: BLE001 - tracers raise anything
            found.seconds = found.seconds or time.perf_counter() - started
            found.error = _short(error) or f"longer than {self.limit_s:g} s"
        finally:
            self.eager.state.restore()
            forget_traces()
        return found

    def unequal(self, function: Callable[..., Any], state: nn.Module | None = None) -> str:
        """How the results of a function differ from eager, call by call and call after call; empty if nowhere.

        ``state`` is the module whose state the function keeps, if it is none itself.
        """
        called = _Called(function, state)
        run = EagerRun(called, ModuleState(called))  # not of(): a program refuses eval()
        calls = {f"example {number}": [example] for number, example in enumerate(self.examples, start=1)}
        calls |= {"unseen": [self.unseen], "calls in a row": [self.examples[0]] * CALLS_IN_A_ROW}
        for label, examples in calls.items():
            try:
                if text := difference(self.eager.outputs(examples), run.outputs(examples)):
                    return f"{label}: {text}"
            except Exception as error:  # noqa: BLE001 - a graph may refuse a size in any way
                return f"{label}: {_short(error)}"
            finally:
                self.eager.state.restore()  # the function may hold the module itself
        return ""

    # --- the ladder ---

    def climb(self) -> tuple[LadderFound, CapturedModel | PartialModel | None]:
        """Capture as the product does, from the first eager call to the proof."""
        forget_traces()
        heard = _Listener()
        reporter = Reporter(heard)
        loaded = LoadedModel(module=self.module, source=Path(), sha256="zoo")
        started, cpu_started = time.perf_counter(), cpu_s()
        try:
            captured, report = capture_model(
                loaded, self.examples, self._recipe(), device=torch.device("cpu"), reporter=reporter
            )
        except AceError as error:
            first = error.problems[0]
            return LadderFound(
                seconds=time.perf_counter() - started,
                error=f"{first.what}; {first.why}"[:400],
                where=first.where,
                rungs=heard.rungs,
            ), None
        seconds, used_s = time.perf_counter() - started, cpu_s() - cpu_started
        found = self._ladder_found(report, seconds)
        found.rungs = heard.rungs
        found.cpu_s = used_s
        found.trace_s = heard.trace_s(report.rung)
        return found, captured

    def _recipe(self) -> Recipe:
        capture: dict[str, Any] = {"time_limit_s": self.limit_s, "cache": False}
        if self.row.rungs:
            capture["rungs"] = list(self.row.rungs)
        return msgspec.convert({"model": {"source": "zoo.py"}, "capture": capture}, Recipe)

    def _ladder_found(self, report: CaptureReport, seconds: float) -> LadderFound:
        dynamic = [
            f"{one.name}.{dim.index}" for one in report.inputs for dim in one.dims if dim.verdict is DimVerdict.DYNAMIC
        ]
        return LadderFound(
            rung=report.rung,
            ops=report.ops,
            ops_left_eager=report.ops_left_eager,
            subgraphs=len(report.pieces),
            captured_subgraphs=sum(subgraph.error is None for subgraph in report.pieces),
            breaks=[f"{Path(one.file).name}:{one.line} {one.reason}" for one in report.graph_breaks],
            dynamic=dynamic,
            is_exact=sorted(dynamic) == sorted(self.asked),
            seconds=seconds,
            warnings=[f"{one.code}: {one.what}" for one in report.warnings],
        )


def cpu_s() -> float:
    """Processor seconds of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class _Listener:
    """Hears when the trace and the proof of every rung begin, and how every rung ended."""

    def __init__(self) -> None:
        self._begun: dict[tuple[Phase, str], float] = {}
        self.rungs: list[CaptureAttempt] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, AttemptEnded):
            self.rungs.append(_without_details(event.outcome))
        elif isinstance(event, Progress):
            rung = event.detail.partition(":")[0]
            self._begun.setdefault((event.phase, rung), time.perf_counter())

    def trace_s(self, rung: str) -> float:
        """Seconds from the start of a rung to the proof of its graph; 0 if there was none."""
        proof, start = (self._begun.get((phase, rung)) for phase in (Phase.VERIFY, Phase.CAPTURE))
        return proof - start if proof and start else 0.0


class _Called(nn.Module):
    """A function as a module, with the buffers that it keeps."""

    def __init__(self, function: Callable[..., Any], state: nn.Module | None) -> None:
        super().__init__()
        self.function = function
        self.state = state

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _without_details(outcome: CaptureAttempt) -> CaptureAttempt:
    if outcome.error is None:
        return outcome
    return msgspec.structs.replace(outcome, error=msgspec.structs.replace(outcome.error, details=""))


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:240]}" if text else ""


class Subgraphs:
    """A partial capture as a function that counts the calls of every subgraph."""

    def __init__(self, captured: PartialModel) -> None:
        self.calls = {subgraph.name: 0 for subgraph in captured.subgraphs}
        subgraphs = [self._counted(host(subgraph)) for subgraph in captured.subgraphs]
        self.runner = SubgraphRunner(captured.module, subgraphs, controls=captured.controls)

    def _counted(self, subgraph: HostedSubgraph) -> HostedSubgraph:
        def call(*tensors: Tensor) -> Sequence[Tensor]:
            self.calls[subgraph.place.name] += 1
            return subgraph.function(*tensors)

        return HostedSubgraph(subgraph.place, call)

    def idle(self) -> list[str]:
        """Subgraphs that nobody called."""
        return [name for name, count in self.calls.items() if not count]


def compare(one: Measurement, captured: CapturedModel | PartialModel, found: LadderFound) -> None:
    """Run what was captured and note how it differs from eager."""
    with torch.no_grad():
        if isinstance(captured, CapturedModel):
            found.unequal = one.unequal(captured.program.module())
            return
        subgraphs = Subgraphs(captured)
        found.unequal = one.unequal(subgraphs.runner, subgraphs.runner.module)
        found.idle_subgraphs, found.missed_calls = subgraphs.idle(), subgraphs.runner.missed


def warm_up() -> None:
    """Import and fill what every first capture of a process pays for."""
    row = ROWS["mlp"]
    small = Measurement(row, limit_s=60.0)
    small.try_tool("export")
    small.climb()


def measure(row: Row, *, limit_s: float, only_ours: bool, note: Callable[[RowFound], None]) -> None:
    """Fill in one row; ``note`` is called after every step."""
    found = RowFound(name=row.name, family=row.family)
    started = time.perf_counter()

    def step() -> None:
        found.wall_s = time.perf_counter() - started
        note(found)

    warm_up()
    one = Measurement(row, limit_s=limit_s)
    found.asked = one.asked
    step()
    _time_both(one, found, step, only_ours=only_ours)
    for name in TOOLS:
        if not only_ours and name != "export":
            found.bare[name] = one.try_tool(name)
            step()


def _time_both(one: Measurement, found: RowFound, step: Callable[[], None], *, only_ours: bool) -> None:
    """The ladder and bare export in turns: A B, then B A if that was quick."""
    bare_cpu: list[float] = []
    ours_cpu: list[float] = []
    for turn in ("AB", "BA"):
        for which in turn:
            if which == "A" and not only_ours:
                found.bare["export"] = one.try_tool("export")
                found.bare_s.append(found.bare["export"].seconds)
                bare_cpu.append(found.bare["export"].cpu_s)
            elif which == "B":
                ladder, captured = one.climb()
                found.ours_s.append(ladder.seconds)
                found.trace_s.append(ladder.trace_s)
                ours_cpu.append(ladder.cpu_s)
                if captured is not None:
                    compare(one, captured, ladder)
                found.ours = ladder
            step()
        if only_ours or sum(found.bare_s) + sum(found.ours_s) > LONG_ROUND_S:
            break
    if found.ours is not None and found.ours.is_whole and found.bare and found.bare["export"].captured:
        found.ratio = min(found.ours_s) / min(found.bare_s)
        found.trace_ratio = min(found.trace_s) / min(found.bare_s)
        found.cpu_ratio = min(ours_cpu) / max(min(bare_cpu), 0.01)
        step()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=list(ROWS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--ours", action="store_true", help="leave the bare tools out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    row = ROWS[options.name]

    def note(found: RowFound) -> None:
        options.out.write_bytes(msgspec.json.encode(found))

    try:
        measure(row, limit_s=options.limit, only_ours=options.ours, note=note)
    except Exception:
        text = traceback.format_exc()
        found = RowFound(name=row.name, family=row.family, error=text[-1500:])
        if options.out.exists():
            known = msgspec.json.decode(options.out.read_bytes(), type=RowFound)
            known.error = found.error
            found = known
        note(found)
        raise


if __name__ == "__main__":
    main()
