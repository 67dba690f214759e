"""The outcome of a try: how much it captured, whether that is better, and its report."""

import re
import tomllib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.engine.fixes import ProposedFix
from ace_studio.engine.flow import AnyCapture
from ace_studio.engine.pipeline.fixes.check import Comparison
from ace_studio.engine.torch_private.dynamo import is_compiler_error
from ace_studio.records.errors import ErrorCode, Problem, message_of
from ace_studio.records.fixes import CaptureOutcome, FixReport, FixStatus
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport

KEPT_SHARE = 0.9
"""Fewer breaks that leave more ops eager are an improvement only if this share of the ops still is captured."""
_EXPLAINED = tomllib.loads(Path(__file__).with_name("explained.toml").read_text(encoding="utf-8"))["difference"]
_PLACE = re.compile(r"^(.+):(\d+)(?:, .*)?$")


@dataclass(frozen=True)
class Attempt:
    """One capture, as far as it came."""

    outcome: CaptureOutcome
    places: tuple[tuple[str, int], ...]
    """File and line of everything that stopped it."""
    captured: AnyCapture | None = None
    problem: Problem | None = None
    """The headline if nothing was captured."""
    wrong: frozenset[str] = frozenset()
    """Rungs that made a graph which is not equal to the model."""
    slowest_s: float = 0.0


def is_whole(outcome: CaptureOutcome) -> bool:
    """Whether it is one graph."""
    return outcome.rung not in ("", "partial")


def is_better(before: CaptureOutcome, after: CaptureOutcome) -> bool:
    """Whether more was captured than before: all instead of parts, parts instead of nothing, or larger parts."""
    if is_whole(before) or not after.rung:
        return False
    if is_whole(after) or not before.rung:
        return True
    if after.breaks < before.breaks:
        return after.ops_left_eager <= before.ops_left_eager or after.ops >= KEPT_SHARE * before.ops
    return after.breaks == before.breaks and after.ops_left_eager < before.ops_left_eager


def places_of(problems: Sequence[Problem], report: CaptureReport | None = None) -> tuple[tuple[str, int], ...]:
    """File and line of everything that stops a capture: its breaks, or what the rungs' problems name."""
    found = [(one.file, one.line) for one in report.graph_breaks if one.file] if report is not None else []
    if not found:
        named = (_PLACE.match(problem.where) for problem in problems)
        found = [(match[1], int(match[2])) for match in named if match]
    return tuple(dict.fromkeys(found))


def not_captured(problems: Sequence[Problem], rungs: Sequence[CaptureAttempt]) -> Attempt:
    """The attempt that ended with problems."""
    places = places_of(problems)
    return Attempt(
        CaptureOutcome(breaks=len(places)),
        places,
        problem=problems[0],
        wrong=_wrong_rungs(rungs),
        slowest_s=max((one.seconds for one in rungs), default=0.0),
    )


def as_attempt(captured: Any, report: CaptureReport, rungs: Sequence[CaptureAttempt]) -> Attempt:
    """The attempt that captured something."""
    outcome = CaptureOutcome(
        rung=report.rung, breaks=len(report.graph_breaks), ops=report.ops, ops_left_eager=report.ops_left_eager
    )
    wrong = next((one.error for one in report.rungs if one.status is AttemptStatus.WRONG), None)
    errors = [one.error for one in report.rungs if one.error is not None]
    return Attempt(
        outcome,
        places_of(errors, report),
        captured=captured,
        problem=wrong,
        wrong=_wrong_rungs(report.rungs),
        slowest_s=max((one.seconds for one in rungs), default=0.0),
    )


def _wrong_rungs(rungs: Sequence[CaptureAttempt]) -> frozenset[str]:
    return frozenset(one.name for one in rungs if one.status is AttemptStatus.WRONG)


def failed(report: FixReport, problem: Problem) -> FixReport:
    """The report of a try that could not be made."""
    return msgspec.structs.replace(report, status=FixStatus.FAILED, problem=problem)


def wrong_report(report: FixReport, what: str, verdict: Comparison) -> FixReport:
    """The report of a try that differs from the model, or raises where the model does not."""
    why, remedy = verdict.difference, "Take another fix, or change the code by hand so that it is equal for all values."
    for row in _EXPLAINED:
        if row["kind"] == report.kind and re.search(row["pattern"], why):
            why, remedy = f"{why}; {row['why']}", row["remedy"]
            break
    problem = Problem(
        code=ErrorCode.NOT_CAPTURED if verdict.has_raised else ErrorCode.WRONG_CAPTURE,
        what="The changed code cannot be run" if verdict.has_raised else what,
        why=why,
        remedy=remedy,
        where=f"{report.file}:{report.line}",
        details=verdict.details,
    )
    status = FixStatus.FAILED if verdict.has_raised else FixStatus.WRONG
    return msgspec.structs.replace(report, status=status, problem=problem, inputs_compared=verdict.compared)


def cannot(candidate: ProposedFix, why: str) -> Problem:
    """The problem that a fix cannot be written here."""
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        what=f"This cannot be done here: {candidate.title}",
        why=why,
        remedy="Take another fix, or change the code by hand.",
        where=f"{candidate.file}:{candidate.line}",
    )


def unexpected(error: Exception, candidate: ProposedFix) -> Problem:
    """The problem of a try that ended with an exception: of torch's compiler, or in a way that nobody thought of."""
    if is_compiler_error(error):
        return Problem(
            code=ErrorCode.NOT_CAPTURED,
            what="The changed model cannot be captured",
            why=f"torch's compiler gave up with {type(error).__name__}",
            remedy="Take another fix; the details hold what was said.",
            where=f"{candidate.file}:{candidate.line}",
            details="".join(traceback.format_exception(error)),
        )
    return Problem(
        code=ErrorCode.INTERNAL,
        what=f"The try ended with {type(error).__name__}, which ACE Studio did not expect",
        why=message_of(error, limit=200),
        remedy="The other fixes are tried all the same. Please report it with the details.",
        where=f"{candidate.file}:{candidate.line}",
        details="".join(traceback.format_exception(error)),
    )


def renamed(report: FixReport, copy: Path, file: str) -> FixReport:
    """The report with the user's file named where the tracer named the copy."""
    if report.problem is None:
        return report
    changed = f"{file} (changed)"
    texts = {
        name: getattr(report.problem, name).replace(str(copy), file) for name in ("what", "why", "remedy", "details")
    }
    where = report.problem.where.replace(str(copy), changed)
    return msgspec.structs.replace(report, problem=msgspec.structs.replace(report.problem, where=where, **texts))
