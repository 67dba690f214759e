"""What the window shows: one frozen record of the user's choices and of what the engine found.

Only `Session` makes new ones. Choices (the recipe) can be undone; findings are facts and stay, each with the recipe
that it was found with, so that everybody can see when choices have moved on.
"""

from enum import StrEnum
from pathlib import Path, PurePath

import msgspec

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.graph import GraphTable
from ace_studio.records.places import is_shipped
from ace_studio.records.recipes.recipe import RECIPE_SUFFIX, CaptureChoice, Recipe
from ace_studio.records.results import Baseline, CaptureAttempt, CaptureReport, Result, TargetRun, Warning
from ace_studio.records.results.pruning import PruningReport
from ace_studio.records.tensors import TensorSpec
from ace_studio.records.values import OpValues
from ace_studio.session.comparison.sides import Pin, PinnedPair
from ace_studio.session.kept.history import RunSummary
from ace_studio.session.sweep_state import SweepState


class Part(StrEnum):
    """A part of the document that panels can follow."""

    RECIPE = "recipe"
    """The choices, whether they are saved, and what undo and redo would do."""
    FILE = "file"
    """The opened file: report, recipe path, folder."""
    TRUST = "trust"
    """Whether the opened file may run, and whether the engine was refused for it."""
    GRAPH = "graph"
    """The captured graph, the capture report, the capture attempts and the user's sources."""
    RUNS = "runs"
    """Baseline, target runs and the whole result."""
    ACTIVITY = "activity"
    """What the engine is doing."""
    SELECTION = "selection"
    """The selected ops and the selected run."""
    LOG = "log"
    """Lines that user code, torch or we printed."""
    PROBLEMS = "problems"
    """Problems that the user has not dismissed."""
    FIXES = "fixes"
    """Fixes that were tried."""
    CAUGHT = "caught"
    """Inputs caught from a script."""
    HISTORY = "history"
    """Past runs."""
    ENVIRONMENT = "environment"
    """The engine's interpreter: versions, devices, targets."""
    SWEEP = "sweep"
    """The sweep: what it is to do, how far it is, and its rows."""
    SETTINGS = "settings"
    """Recent files and everything kept in the settings."""


class EngineState(StrEnum):
    """What the engine process is doing."""

    STARTING = "starting"
    """Being started; verbs are accepted and wait."""
    IDLE = "idle"
    """Ready."""
    BUSY = "busy"
    """Working on a job."""
    CANCELLING = "cancelling"
    """Asked to stop; idle again within five seconds."""
    LOST = "lost"
    """Died, and could not be started again."""


class JobKind(StrEnum):
    """The kind of job that the engine works on."""

    NONE = ""
    INSPECT = "inspect"
    ENVIRONMENT = "environment"
    TRACE = "trace"
    RUN = "run"
    FIX = "fix"
    CATCH = "catch"
    SENSITIVITY = "sensitivity"
    PRUNE = "prune"
    VALUES = "values"


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine is doing, as a progress bar shows it."""

    state: EngineState = EngineState.STARTING
    job: str = ""
    verb: JobKind = JobKind.NONE
    phase: messages.Phase = messages.Phase.START
    detail: str = ""
    fraction: float | None = None
    """Progress of the phase in 0..1, or None if it is not known."""
    run: int | None = None
    """Number of the run whose target is at work, as in `Document.run_numbers`."""
    started_s: float = 0.0
    """When the job began, on the session's clock (`time.monotonic`)."""
    missing_engine: Problem | None = None
    """Why the engine never started, if it is LOST because there is no Python that it could run in."""

    @property
    def is_working(self) -> bool:
        """Whether a trace, a run, a fix, a scan or a script is going on (a quick inspection does not count)."""
        return self.verb not in {JobKind.NONE, JobKind.INSPECT, JobKind.ENVIRONMENT}


LOOKING_BACK = Problem(
    code=ErrorCode.USAGE,
    what="A past run is open, which nothing can change",
    remedy="Go back to the present model, or open the choices of the run as new ones",
)


COMPARING = Problem(
    code=ErrorCode.USAGE,
    what="The difference between A and B is shown, which nothing can change",
    remedy="Go back to the present model",
)


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of the current or last job."""

    phase: messages.Phase
    seconds: float | None
    """Spent in it until `since_s`; None if it has not begun."""
    usual_s: float | None = None
    """What it took the last time that this model had such a job."""
    since_s: float | None = None
    """If it is going on: since when, on the session's clock."""


class QueueState(StrEnum):
    """How far a run of the queue is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class QueuedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was asked for, with the choices of that moment."""

    id: int
    recipe: Recipe
    state: QueueState = QueueState.WAITING


class EdgeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Edges of the graph that are looked at."""

    edges: tuple[tuple[str, str], ...]
    """Ids of the ops at both ends, the producer first; at least one pair."""
    words: str
    """What they have in common, to follow their number: ``from int8-static to fp32``."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is selected, everywhere at once."""

    op_ids: tuple[str, ...] = ()
    """Ops of the captured graph, in the order of selection."""
    run: int | None = None
    """Index into `Document.runs`."""
    seam: int | None = None
    """Index into `CaptureReport.graph_breaks`: the break that is looked at. Its rows in the graph are in `op_ids`."""
    place: tuple[str, int] | None = None
    """A line of the user's code that is looked at for itself: path and 1-based line."""
    edges: EdgeChoice | None = None
    """Edges that stand out in the graph, whatever else is selected; None for none in particular."""
    closer: int = 0
    """Grows when the user asks to see the selection from close by."""


class CaptureFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job has no (whole) graph."""

    problems: tuple[Problem, ...]
    """At least one; the first is the headline."""
    job: str


class ShownRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of `Document` that a run replaces, as they were before it."""

    baseline: Baseline | None
    runs: tuple[TargetRun, ...]
    run_numbers: tuple[int, ...]
    result: Result | None
    output: str
    exported_to: str
    ran_with: Recipe | None


class DiskChange(msgspec.Struct, frozen=True, kw_only=True):
    """The recipe's file, changed by somebody else since it was opened or saved."""

    text: str
    """What is in the file now; empty if it cannot be read."""
    mine: str
    """What saving would put there."""
    problem: Problem | None = None
    """Why the file is no recipe any more; None if it is one."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the window shows."""

    recipe: Recipe = Recipe()
    recipe_path: str = ""
    """Absolute path of the recipe file; empty if it was never saved."""
    disk_change: DiskChange | None = None
    """What somebody else changed in that file, until the user decides; it is looked for when the user comes back."""
    folder: str = ""
    """Absolute folder that the recipe's paths are relative to."""
    is_dirty: bool = False
    """Whether choices differ from what was last opened or saved."""
    undo_label: str = ""
    """The step that undo would take back; empty if none."""
    redo_label: str = ""

    file: messages.FileReport | None = None
    is_trusted: bool = False
    """Whether the user trusts this file, by its hash."""
    needs_trust: bool = False
    """Whether opening the file would run code that is not trusted: the window shows the Trust bar."""

    has_changed_since_trust: bool = False
    """Whether the file was trusted with another content."""

    fingerprint: str = ""
    """Of model, recipe and environment at the capture."""
    graph: GraphTable | None = None
    capture: CaptureReport | None = None
    sources: dict[str, str] = {}
    """Path -> text of the user's files that ops point to."""
    refusals: tuple[messages.TargetRefusals, ...] = ()
    """What each target leaves at a float precision in `graph`."""
    rungs: tuple[CaptureAttempt, ...] = ()
    """Outcomes of the current or last trace, as they came in."""
    rung_at_work: str = ""
    """The capture method that is running; empty if none is."""
    captured_with: Recipe | None = None
    """The choices that `graph` was found with."""
    graph_job: str = ""
    """The job that found `graph`."""
    failure: CaptureFailure | None = None
    """Why the last trace or run ended without a whole graph; None if it did not. If its job is `graph_job`, `graph` is
    what was captured before that; otherwise `graph` is from an earlier job."""
    wanted_rows: tuple[dict[str, TensorSpec], ...] = ()
    """Rows that the examples lack for the data of the last run, which stopped for it."""
    steps: tuple[StepTime, ...] = ()
    """The phases of the current or last job, then those that are still expected."""
    queue: tuple[QueuedRun, ...] = ()
    """The run that goes on or ended last, those before it since something waited, and those that wait, in order."""
    warned: tuple[Warning, ...] = ()
    """Warnings of the current or last job, as they came."""
    wished: JobKind = JobKind.NONE
    """What was asked for while nothing was known of the file yet, or refused for want of trust: it starts once the file
    may run."""
    ended_by: Problem | None = None
    """Why the last job ended early; None if it did not."""
    fixes: tuple[FixReport, ...] = ()
    """Fixes that were tried, in the order in which they came."""
    caught: messages.InputsCaught | None = None
    """The calls of the script that was run last."""
    sensitivity: messages.SensitivityFound | None = None
    """The findings of the last scan so far; None if this model was not scanned."""
    pruning: PruningReport | None = None
    """The last preview of pruning."""
    values: OpValues | None = None
    """What was looked at last of an op of this graph."""

    baseline: Baseline | None = None
    runs: tuple[TargetRun, ...] = ()
    run_numbers: tuple[int, ...] = ()
    """The engine's number of each of `runs`, ascending; while a run goes on some may still be missing."""
    result: Result | None = None
    output: str = ""
    """Folder with the artifacts of `runs`."""
    exported_to: str = ""
    """Where an artifact of `runs` was saved last; empty if none was."""
    ran_with: Recipe | None = None
    """The choices that `runs` were found with."""
    earlier: ShownRuns | None = None
    """What the run that was started last has replaced; it is shown again if that run ends without a figure."""

    activity: Activity = Activity()
    selection: Selection = Selection()
    problems: tuple[Problem, ...] = ()
    """Newest last."""
    log: tuple[str, ...] = ()
    """Newest last; only the last lines are kept."""
    environment: messages.EnvironmentReport | None = None
    history: tuple[RunSummary, ...] | None = None
    """Past runs, newest first; None until they are loaded."""
    history_waits: bool = False
    """Whether another program holds the history, so that reads and new runs wait."""
    past: RunSummary | None = None
    """The past run that all panels show, read-only; None for the present choices and findings."""
    pins: tuple[Pin | None, Pin | None] = (None, None)
    """What was pinned as A, the reference, and as B."""
    comparison: PinnedPair | None = None
    """A beside B, which all panels show, read-only; None for the present choices and findings."""
    recent_files: tuple[str, ...] = ()
    """Newest first."""
    sweep: SweepState = SweepState()

    @property
    def was_cancelled(self) -> bool:
        """Whether the last job was cancelled."""
        return self.ended_by is not None and self.ended_by.code is ErrorCode.CANCELLED

    @property
    def is_result_earlier(self) -> bool:
        """Whether `result` is of a run before the last job, which ended early."""
        return self.ended_by is not None and self.result is not None

    @property
    def could_not_open(self) -> bool:
        """Whether nothing is known of the file, and nobody is looking at it any more: the newest problem says why."""
        return self.file is None and bool(self.problems) and self.activity.verb is not JobKind.INSPECT

    @property
    def is_looked_at(self) -> bool:
        """Whether a model was opened of whose file nothing is known yet."""
        is_open = bool(self.recipe.model.source) and self.file is None and self.read_only is None
        return is_open and (self.activity.verb is JobKind.INSPECT or self.activity.state is EngineState.CANCELLING)

    @property
    def saving_folder(self) -> str:
        """The folder to propose for what is saved: the model's, or the user's if the model is the shipped example."""
        return str(Path.home()) if is_shipped(self.folder) else self.folder

    @property
    def proposed_name(self) -> str:
        """The file name to propose for a recipe that has none; installers make ``*.ace.toml`` known to desktops."""
        return f"{PurePath(self.title).stem or 'recipe'}{RECIPE_SUFFIX}"

    @property
    def read_only(self) -> Problem | None:
        """Why nothing can be changed or run; None if it can."""
        return COMPARING if self.comparison is not None else LOOKING_BACK if self.past is not None else None

    @property
    def can_undo(self) -> bool:
        """Whether there is a choice to take back."""
        return bool(self.undo_label)

    @property
    def can_redo(self) -> bool:
        """Whether there is a choice to put back."""
        return bool(self.redo_label)

    @property
    def is_capture_stale(self) -> bool:
        """Whether choices that decide the graph changed since it was captured."""
        found = self.captured_with
        if found is None:
            return False
        now = self.recipe
        return (found.model, found.inputs, _decisive(found)) != (now.model, now.inputs, _decisive(now))

    @property
    def is_stale(self) -> bool:
        """Whether any choice changed since the runs (or, without runs, since the capture)."""
        return self.is_capture_stale if self.ran_with is None else self.ran_with != self.recipe

    @property
    def title(self) -> str:
        """Name of what is open: the recipe's file name, else the model's; empty if nothing is."""
        path = self.recipe_path or self.recipe.model.source
        return path.replace("\\", "/").rpartition("/")[2]


