"""Records the subgraphs that torch's compiler finds in a model, and their calls; nothing is compiled."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ace_studio.engine.capture.limit import CaptureTimeoutError, interruptible
from ace_studio.engine.capture.places import find_place
from ace_studio.engine.flow import Example
from ace_studio.engine.subgraphs.run_pieces import Frame, HostedSubgraph, SubgraphRunner
from ace_studio.engine.torch_private.dynamo import HeardBreak, forget_traces, graph_breaks_heard
from ace_studio.engine.torch_private.operators import whole_operators
from ace_studio.engine.user_files import user_place
from ace_studio.records.errors import AceError

Line = tuple[str, int]
"""A file and a line of the user."""
MOST_CALLS = 12
"""Calls of one subgraph that are kept."""
MOST_CALLS_IN_A_FORWARD = 3
"""Calls that are kept of one forward, so that a loop does not crowd out the other examples."""


@dataclass
class RecordedCalls:
    """Copies of calls of one subgraph, mostly of different sizes."""

    calls: list[Any] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)
    count: int = 0
    """Calls in all."""
    kept_now: int = 0
    """Calls of the current forward that are kept."""

    def begin_forward(self) -> None:
        """The next calls belong to another forward."""
        self.kept_now = 0

    def add(self, call: Any) -> None:
        """Keep the call if its sizes are new, or if only one call is kept so far."""
        self.count += 1
        if self.kept_now >= MOST_CALLS_IN_A_FORWARD:
            return
        leaves = pytree.tree_leaves(call)
        sizes = tuple(tuple(leaf.shape) if isinstance(leaf, Tensor) else repr(leaf) for leaf in leaves)
        if len(self.calls) >= MOST_CALLS or (sizes in self.seen and len(self.calls) > 1):
            return
        self.kept_now += 1
        self.seen.add(sizes)
        self.calls.append(pytree.tree_map_only(Tensor, lambda tensor: tensor.detach().clone(), call))


@dataclass
class RecordedFrame:
    """One graph of the compiler with one set of weights."""

    frame: Frame
    weights: tuple[tuple[int, str], ...]
    begun_in: int = 0
    """Number of the forward that ran it first."""
    calls: RecordedCalls = field(default_factory=RecordedCalls)
    first_forward: int = 0
    """Calls that the first forward makes."""
    writes: str = ""
    """Name of the first tensor that it writes into; empty if it writes into none."""
    lines: Counter[Line] = field(default_factory=Counter)
    """Ops that one forward runs in it, by the user's line."""
    name: str = ""
    """Name of the subgraph that is made from it."""

    @property
    def op_count(self) -> int:
        """Calls in the compiler's graph."""
        return sum(node.op.startswith("call_") for node in self.frame.graph.graph.nodes)

    @property
    def weight_names(self) -> list[str]:
        """Names of the weights that it is given."""
        return [name for _, name in self.weights]


@dataclass(frozen=True)
class ForwardStep:
    """One step of the first forward: a subgraph, or a graph break."""

    name: str = ""
    """Name of the subgraph; empty for a break."""
    line: Line = ("", 0)
    """The break's line."""
    reads: tuple[int | str | None, ...] = ()
    """Per tensor of the subgraph: the input of the model, or the subgraph that made it; None for Python code."""

    @property
    def is_break(self) -> bool:
        """Whether it is a break."""
        return not self.name


