"""How far a value is from its float value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ace_studio.engine.quantize.fidelity import decibels


@dataclass(frozen=True)
class OpError:
    """How far the value of one op is from its float value, over all elements and examples."""

    signal: float
    """Sum of the squares of the float value."""
    noise: float
    """Sum of the squares of the difference."""

    @property
    def sqnr_db(self) -> float:
        """Signal-to-noise ratio in [-200, 200] dB."""
        return decibels(self.signal, self.noise)


def add_energy(sums: list[float], wide: Tensor, rounded: Tensor) -> None:
    """Add the squares of the finite places of one value; where only the plan makes it infinite, so is the noise."""
    reference, other = wide.detach().double(), rounded.detach().double()
    finite = reference.isfinite()
    if not bool(finite.all()):
        reference, other = reference[finite], other[finite]
    sums[0] += float(reference.square().sum())
    noise = float((reference - other).square().sum())
    sums[1] += noise if math.isfinite(noise) else math.inf
