"""How each event of the engine changes the document: one pure function per kind of event."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import OpKind
from ace_studio.records.recipes.paths import rebase_recipe
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.session.document import CaptureFailure, Document, JobKind, Selection, ShownRuns

PROBLEM_LIMIT = 50
CHANGED_MODEL = Problem(
    code=ErrorCode.USAGE,
    what="The values are of another graph than the one that is shown",
    why="A file of the model, or a choice, changed since the graph was captured",
    remedy="Trace again, then show the values",
)
_NO_FAILURE = frozenset({ErrorCode.UNTRUSTED, ErrorCode.CANCELLED, ErrorCode.USAGE})
"""Kinds of problems that say nothing of the capture; USAGE: the folder for results cannot be written."""


def apply_finding(document: Document, event: messages.AnyEvent, *, asked_with: Recipe) -> Document:
    """The document with the finding of an event; the same document if the event carries none.

    ``asked_with`` is the recipe that the job was sent with.
    """
    reducer = _REDUCERS.get(type(event))
    return document if reducer is None else reducer(document, event, asked_with)


def with_problems(document: Document, *problems: Any) -> Document:
    """The document with problems added; one that is shown already moves to the end."""
    kept = tuple(problem for problem in document.problems if problem not in problems)
    return replace(document, problems=(*kept, *problems)[-PROBLEM_LIMIT:])


def without_rungs(document: Document) -> Document:
    """The document at the start of a new trace. Sources that were read for display may have been edited since.

    Earlier problems are cleared, because this start may solve them.
    """
    sources = document.sources if document.graph is not None else {}
    return replace(
        document,
        rungs=(),
        rung_at_work="",
        failure=None,
        wanted_rows=(),
        sources=sources,
        problems=(),
        warned=(),
        ended_by=None,
    )


def without_runs(document: Document, *, output: str) -> Document:
    """The document at the start of a new run into a folder; earlier runs are in the history."""
    earlier = ShownRuns(**{field: getattr(document, field) for field in ShownRuns.__struct_fields__})
    return replace(
        document,
        earlier=earlier if _has_figures(document) else document.earlier,
        baseline=None,
        runs=(),
        run_numbers=(),
        result=None,
        output=output,
        exported_to="",
        ran_with=None,
        selection=replace(document.selection, run=None),
    )


def with_earlier_runs(document: Document) -> Document:
    """The document after a run that ended early. If it found no figure, what was shown before it is shown again."""
    earlier = document.earlier
    if earlier is None or _has_figures(document):
        return document
    chosen = None if earlier.result is None else earlier.result.chosen
    fields = {field: getattr(earlier, field) for field in ShownRuns.__struct_fields__}
    return replace(document, earlier=None, selection=replace(document.selection, run=chosen), **fields)


def _has_figures(document: Document) -> bool:
    return bool(document.runs) or document.baseline is not None


def moved_to(document: Document, recipe: Recipe, target: Path) -> Document:
    """The document with its choices saved in a file, perhaps of another folder than before."""
    old_folder = Path(document.folder)
    captured_with, ran_with = (
        found if found is None else rebase_recipe(found, old_folder, target.parent)
        for found in (document.captured_with, document.ran_with)
    )
    return replace(
        document,
        recipe=recipe,
        recipe_path=str(target),
        folder=str(target.parent),
        is_dirty=False,
        disk_change=None,
        captured_with=captured_with,
        ran_with=ran_with,
    )


def _progress(document: Document, event: messages.Progress, _: Recipe) -> Document:
    activity = replace(document.activity, phase=event.phase, detail=event.detail, fraction=event.fraction)
    return replace(document, activity=activity)


def _rung(document: Document, event: messages.AttemptEnded, _: Recipe) -> Document:
    others = tuple(rung for rung in document.rungs if rung.name != event.outcome.name)
    return replace(document, rungs=(*others, event.outcome), rung_at_work="")


def _rung_started(document: Document, event: messages.AttemptStarted, _: Recipe) -> Document:
    return document if document.rung_at_work == event.name else replace(document, rung_at_work=event.name)


def _captured(document: Document, event: messages.ModelCaptured, asked_with: Recipe) -> Document:
    known = set(event.graph.op_id)
    still_there = tuple(op_id for op_id in document.selection.op_ids if op_id in known)
    return replace(
        document,
        fingerprint=event.fingerprint,
        # Findings about another model, or about other choices, do not apply to this one.
        fixes=document.fixes if document.fingerprint in ("", event.fingerprint) else (),
        sensitivity=document.sensitivity if document.fingerprint in ("", event.fingerprint) else None,
        capture=event.capture,
        graph=event.graph,
        values=None,
        sources=event.sources,
        refusals=event.refusals,
        rungs=event.capture.rungs or document.rungs,
        rung_at_work="",
        captured_with=asked_with,
        graph_job=event.job,
        failure=None,
        selection=Selection(op_ids=still_there, run=document.selection.run, closer=document.selection.closer),
    )


def _target(document: Document, event: messages.TargetFinished, asked_with: Recipe) -> Document:
    """Insert the run in the order of the numbers; runs may arrive in any order."""
    found = dict(zip(document.run_numbers, document.runs, strict=True))
    found[event.index] = event.run
    numbers = tuple(sorted(found))
    return replace(document, run_numbers=numbers, runs=tuple(found[number] for number in numbers), ran_with=asked_with)


def _finished(document: Document, event: messages.JobFinished, asked_with: Recipe) -> Document:
    result = event.result
    if result is None:
        return document
    problems = () if result.error is None else (result.error,)
    chosen = document.selection.run if document.selection.run is not None else result.chosen
    found = replace(
        with_failure(document, problems, job=event.job),
        result=result,
        runs=result.runs,
        run_numbers=tuple(range(len(result.runs))),
        baseline=result.baseline or document.baseline,
        capture=result.capture or document.capture,
        output=event.output,
        ran_with=asked_with,
        selection=replace(document.selection, run=chosen),
    )
    return with_problems(found, *problems)


def _failed(document: Document, event: messages.JobFailed, _: Recipe) -> Document:
    return with_problems(with_failure(document, event.problems, job=event.job), *event.problems)


def with_failure(document: Document, problems: tuple[Problem, ...], *, job: str) -> Document:
    """The document with the reason why a trace or a run has no whole graph; unchanged if it has one."""
    is_about_graph = document.activity.verb in {JobKind.TRACE, JobKind.RUN} and document.activity.job == job
    if (
        not problems
        or not is_about_graph
        or document.wanted_rows
        or problems[0].code in _NO_FAILURE
        or _has_whole_graph(document, job)
    ):
        return document
    return replace(document, failure=CaptureFailure(problems=tuple(problems), job=job))


def _has_whole_graph(document: Document, job: str) -> bool:
    graph = document.graph
    return graph is not None and document.graph_job == job and OpKind.OUTPUT in graph.kind


def _fix(document: Document, event: messages.FixTried, _: Recipe) -> Document:
    """A fix that is tried again replaces its earlier result."""
    fix = event.fix
    key = (fix.file, fix.line, fix.kind, fix.title)
    others = tuple(one for one in document.fixes if (one.file, one.line, one.kind, one.title) != key)
    return replace(document, fixes=(*others, fix))


def _values(document: Document, event: messages.ValuesFound, _: Recipe) -> Document:
    """Values of another graph than the one that is shown are dropped: its files changed meanwhile."""
    if event.fingerprint == document.fingerprint:
        return replace(document, values=event.values)
    return with_problems(document, CHANGED_MODEL)


_REDUCERS: dict[type[messages.AnyEvent], Callable[[Document, Any, Recipe], Document]] = {
    messages.Progress: _progress,
    messages.AttemptStarted: _rung_started,
    messages.AttemptEnded: _rung,
    messages.ModelCaptured: _captured,
    messages.BaselineMeasured: lambda document, event, asked_with: replace(
        document, baseline=event.baseline, ran_with=asked_with
    ),
    messages.TargetAtWork: lambda document, event, _: replace(
        document, activity=replace(document.activity, run=event.index)
    ),
    messages.TargetFinished: _target,
    messages.JobFinished: _finished,
    messages.JobFailed: _failed,
    messages.WarningFound: lambda document, event, _: replace(document, warned=(*document.warned, event.warning)),
    messages.JobWarned: lambda document, event, _: with_problems(document, event.problem),
    messages.EnvironmentFound: lambda document, event, _: replace(document, environment=event.report),
    messages.FixTried: _fix,
    messages.SensitivityFound: lambda document, event, _: replace(document, sensitivity=event),
    messages.SizesWanted: lambda document, event, _: replace(document, wanted_rows=event.rows),
    messages.PruningPreviewed: lambda document, event, _: replace(document, pruning=event.report),
    messages.ValuesFound: _values,
}