class FrameRecorder(SubgraphRunner):
    """Runs every graph of the compiler unchanged and records its calls."""

    def __init__(
        self, module: nn.Module, modules: Sequence[HostedSubgraph], *, changing: frozenset[str], reads_code: bool
    ) -> None:
        self._reads_code = reads_code
        self.frames: dict[tuple[str, tuple[str, ...]], RecordedFrame] = {}
        self.forwards = 0
        self.events: list[RecordedFrame | ForwardStep | HeardBreak] = []
        """Subgraphs and breaks of the first forward, in order."""
        self.reads: dict[int, tuple[int | RecordedFrame | str | None, ...]] = {}
        """Position among the events -> origin of the tensors."""
        self._made_by: dict[int, int | RecordedFrame | str] = {}
        self._alive: list[Any] = []  # so that no id is used twice during the first forward
        super().__init__(module, [HostedSubgraph(one.place, self._heard(one)) for one in modules])
        self._changing = changing

    def _heard(self, subgraph: HostedSubgraph) -> Callable[..., Sequence[Tensor]]:
        def call(*tensors: Tensor) -> Sequence[Tensor]:
            self._note_call(ForwardStep(name=subgraph.place.name), tensors)
            results = subgraph.function(*tensors)
            self._note_results(subgraph.place.name, results)
            return results

        return call

    def _note_call(self, event: RecordedFrame | ForwardStep, tensors: Sequence[Tensor]) -> None:
        if self.forwards == 0:
            self.reads[len(self.events)] = tuple(self._made_by.get(id(tensor)) for tensor in tensors)
            self.events.append(event)

    def _note_results(self, maker: int | RecordedFrame | str, results: Any) -> None:
        for leaf in pytree.tree_leaves(results) if self.forwards == 0 else ():
            self._made_by[id(leaf)] = maker
            self._alive.append(leaf)

    @property
    def needs_graphs(self) -> bool:
        """Whether the compiler reads the code; False if only the calls of submodules are recorded."""
        return self._reads_code

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the module."""
        self._unseen = {("", ())}  # never complete: every graph is recorded
        for found in self.frames.values():
            found.calls.begin_forward()
        leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        for number, leaf in enumerate(leaves):
            self._note_results(number, leaf)
        try:
            return super().__call__(*args, **kwargs)
        finally:
            self.forwards += 1

    def _run_frame(self, frame: Frame, values: tuple[Any, ...]) -> Any:
        named = [(at, self._names.get(id(value), "")) for at, value in enumerate(values)]
        weights = tuple((at, name) for at, name in named if name and name not in self._changing)
        key = (frame.digest, tuple(name for _, name in weights))
        found = self.frames.setdefault(key, RecordedFrame(frame, weights, begun_in=self.forwards))
        places = {at for at, _ in weights}
        found.calls.add([None if at in places else value for at, value in enumerate(values)])
        self._note_call(
            found, [value for at, value in enumerate(values) if isinstance(value, Tensor) and at not in places]
        )
        versions = [value._version if isinstance(value, Tensor) else 0 for value in values]
        results = self._run_graph(found, values)
        changed = [
            at for at, value in enumerate(values) if isinstance(value, Tensor) and value._version != versions[at]
        ]
        if changed:
            found.writes = dict(named)[changed[0]] or str(frame.nodes[changed[0]].name)
        self._note_results(found, results)
        return results

    def _run_graph(self, found: RecordedFrame, values: tuple[Any, ...]) -> Any:
        if self.forwards:
            return found.frame.graph(*values)
        found.first_forward += 1
        try:
            with whole_operators(), OpCounter() as counter:
                results = _Stepper(found.frame.graph, counter).run(*values)
        except RuntimeError:  # gradients are computed in it
            with OpCounter() as counter:
                results = _Stepper(found.frame.graph, counter).run(*values)
        for (line, _), count in counter.counts.items():
            found.lines[line] += count
        return results


class OpCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that run, by the user's current line."""

    supports_higher_order_operators = True  # torch.cond counts as one op

    def __init__(self, place: Callable[[], Line | None] = lambda: None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[tuple[Line, str]] = Counter()
        """Line and operator -> how often it ran."""
        self.current: Line = ("", 0)
        self._place = place

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        place = self._place() or self.current
        if place != NOT_COUNTED:
            self.counts[place, str(func)] += 1
        return func(*args, **(kwargs or {}))


NOT_COUNTED: Line = ("", -1)
"""The place of ops that already belong to a subgraph."""


class _Stepper(fx.Interpreter):
    """Runs a graph node by node and sets the line of each node as the counter's current one."""

    def __init__(self, graph: fx.GraphModule, counter: OpCounter) -> None:
        super().__init__(graph)
        self._counter = counter

    def run_node(self, node: fx.Node) -> Any:
        self._counter.current = user_place(node.meta.get("stack_trace") or node.stack_trace or "")
        return super().run_node(node)


@dataclass
class Recording:
    """What one recording found."""

    frames: list[RecordedFrame]
    """In the order of their first calls."""
    breaks: list[HeardBreak]
    events: list[RecordedFrame | ForwardStep | HeardBreak]
    reads: dict[int, tuple[int | RecordedFrame | str | None, ...]]
    place_of: Callable[[HeardBreak], Line]
    given_up: str = ""
    """Why the compiler stopped early: then there are no frames, and only the breaks until then. Empty if it did not."""

    @property
    def steps(self) -> list[ForwardStep]:
        """The steps of the first forward; a break stands behind the subgraph that ends at it.

        The compiler reports a break while it reads, before the code read so far runs for the first time.
        """
        found: list[ForwardStep] = []
        waiting: list[ForwardStep] = []
        for number, event in enumerate(self.events):
            if isinstance(event, HeardBreak):
                step = ForwardStep(line=self.place_of(event))
                found += waiting + ([step] if event.skips_frame else [])
                waiting = [] if event.skips_frame else [step]
                continue
            name = event.name
            reads = tuple(one.name if isinstance(one, RecordedFrame) else one for one in self.reads[number])
            found += [*([ForwardStep(name=name, reads=reads)] if name else []), *waiting]
            waiting = []
        return [*found, *waiting]

    def in_order(self, subgraphs: Sequence[Any]) -> list[Any]:
        """The subgraphs in the order in which the first forward runs them."""
        order = {step.name: number for number, step in reversed(list(enumerate(self.steps))) if step.name}
        return sorted(subgraphs, key=lambda subgraph: order.get(subgraph.name, len(self.events) + 1))


def record_frames(
    module: nn.Module,
    examples: Sequence[Example],
    modules: Sequence[HostedSubgraph],
    *,
    changing: frozenset[str],
    call: Callable[[Callable[..., Any], Example], Any],
    limit_s: float | None,
) -> Recording:
    """Run the examples under the compiler and record its graphs.

    Args:
        module: The user's module.
        examples: Calls to make; the first one should have the sizes that tell most, all at least 2.
        modules: Submodules that are subgraphs already; the compiler does not read them.
        changing: Names of the buffers that a call changes; they are values of a call, not weights.
        call: Makes one call of the recorder, with the controls applied and the state restored.
        limit_s: Seconds that the compiler may read; None to record the submodules only, without the compiler.
    """
    forget_traces()
    recorder = FrameRecorder(module, modules, changing=changing, reads_code=limit_s is not None)
    breaks: list[HeardBreak] = []

    def hear(heard: HeardBreak) -> None:
        breaks.append(heard)
        if recorder.forwards == 0:
            recorder.events.append(heard)

    given_up = ""
    try:
        with graph_breaks_heard(hear), interruptible(limit_s or math.inf, should_stop=lambda: False):
            for example in examples:
                call(recorder, example)
    except CaptureTimeoutError:
        given_up = f"it took longer than {limit_s:g} s"
    except AceError:
        raise
    except Exception as error:  # the compiler and the user's code raise anything
        if limit_s is None:
            raise
        given_up = f"it raised {type(error).__name__}"
    if given_up:
        recorder.frames, recorder.events = {}, []
    forget_traces()

    def line_of(heard: HeardBreak) -> Line:
        place = find_place(heard.frames, module)
        return place.file, place.line

    frames = list(recorder.frames.values())
    return Recording(frames, breaks, recorder.events, recorder.reads, line_of, given_up)


@contextmanager
def recorded_calls(module: nn.Module, paths: Sequence[str]) -> Iterator[dict[str, RecordedCalls]]:
    """Record the calls of submodules while the block runs: path -> (args, kwargs) of each.

    A module with several paths is recorded under the first one.
    """
    found: dict[str, RecordedCalls] = {}
    handles = []
    for path in paths:
        calls = found[path] = RecordedCalls()

        def hear(_: nn.Module, args: Any, kwargs: Any, calls: RecordedCalls = calls) -> None:
            calls.add((args, kwargs))

        handles.append(module.get_submodule(path).register_forward_pre_hook(hear, with_kwargs=True))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
