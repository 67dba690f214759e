"""How far a value is from its float value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB


@dataclass(frozen=True)
class OpError:
    """How far the value of one op is from its float value, over all elements and examples."""

    signal: float
    """Sum of the squares of the float value."""
    noise: float
    """Sum of the squares of the difference."""

    @property
    def sqnr_db(self) -> float:
        """``10 log10(signal / noise)`` in [-200, 200]; 200 where there is no noise."""
        if self.noise == 0.0:
            return SQNR_CAP_DB
        if self.signal == 0.0 or not math.isfinite(self.noise):
            return -SQNR_CAP_DB
        return max(-SQNR_CAP_DB, min(SQNR_CAP_DB, 10.0 * math.log10(self.signal / self.noise)))


def add_energy(sums: list[float], wide: Tensor, rounded: Tensor) -> None:
    """Add the squares of the finite places of one value; where only the plan makes it infinite, so is the noise."""
    reference, other = wide.detach().double(), rounded.detach().double()
    finite = reference.isfinite()
    if not bool(finite.all()):
        reference, other = reference[finite], other[finite]
    sums[0] += float(reference.square().sum())
    noise = float((reference - other).square().sum())
    sums[1] += noise if math.isfinite(noise) else math.inf
