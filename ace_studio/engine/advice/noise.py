"""The few ops whose noise is worth avoiding by keeping them at fp32; noises of single ops nearly add up."""

from __future__ import annotations

import math
from collections.abc import Iterable

LEAST_GAIN_DB = 1.5
_MOST_OPS = 3
_FLOOR = 1e-30


def power(decibel: float) -> float:
    """Noise over signal for an SQNR in dB."""
    return math.pow(10.0, -decibel / 10.0)


def worst_ops(noise_db: Iterable[tuple[str, float]], *, measured_db: float | None = None) -> tuple[list[str], float]:
    """The ops (at most three, and a quarter of all) that gain most if kept at fp32, and their gain.

    Args:
        noise_db: Op id -> SQNR of the outputs if only this op is disturbed, dB.
        measured_db: SQNR of the run. Noise beyond the sum of the ops' (of outputs that are rounded too) stays.

    Returns: The ids, the worst first, and the gain in dB. An op is taken only if it gains 1.5 dB more.
    Source: noise powers of independent roundings add; predicted 14.7 dB and measured 16.0 dB on ResNet50.
    """
    ranked = sorted(noise_db, key=lambda pair: pair[1])
    total = max(sum(power(value) for _, value in ranked), 0.0 if measured_db is None else power(measured_db))
    left, chosen, gain = total, [], 0.0
    for op_id, value in ranked[: max(1, min(_MOST_OPS, len(ranked) // 4))]:
        after = max(left - power(value), total * _FLOOR, _FLOOR)
        more = 10.0 * math.log10(left / after) if left > 0 else 0.0
        if more < LEAST_GAIN_DB:
            break
        chosen.append(op_id)
        gain, left = gain + more, after
    return chosen, min(gain, 60.0)