def _decisive(recipe: Recipe) -> CaptureChoice:
    """The capture options that affect the graph: not the cache, nor a comparison of capture methods."""
    return msgspec.structs.replace(recipe.capture, cache=True, compare_rungs=False)


_FIELDS = {
    Part.RECIPE: "recipe is_dirty undo_label redo_label",
    Part.FILE: "recipe_path disk_change folder file pins comparison past",
    Part.TRUST: "is_trusted needs_trust has_changed_since_trust",
    Part.GRAPH: "fingerprint graph capture sources refusals rungs rung_at_work captured_with graph_job failure"
    " wanted_rows",
    Part.RUNS: "sensitivity pruning values baseline runs run_numbers result output exported_to ran_with earlier",
    Part.FIXES: "fixes",
    Part.CAUGHT: "caught",
    Part.HISTORY: "history history_waits",
    Part.ACTIVITY: "activity steps queue wished ended_by",
    Part.SELECTION: "selection",
    Part.PROBLEMS: "problems warned",
    Part.LOG: "log",
    Part.SWEEP: "sweep",
    Part.ENVIRONMENT: "environment",
    Part.SETTINGS: "recent_files",
}
PART_OF_FIELD = {field: part for part, fields in _FIELDS.items() for field in fields.split()}
"""Every field of `Document` -> the part that its change belongs to."""


def changed_parts(before: Document, after: Document) -> frozenset[Part]:
    """The parts in which two documents differ. Records are compared by identity, so it takes microseconds."""
    return frozenset(
        part for field, part in PART_OF_FIELD.items() if _differ(getattr(before, field), getattr(after, field))
    )


def _differ(before: object, after: object) -> bool:
    return before is not after and not (isinstance(before, str) and before == after)
