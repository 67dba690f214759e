"""Capturing with the recipe's methods in order: the first one whose graph equals eager is taken."""

import time
from collections.abc import Sequence

import msgspec

from ace_studio.engine.capture.attempts import CaptureAttempts, WholeCapture, failed_attempt
from ace_studio.engine.capture.batch_only import offered
from ace_studio.engine.capture.diagnose import Failure
from ace_studio.engine.capture.methods import CAPTURE_METHODS
from ace_studio.engine.capture.partial import PartialCapture, PartialJob
from ace_studio.engine.capture.places import CodePlace
from ace_studio.engine.capture.verify import random_ops
from ace_studio.engine.progress import Reporter
from ace_studio.engine.torch_private.regions import cast_regions
from ace_studio.engine.user_files import user_place
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS, CaptureControl
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimVerdict


def capture_in_order(
    attempts: CaptureAttempts, earlier: Sequence[CaptureAttempt] = ()
) -> WholeCapture | PartialCapture:
    """Try the recipe's capture methods in order and return the first result that equals eager.

    The other methods are tried too if the recipe asks to compare them.

    Args:
        attempts: Where each method is tried, and its outcome noted.
        earlier: Outcomes of a process that ended; the methods that failed there are not tried again.

    Raises: AceError(NOT_CAPTURED) with the causes, the most telling first.
    """
    reference, reporter = attempts.reference, attempts.reporter
    settings = reference.recipe.capture
    accepted: WholeCapture | PartialCapture | None = None
    given_up = {one.name: one for one in earlier if one.error is not None}
    for name in settings.rungs:
        if name in given_up:
            attempts.outcomes.append(_with_offer(given_up[name], attempts))
        elif not settings.compare_rungs and (reason := _reason_to_skip(name, attempts, accepted)):
            attempts.note(CaptureAttempt(name=name, status=AttemptStatus.SKIPPED, reason=reason))
        else:
            method = CAPTURE_METHODS[name]
            found = attempts.try_method(method) if method.capture else _try_subgraphs(name, attempts)
            accepted = accepted or found
    if accepted is None:
        for control in reference.controls.unused():
            _warn_of_idle(control, " in any capture method", reporter)
        first, *others = _causes(attempts.outcomes)
        raise AceError(msgspec.structs.replace(first, code=ErrorCode.NOT_CAPTURED), *others)
    for control, why in reference.controls.idle(accepted.rung):
        _warn_of_idle(control, f": {why}", reporter)
    if isinstance(accepted, WholeCapture):
        _warn_about_the_graph(accepted, attempts)
    return accepted


_MOST_ON_PATHS_S = 30.0
"""Methods that also trace one path through the code's conditions on sizes are not tried after this long."""


def _reason_to_skip(name: str, attempts: CaptureAttempts, accepted: WholeCapture | PartialCapture | None) -> str:
    """Why a method is not tried, in words; empty if it is."""
    if accepted is not None:
        return "an earlier method gave a graph that equals eager"
    if CAPTURE_METHODS[name].capture is not None and attempts.spent_on_paths_s > _MOST_ON_PATHS_S:
        return (
            f"the methods before it traced one path through the code's conditions on sizes for "
            f"{attempts.spent_on_paths_s:.0f} s, and this one would too; ask to compare all methods to try it"
        )
    return ""


def _with_offer(outcome: CaptureAttempt, attempts: CaptureAttempts) -> CaptureAttempt:
    """The outcome of an earlier process; after a timeout it offers to let only the batch stay free."""
    if outcome.error is None or outcome.status is not AttemptStatus.TIMEOUT:
        return outcome
    return msgspec.structs.replace(outcome, error=offered(outcome.error, attempts.reference.inputs))


