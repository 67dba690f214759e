"""The way from a file to an artifact, in steps: which are done, which one is next, and why another is not possible."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from ace_studio.records.recipes.named_source import COLLECTIONS
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import RunStatus
from ace_studio.session.document import Document, JobKind

WEIGHTS_ALONE = frozenset({"safetensors", "state-dict"})
"""Kinds of files that need code from elsewhere."""


class StepState(StrEnum):
    """Where a step stands."""

    DONE = "done"
    NEXT = "next"
    """The one step to take now."""
    WORKING = "working"
    OPEN = "open"
    """Possible, not needed now."""
    BLOCKED = "blocked"


@dataclass(frozen=True)
class NextStep:
    """One step and where it stands."""

    id: str
    title: str
    state: StepState
    why: str
    """What was done, what to do, or why it is not possible, in one sentence."""


def steps_of(document: Document) -> tuple[NextStep, ...]:
    """The steps in their order; exactly one is next, unless the engine works or everything is done."""
    if not document.recipe.model.source or document.comparison is not None:
        return ()
    done = _done(document)
    missing = next((step for step in ("open", "trust") if not done[step]), "")
    following = missing or next((step for step in ("run", "export") if not done[step]), "")
    working = {JobKind.TRACE: "trace", JobKind.RUN: "run"}.get(document.activity.verb, "")
    if document.activity.is_working:
        following = ""
    made = []
    for step, title in _TITLES.items():
        if step == working:
            state, why = StepState.WORKING, "Going on now"
        elif step == following:
            state, why = StepState.NEXT, _todo(step, document)
        elif done[step]:
            state, why = StepState.DONE, done[step]
        else:
            blocker = _blocker(step, missing, document)
            state, why = (StepState.BLOCKED, blocker) if blocker else (StepState.OPEN, _todo(step, document))
        made.append(NextStep(step, title, state, why))
    return tuple(made)


_TITLES = {
    "open": "Open",
    "trust": "Trust",
    "inputs": "Inputs",
    "trace": "Trace",
    "plan": "Plan",
    "run": "Run",
    "compare": "Compare",
    "export": "Export",
}


def needs_entry(document: Document) -> bool:
    """Whether the user has to say what makes the model: nothing in the file is plain."""
    file = document.file
    is_code = file is not None and (file.kind in WEIGHTS_ALONE or bool(file.entries))
    return is_code and not document.recipe.model.entry


def has_random_weights(document: Document) -> bool:
    """Whether the model is made by its class or its name alone, so that its weights come from nowhere."""
    file, model = document.file, document.recipe.model
    if file is None or model.weights or file.loads_weights:
        return False
    is_class = any(one.name == model.entry and one.kind == "class" for one in file.entries)
    return is_class or file.kind in COLLECTIONS


def _done(document: Document) -> dict[str, str]:
    """NextStep -> what was done, in words; empty if it is not done."""
    file, recipe = document.file, document.recipe
    is_fresh = bool(document.runs) and document.result is not None and not document.is_stale
    trusted = "Trusted" if file is not None and file.trust == "code" else "Holds no code to trust"
    first_rows = f"{len(recipe.inputs.rows)} example{'s' if len(recipe.inputs.rows) != 1 else ''}"
    given = recipe.inputs.tracing or recipe.inputs.caught or recipe.calibration.inputs
    inputs = f"From {given}" if given else first_rows if recipe.inputs.rows else ""
    compresses = recipe.plan.from_goal and recipe.goal.has_bound
    compresses = compresses or bool(
        {recipe.plan.default, *(rule.precision for rule in recipe.plan.rules)} - {Precision.FP32}
    )
    return {
        "open": PurePath(file.path).name if file is not None and not needs_entry(document) else "",
        "trust": trusted if file is not None and not document.needs_trust else "",
        "inputs": inputs or ("As they were traced" if document.graph is not None else ""),
        "trace": f"{document.graph.op_count} ops" if document.graph is not None else "",
        "plan": _plan_words(document) if compresses else "",
        "run": f"{sum(run.status is RunStatus.OK for run in document.runs)} results" if is_fresh else "",
        "compare": "",
        "export": f"Saved as {PurePath(document.exported_to).name}" if is_fresh and document.exported_to else "",
    }


def _plan_words(document: Document) -> str:
    plan, goal = document.recipe.plan, document.recipe.goal
    words = "Precisions from the goal" if plan.from_goal else str(plan.default)
    if goal.max_drop is not None:
        return f"{words}, at most {100 * goal.max_drop:g} % of the metric lost"
    return f"{words}, at least {goal.min_sqnr_db:g} dB" if goal.min_sqnr_db is not None else words


def _todo(step: str, document: Document) -> str:
    if step == "open" and needs_entry(document):
        return "Choose what makes the model"
    plan = _done(document)["plan"]
    name = PurePath(document.file.path).name if document.file is not None else document.title
    changed = "has changed since you trusted it" if document.has_changed_since_trust else "is a program"
    return {
        "open": "Looking at the file",
        "trust": f"{name} {changed}: look at what would run, then allow it",
        "inputs": "Optional: without examples, sizes are proposed from the first layer",
        "trace": "Optional: see the graph first",
        "plan": "Nothing is compressed: choose a precision or a goal",
        "run": f"Compress and measure: {plan}" if plan else "Measure; nothing is compressed yet",
        "compare": "See what was lost and won, side by side",
        "export": "Save the best verified artifact",
    }[step]


def _blocker(step: str, missing: str, document: Document) -> str:
    """Why a step is not possible now; empty if it is."""
    if step in ("compare", "export") and not document.runs:
        return "Run first"
    if step in ("trace", "run") and missing:
        return f"{_TITLES[missing]} comes first"
    if document.activity.is_working and step in ("trace", "run", "export"):
        return "Wait until the engine is done, or cancel"
    return ""
