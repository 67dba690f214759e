"""The steps of the search for a goal."""

import msgspec

from ace_studio.records.recipes.plan import PlanRule
from ace_studio.records.results.runs import RunStatus


class SearchStep(msgspec.Struct, frozen=True, kw_only=True):
    """One plan that the search for a goal evaluated, in the order of evaluation."""

    target: str
    low: str
    """Precision of the ops that have no rule."""
    high: str = ""
    """Precisions of those that have one, the most frequent first; empty if none has."""
    kept_high: int = 0
    """How many ops have a rule."""
    of: int = 0
    """How many ops had a choice."""
    rules: tuple[PlanRule, ...] = ()
    """The rules that the search added to the plan."""
    options: dict[str, str] = {}
    """Of the target, where it was built otherwise than usual; see `TargetRun.options`."""
    improved: tuple[str, ...] = ()
    """Methods that the search added by itself and that improved the weights; see `Improvement`."""
    predicted_db: float | None = None
    """Fidelity predicted from the sensitivity scan before the build."""
    predicted_ratio: float | None = None
    """Latency as a fraction of the baseline's, predicted before the build from the times of the ops in other builds."""
    metric: float | None = None
    metric_drop: float | None = None
    sqnr_db: float | None = None
    fidelity_db: float | None = None
    size_bytes: int | None = None
    """Of the saved artifact; only where the goal asks for the size."""
    latency_ratio: float | None = None
    """Latency as a fraction of the baseline's, from a few rounds in turn."""
    status: RunStatus = RunStatus.OK
    """How its candidate ended; dropped: it lost a race against one that meets the goal."""
    meets: bool = False
    """Whether it meets all of the goal."""
    misses: tuple[str, ...] = ()
    """What it misses, in words; or why it could not be built."""
    seconds: float = 0.0
    reused: bool = False
    """Whether an earlier job had evaluated it, one that differs in its goal at most."""
    run: int | None = None
    """Index into `Result.runs`, if it was built in this run."""

    @property
    def fidelity(self) -> float | None:
        """As `TargetRun.fidelity`."""
        return self.sqnr_db if self.fidelity_db is None else self.fidelity_db


class RegionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What one precision gives and costs in a region."""

    precision: str
    latency_share: float
    """Time of its ops as a share of the baseline's latency, by the runtime's own counters."""
    sqnr_db: float | None = None
    """Fidelity of the outputs if only this region has it; None if it is exact."""
    size_bytes: int = 0
    """Of its weights as stored."""


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """Ops of one target that take the same precision, because they read one value or run in one kernel."""

    target: str
    ops: tuple[str, ...]
    choices: tuple[RegionChoice, ...]
    """The most exact one last."""
    pays: bool = True
    """Whether a lower precision is worthwhile, with the conversions around it; known where speed was wanted."""


class FrontPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A mixture of precisions that none is predicted to beat, from the times and noises that the builds showed."""

    target: str
    low: str
    """Precision of most ops, as in a `SearchStep`; so are the next three."""
    high: str = ""
    kept_high: int = 0
    of: int = 0
    predicted_db: float | None = None
    """None where nothing is rounded."""
    predicted_ratio: float | None = None
    """Latency as a fraction of the baseline's."""
    predicted_bytes: int | None = None
    built: bool = False
    """Whether this very mixture was built; else all that is known of it is predicted."""