def _try_subgraphs(name: str, attempts: CaptureAttempts) -> PartialCapture | None:
    started = time.monotonic()
    problems = tuple(outcome.error for outcome in attempts.outcomes if outcome.error is not None)
    found = attempts.guarded(name, PartialJob(attempts.reference, attempts.reporter, problems).run)
    seconds = time.monotonic() - started
    if isinstance(found, Failure):
        attempts.note(msgspec.structs.replace(failed_attempt(name, found), seconds=seconds))
        return None
    ops = sum(subgraph.captured.table.op_count for subgraph in found.subgraphs)
    attempts.note(CaptureAttempt(name=name, status=AttemptStatus.OK, seconds=seconds, ops=ops))
    return found


def _warn_about_the_graph(accepted: WholeCapture, attempts: CaptureAttempts) -> None:
    reporter = attempts.reporter
    for (is_dropout, where), (first, *others) in _random_places(accepted).items():
        ops = f"{first} (+{len(others)})" if others else first
        if is_dropout:
            reporter.warn("dropout-in-eval", f"{ops} drops values although the model is in eval mode", where=where)
        else:
            reporter.warn("random", f"{ops} draws random numbers: results differ from call to call", where=where)
    for region in cast_regions(accepted.program):
        file, line = user_place(region.stack_trace)
        reporter.warn(
            "autocast",
            f"forward() computes {region.op_count} ops in {region.dtype} under torch.autocast: they are one op to "
            "every target, which none quantizes and few runtimes take. Let the caller of the model use autocast: then "
            "forward is captured in float32, and targets have 16-bit arithmetic of their own (bf16 and fp16 in the "
            "plan)",
            where=f"{file}:{line}" if file else "",
        )
    for found, given in zip(accepted.findings, attempts.reference.inputs, strict=True):
        for dim in found.dims:
            if dim.verdict is DimVerdict.DYNAMIC and set(dim.verified_sizes) <= set(given.sizes[dim.index]):
                reporter.warn(
                    "unproven-size", f"{found.name}.{dim.index} could not be tried at a size that nobody gave"
                )


def _random_places(accepted: WholeCapture) -> dict[tuple[bool, str], list[str]]:
    """Whether ops are dropouts, and the line of code -> the ops made there; a line in every layer makes many."""
    nodes = {node.name: node for node in accepted.program.graph.nodes}
    places: dict[tuple[bool, str], list[str]] = {}
    for name in random_ops(accepted.program):
        file, line = user_place(nodes[name].meta.get("stack_trace", ""))
        is_dropout = "dropout" in str(nodes[name].target)
        places.setdefault((is_dropout, f"{file}:{line}" if file else ""), []).append(name)
    return places


def _causes(outcomes: Sequence[CaptureAttempt]) -> list[Problem]:
    """The problems of the methods that were tried, one per line of code, the most telling first."""
    tried = [one for one in outcomes if one.error is not None and one.status is not AttemptStatus.SKIPPED]
    problems: dict[str, Problem] = {}
    for one in sorted(tried, key=_telling):
        assert one.error is not None
        place = CodePlace.of(one.error.where)
        cause = f"{place.file}:{place.line}" if place.file else one.error.where or one.error.what
        problems.setdefault(cause, one.error)
    return list(problems.values()) or [
        Problem(
            code=ErrorCode.NOT_CAPTURED,
            what="No capture method was tried",
            why="the recipe names none that this version has",
            remedy=f"Use rungs = {list(ALL_CAPTURE_METHODS)}.",
            where="[capture] rungs",
        )
    ]


def _telling(outcome: CaptureAttempt) -> tuple[bool, bool, bool]:
    """Sort key: a comparison with eager tells most, then a known cause, then one with a place."""
    assert outcome.error is not None
    return (outcome.status is not AttemptStatus.WRONG, not outcome.is_explained, not outcome.error.where)


def _warn_of_idle(control: CaptureControl, words: str, reporter: Reporter) -> None:
    what = f"The control {control.function} as {control.treat_as} did nothing{words}"
    reporter.warn("idle-control", what, where=control.function)
