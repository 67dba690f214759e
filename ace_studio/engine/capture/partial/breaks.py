"""The list of graph breaks: one per line of the user, with its reason, count and cost."""

from collections import Counter
from collections.abc import Sequence

from torch import nn

from ace_studio.engine.capture.diagnose import diagnose
from ace_studio.engine.capture.partial.left_eager import EagerOps
from ace_studio.engine.capture.partial.recording import Line
from ace_studio.engine.capture.places import CodePlace, find_place
from ace_studio.engine.torch_private.dynamo import HeardBreak
from ace_studio.records.errors import Problem
from ace_studio.records.results import GraphBreak

_MAX_DETAILS = 4_000


def describe_breaks(
    heard: Sequence[HeardBreak], module: nn.Module, ran: EagerOps, left: Counter[Line]
) -> tuple[GraphBreak, ...]:
    """The graph breaks of one recording, in the order in which the compiler met them.

    ``ran`` are the ops of one eager forward, ``left`` those that are in no subgraph.
    """
    places: dict[Line, tuple[CodePlace, HeardBreak]] = {}
    for one in heard:
        place = find_place(one.frames, module)
        if place.file:
            places.setdefault((place.file, place.line), (place, one))
    costs = _shared_out(left, list(places))
    return tuple(
        _graph_break(place, one, module, count=ran.times(line), cost=costs[line])
        for line, (place, one) in places.items()
    )


def breaks_of_problems(problems: Sequence[Problem], ran: EagerOps, left: Counter[Line]) -> tuple[GraphBreak, ...]:
    """What stopped the methods for whole graphs, as breaks, where the compiler itself reported none."""
    found: dict[Line, tuple[Problem, CodePlace]] = {}
    for problem in problems:
        place = CodePlace.of(problem.where)
        if place.file:
            found.setdefault((place.file, place.line), (problem, place))
    costs = _shared_out(left, list(found))
    return tuple(
        GraphBreak(
            file=place.file,
            line=place.line,
            reason=problem.what,
            code=place.source,
            count=ran.times(line),
            ops_left_eager=costs[line],
            hint=problem.remedy,
            module=place.module,
            details=problem.details[:_MAX_DETAILS],
        )
        for line, (problem, place) in found.items()
    )


def _graph_break(place: CodePlace, heard: HeardBreak, module: nn.Module, *, count: int, cost: int) -> GraphBreak:
    error = _root(heard.error)
    if getattr(error, "real_stack", None) is None:
        error.real_stack = list(heard.frames)  # type: ignore[attr-defined]
    problem = diagnose(error, module, leaf_names=[], printed="").problem
    return GraphBreak(
        file=place.file,
        line=place.line,
        reason=problem.what,
        code=place.source,
        count=count,
        ops_left_eager=cost,
        hint=problem.remedy,
        module=place.module,
        details=str(error)[:_MAX_DETAILS],
    )


def _root(error: BaseException) -> BaseException:
    """The original break, where the compiler reports only that it could not continue after one."""
    while type(error.__cause__) is type(error):
        assert error.__cause__ is not None
        error = error.__cause__
    return error


def _shared_out(left: Counter[Line], breaks: Sequence[Line]) -> Counter[Line]:
    """Ops per break: a line that runs eagerly counts for the nearest break of its file, else for the first break."""
    costs: Counter[Line] = Counter()
    for (file, line), count in left.items():
        near = [one for one in breaks if one[0] == file] or breaks[:1]
        if near:
            costs[min(near, key=lambda one: abs(one[1] - line))] += count
    return costs
