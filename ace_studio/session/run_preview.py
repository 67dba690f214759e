"""What a run will do and cost, before it starts: its targets, its plan, its builds, and the time of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ace_studio.records.messages import Phase, TargetReport
from ace_studio.session.document import Document

AUTO = "auto"
_PER_BUILD = frozenset({Phase.LOWER, Phase.MEASURE, Phase.EVALUATE, Phase.EXPORT})
"""Phases whose time grows with the number of builds."""
BUILDS = "builds"
"""Key of the number of builds among the seconds that are kept of a run."""


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


def run_preview(document: Document, usual: Mapping[str, float]) -> RunPreview:
    """What a run of the present choices will do. ``usual``: seconds of each phase of the last run, by its name."""
    recipe = document.recipe
    is_auto, precision = AUTO in recipe.targets.names, str(recipe.plan.default)
    # A target that was chosen by name is tried, whatever it says of the precision.
    targets = tuple(one.name for one in chosen_reports(document) if not (is_auto and one.precisions.get(precision)))
    is_searched = recipe.plan.from_goal and recipe.goal.has_bound
    before = int(usual.get(BUILDS, 0))
    builds = (before or None) if is_searched else len(targets) or None
    share = builds / before if builds and before else 1.0
    seconds = sum(usual.get(phase.name, 0.0) * (share if phase in _PER_BUILD else 1.0) for phase in Phase)
    return RunPreview(targets=targets, is_searched=is_searched, builds=builds, seconds=seconds or None)


def chosen_reports(document: Document) -> list[TargetReport]:
    """Reports of the chosen targets that are available; empty until the engine has reported."""
    environment, names = document.environment, document.recipe.targets.names
    if environment is None:
        return []
    is_auto = AUTO in names
    return [one for one in environment.targets if one.available and (one.name in names or (is_auto and one.is_in_auto))]
