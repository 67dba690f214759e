"""The way from a file to an artifact, in steps: which are done, which one is next, and why another is not possible."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from ace_studio.gui.style import told, tr
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.problems import also_asked_for
from ace_studio.records.errors import one_line
from ace_studio.records.messages import WEIGHTS_ALONE
from ace_studio.records.recipes.named_source import COLLECTIONS
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import RunStatus
from ace_studio.records.sending import host_of
from ace_studio.session.document import Document, JobKind
from ace_studio.session.job_queue import start_problem
from ace_studio.session.kept.trust import hash_in


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
    if not document.recipe.model.source or document.comparison is not None or document.past is not None:
        return ()
    done = _done(document)
    missing = next((step for step in ("open", "trust") if not done[step]), "")
    following = missing or _after_opening(done, document)
    working = {JobKind.TRACE: "trace", JobKind.RUN: "run"}.get(document.activity.verb, "")
    if document.activity.is_working:
        following = ""
    made = []
    for step, title in _TITLES.items():
        if step == working:
            state, why = StepState.WORKING, tr("Going on now")
        elif step == following:
            is_looking = step == "open" and document.file is None and not document.could_not_open
            state, why = StepState.WORKING if is_looking else StepState.NEXT, _todo(step, document)
        elif done[step]:
            state, why = StepState.DONE, done[step]
        else:
            blocker = _blocker(step, document)
            state, why = (StepState.BLOCKED, blocker) if blocker else (StepState.OPEN, _todo(step, document))
        made.append(NextStep(step, title, state, why))
    return tuple(made)


def _after_opening(done: dict[str, str], document: Document) -> str:
    """The step to take now with a model that can be run; empty if everything is done."""
    if document.failure is not None:
        return "trace"
    if not done["run"]:
        return "run"
    if done["export"]:
        return ""
    if not done["plan"]:  # what ran is the original in other runtimes
        return "plan"
    return "" if no_artifact(document) else "export"


_TITLES = {
    "open": tr("Open"),
    "trust": tr("Trust"),
    "inputs": tr("Inputs"),
    "trace": tr("Trace"),
    "plan": tr("Plan"),
    "run": tr("Run"),
    "compare": tr("Compare"),
    "export": tr("Export"),
}


def needs_entry(document: Document) -> bool:
    """Whether the user has to say what makes the model: nothing in the file is plain."""
    file = document.file
    is_code = file is not None and (file.kind in WEIGHTS_ALONE or bool(file.entries))
    return is_code and not document.recipe.model.entry


def is_no_model(document: Document) -> bool:
    """Whether what is open can only be looked at: a folder without the configuration of a model."""
    return document.file is not None and document.file.trust == "inspect"


def why_no_model(document: Document) -> str:
    """Why what is open cannot be a model as it is; empty if it may be one."""
    if document.could_not_open:
        return tr("It could not be opened")
    if is_no_model(document):
        return tr("This folder is no model: open one of its files")
    return tr("Choose what makes the model") if needs_entry(document) else ""


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
    trusted = tr("Trusted") if file is not None and file.trust == "code" else tr("Holds no code to trust")
    given = recipe.inputs.tracing or recipe.inputs.caught or recipe.calibration.inputs
    rows = recipe.inputs.rows
    inputs = tr("From {source}", source=given) if given else plural(len(rows), "example") if rows else ""
    is_low = bool(recipe.plan.precisions - {Precision.FP32})
    compresses = recipe.goal.has_bound if recipe.plan.from_goal else is_low
    return {
        "open": one_line(PurePath(file.path).name)
        if file is not None and not (needs_entry(document) or is_no_model(document))
        else "",
        "trust": trusted if file is not None and not document.needs_trust else "",
        "inputs": inputs or (tr("As they were traced") if document.graph is not None else ""),
        "trace": plural(document.graph.op_count, "op") if document.graph is not None else "",
        "plan": _plan_words(document) if compresses else "",
        "run": plural(sum(run.status is RunStatus.OK for run in document.runs), "result") if is_fresh else "",
        "compare": tr("A and B are pinned") if all(document.pins) else "",
        "export": tr("Saved as {name}", name=PurePath(document.exported_to).name)
        if is_fresh and document.exported_to
        else "",
    }


def _plan_words(document: Document) -> str:
    plan, goal = document.recipe.plan, document.recipe.goal
    words = tr("precisions from the goal") if plan.from_goal else str(plan.default)
    if goal.max_drop is not None:
        return tr("{plan}, accuracy drop at most {percent:g} %", plan=words, percent=100 * goal.max_drop)
    if goal.min_sqnr_db is not None:
        return tr("{plan}, at least {db:g} dB", plan=words, db=goal.min_sqnr_db)
    return words


def _todo(step: str, document: Document) -> str:
    plan = _done(document)["plan"]
    name = one_line(PurePath(document.file.path).name if document.file is not None else document.title)
    also = also_asked_for(document)
    if any(host_of(hash_in(problem)) for problem in also):
        trust = tr("Files would be sent to another machine: look at the list, then allow it")
    elif also:
        names = ", ".join(one_line(PurePath(problem.where).name) for problem in also)
        trust = tr("{names} is needed too: look at where it lies, then allow it", names=names)
    elif document.has_changed_since_trust:
        trust = tr("{name} has changed: look at what would run, then allow it", name=name)
    else:
        trust = tr("{name} is code: look at what would run, then allow it", name=name)
    return {
        "open": why_no_model(document) or why_not(document),
        "trust": trust,
        "inputs": tr("Optional: without examples, sizes are proposed from the first layer"),
        "trace": tr("Not captured: correct the cause, then trace again")
        if document.failure is not None
        else tr("Optional: see the graph first"),
        "plan": tr("Nothing is compressed: choose a precision or a goal"),
        "run": tr("Compress and measure: {plan}", plan=plan) if plan else tr("Measure; nothing is compressed yet"),
        "compare": tr("See what was lost and won, side by side"),
        "export": tr("Save the best verified artifact"),
    }[step]


def _blocker(step: str, document: Document) -> str:
    """Why a step is not possible now; empty if it is."""
    if step == "compare" and not document.runs:
        return tr("Run first")
    if step == "export" and no_artifact(document):
        return no_artifact(document)
    if step == "trust" and document.file is None:
        return _todo("open", document)
    if step in ("trace", "run"):
        return why_not_asked(document)
    if document.activity.is_working and step == "export":
        return tr("Wait until the engine is done, or cancel")
    return ""


def no_artifact(document: Document) -> str:
    """Why no artifact can be exported: of the selected run, else of the one that the engine chose."""
    if not document.runs:
        return tr("Run first")
    at = document.selection.run
    if at is None and document.result is not None:
        at = document.result.chosen
    has_one = at is not None and at < len(document.runs) and document.runs[at].artifact
    return "" if has_one else tr("Select a result that has an artifact")


def why_fixed(document: Document) -> str:
    """Why no choice can be changed; empty if each can."""
    return told(document.read_only.what) if document.read_only is not None else ""


def why_not_asked(document: Document) -> str:
    """Why neither a trace nor a run can be asked for; empty if one can: they wait until the file is known."""
    return "" if document.is_looked_at else why_not(document)


def why_not(document: Document) -> str:
    """Why no job can start; empty if one can."""
    if document.needs_trust:
        return tr("Trust comes first")
    if document.recipe.model.source and document.file is None and document.read_only is None:
        return why_no_model(document) or tr("Looking at the file")
    if needs_entry(document):
        return why_no_model(document)
    problem = start_problem(document)
    return f"{told(problem.what)}. {told(problem.remedy)}" if problem is not None else ""
