"""How many of the most sensitive ops must stay high: few evaluations, each of which a real candidate is built for."""

from __future__ import annotations

from ace_studio.engine.search.bisection import Point, fewest_high, most_high
from ace_studio.engine.search.ladder import Ladder, Rung

__all__ = ["Ladder", "Point", "Rung", "fewest_high", "most_high"]
