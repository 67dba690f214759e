"""Counts the ops that run eagerly between the subgraphs, by the user's line."""

import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn

from ace_studio.engine.capture.eager import EagerRun, call_in_turn
from ace_studio.engine.capture.partial.recording import NOT_COUNTED, Line, OpCounter, Recording
from ace_studio.engine.flow import Example, Subgraph
from ace_studio.engine.subgraphs.run_pieces import attention_in_parts
from ace_studio.engine.torch_private.operators import whole_operators
from ace_studio.engine.user_files import is_user_file


@dataclass(frozen=True)
class EagerOps:
    """The operators of one eager forward, without submodules that are subgraphs."""

    counts: Counter[tuple[Line, str]]
    """Line and operator -> how often it ran."""
    behind: Mapping[Line, str]
    """Line -> name of the subgraph that was called last before the line first ran; empty if none was."""

    def lines(self) -> Counter[Line]:
        """Line -> ops."""
        found: Counter[Line] = Counter()
        for (line, _), count in self.counts.items():
            found[line] += count
        return found

    def times(self, line: Line) -> int:
        """How often a line ran: each of its operators ran at least once each time. 1 if it has no operator."""
        return min((count for (place, _), count in self.counts.items() if place == line), default=1)


def run_eager_ops(eager: EagerRun, example: Example, subgraphs: Sequence[Subgraph]) -> EagerOps:
    """Run the example eagerly and count the operators of its forward, as a graph names them where that can be."""
    try:
        return _run_counted(eager, example, subgraphs, whole_operators())
    except RuntimeError:  # forward computes gradients
        return _run_counted(eager, example, subgraphs, nullcontext())


def _run_counted(
    eager: EagerRun, example: Example, subgraphs: Sequence[Subgraph], counted_as: AbstractContextManager[None]
) -> EagerOps:
    watch = _Watch()
    counter = OpCounter(watch.place)

    def forward(*args: Any, **kwargs: Any) -> Any:  # what copies the example and the result is not counted
        with watch.on(eager.module, subgraphs), counted_as, counter:
            return eager.module(*args, **kwargs)

    try:
        with attention_in_parts():  # as in the subgraphs
            call_in_turn(forward, [example])
    finally:
        eager.state.restore()
    return EagerOps(counter.counts, watch.behind)


def left_eager(ran: EagerOps, subgraphs: Sequence[Subgraph], recording: Recording) -> Counter[Line]:
    """Ops of one forward that are in no subgraph, by line: those of eager minus those of the subgraphs."""
    left = ran.lines()
    names = {subgraph.name for subgraph in subgraphs}
    for frame in recording.frames:
        if frame.name in names:
            left.subtract(frame.lines)
    return Counter({line: count for line, count in left.items() if count > 0})


@dataclass
class _Watch:
    """Follows a forward while it runs."""

    depth: int = 0
    """Number of running submodules that are subgraphs."""
    last: str = ""
    """Name of the subgraph of a submodule that was called last."""
    behind: dict[Line, str] = field(default_factory=dict)

    def place(self) -> Line:
        """The line that runs now."""
        if self.depth:
            return NOT_COUNTED
        line = _current_line()
        self.behind.setdefault(line, self.last)
        return line

    @contextmanager
    def on(self, module: nn.Module, subgraphs: Sequence[Subgraph]) -> Iterator[None]:
        """Note the calls of the submodules that subgraphs belong to."""
        handles = []
        for subgraph in subgraphs:
            if subgraph.place.module:
                child = module.get_submodule(subgraph.place.module)
                step = 1 if subgraph.place.kind == "module" else 0
                handles.append(child.register_forward_pre_hook(partial(self._enter, subgraph.name, step)))
                handles.append(child.register_forward_hook(partial(self._leave, step), always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name: str, step: int, *_: object) -> None:
        self.depth += step
        self.last = name

    def _leave(self, step: int, *_: object) -> None:
        self.depth -= step


def _current_line() -> Line:
    """The innermost line of the user's code that is running."""
    running = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(sys._getframe(1)))
    return next((place for place in running if is_user_file(place[0])), ("", 0))
