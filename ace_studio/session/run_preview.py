"""What a run will do and cost, before it starts: its targets, its plan, its builds, and the time of earlier runs."""

from collections.abc import Iterable, Mapping

import msgspec

from ace_studio.records.messages import Phase, TargetReport
from ace_studio.session.document import Document

AUTO = "auto"
_PER_BUILD = frozenset({Phase.LOWER, Phase.MEASURE, Phase.EVALUATE, Phase.EXPORT})
"""Phases whose time grows with the number of builds."""
BUILDS = "builds"
"""Key of the number of builds among the seconds that are kept of a run."""
BYTES = "bytes"
"""Key of the bytes of the model's weights among them."""
_SAME_SIZE = 4.0
"""Models of up to so many times the bytes, or as many times fewer, say what a run of this one may take."""


class RunPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has not started."""

    targets: tuple[str, ...]
    """Those that would be built for; empty until the engine has said which there are."""
    is_searched: bool
    """Whether a search for the goal decides how many plans are built."""
    builds: int | None
    """None if nothing says how many."""
    seconds: float | None
    """By the last run of this model, corrected for the number of builds; None without one."""
    others_s: tuple[float, float] | None = None
    """The shortest and the longest run of other models, of about this size where there are some; None without any."""


def run_preview(
    document: Document, usual: Mapping[str, float], others: Iterable[Mapping[str, float]] = ()
) -> RunPreview:
    """What a run of the present choices will do.

    Args:
        document: The choices.
        usual: Seconds of each phase of the last run of this model, by its name, and what else is kept of a run.
        others: The same of other models.
    """
    recipe = document.recipe
    is_auto, precision = AUTO in recipe.targets.names, str(recipe.plan.default)
    # A target that was chosen by name is tried, whatever it says of the precision.
    targets = tuple(one.name for one in chosen_reports(document) if not (is_auto and one.precisions.get(precision)))
    is_searched = recipe.plan.from_goal and recipe.goal.has_bound
    before = int(usual.get(BUILDS, 0))
    builds = (before or None) if is_searched else len(targets) or None
    share = builds / before if builds and before else 1.0
    seconds = sum(usual.get(phase.name, 0.0) * (share if phase in _PER_BUILD else 1.0) for phase in Phase)
    known = [(sum(one.get(phase.name, 0.0) for phase in Phase), one.get(BYTES)) for one in others]
    return RunPreview(
        targets=targets, is_searched=is_searched, builds=builds, seconds=seconds or None,
        others_s=seconds_of_others(known, weight_bytes(document)),
    )  # fmt: skip


def weight_bytes(document: Document) -> int | None:
    """Bytes of the weights in the captured graph; None before that."""
    return None if document.graph is None else sum(document.graph.weight_bytes)


def seconds_of_others(known: Iterable[tuple[float, float | None]], size: float | None) -> tuple[float, float] | None:
    """The shortest and the longest run, of models of about this size where there are some; None without any.

    Args:
        known: Seconds of runs of other models, and the bytes of each model if they are known.
        size: Bytes of this model, if they are known.
    """
    runs = [one for one in known if one[0] > 0.0]
    near = [seconds for seconds, other in runs if size and other and 1 / _SAME_SIZE <= other / size <= _SAME_SIZE] or [
        seconds for seconds, _ in runs
    ]
    return (min(near), max(near)) if near else None


def chosen_reports(document: Document) -> list[TargetReport]:
    """Reports of the chosen targets that are available; empty until the engine has reported."""
    environment, names = document.environment, document.recipe.targets.names
    if environment is None:
        return []
    is_auto = AUTO in names
    return [one for one in environment.targets if one.available and (one.name in names or (is_auto and one.is_in_auto))]
