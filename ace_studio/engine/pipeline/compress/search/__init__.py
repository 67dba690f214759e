"""The search for a goal: which ops stay at a high precision, found by building and measuring few candidates."""

from __future__ import annotations

from ace_studio.engine.pipeline.compress.search.bisection import Point, fewest_high, most_high
from ace_studio.engine.pipeline.compress.search.ranking import RankedOp, SensitivityRanking

__all__ = ["Point", "RankedOp", "SensitivityRanking", "fewest_high", "most_high"]
