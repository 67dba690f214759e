"""What the comparison finds on one model, and the verdict that follows from the times of the fresh processes."""

import msgspec

from tests.benchmarks.peers.fresh import FreshTimes
from tests.benchmarks.peers.pooling import cpu_share, pooled_ratio, typical_ms

OURS = "ACE Studio auto"
EAGER = "eager"


class ToolFound(msgspec.Struct, kw_only=True):
    """One tool on one model."""

    name: str
    ms: float | None = None
    """Median over processes of each one's median."""
    speedup: float | None = None
    """Over eager, pooled from the rounds' ratios."""
    sqnr_db: float | None = None
    metric: float | None = None
    what: str = ""
    """For ours: what was chosen."""
    error: str = ""


class PeerFound(msgspec.Struct, kw_only=True):
    """One model with every tool."""

    name: str
    tools: list[ToolFound] = []
    fastest_peer: str = ""
    """The one that ours looks worst beside."""
    ratio: float | None = None
    """Time of the fastest peer over ours: above 1 ours is faster."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    ratio_per_process: list[float] = []
    is_as_faithful: bool = False
    cpu_share: float | None = None
    """Part of the time in which the timing had its core; clearly below 1, other work was running."""
    error: str = ""

    @property
    def is_as_fast(self) -> bool:
        """Not slower than the fastest peer beyond the noise."""
        return self.ratio_high is not None and self.ratio_high >= 1.0

    @property
    def is_faster(self) -> bool:
        """Faster than the fastest peer beyond the noise."""
        return self.ratio_low is not None and self.ratio_low > 1.0

    def tool(self, name: str) -> ToolFound:
        """The tool of that name."""
        return next(one for one in self.tools if one.name == name)


def fastest(times: FreshTimes) -> str:
    """The peer that takes the least time."""
    return min(_peers(times), key=lambda name: typical_ms(times.samples[name]))


def give_verdict(found: PeerFound, times: FreshTimes) -> None:
    """Write into ``found`` what the times say of every tool, and of ours beside the fastest peer.

    Raises: RuntimeError if ours could not be timed.
    """
    if OURS not in times.samples:
        raise RuntimeError(f"{OURS} could not be timed: {times.errors.get(OURS)}")
    for name, words in times.errors.items():
        found.tool(name).error = words
    for name, samples in times.samples.items():
        tool = found.tool(name)
        tool.ms = typical_ms(samples)
        tool.speedup = pooled_ratio(times.samples[EAGER], samples).median
    ours = times.samples[OURS]
    ratios = {name: pooled_ratio(times.samples[name], ours) for name in _peers(times)}
    found.fastest_peer = min(ratios, key=lambda name: ratios[name].median)
    ratio = ratios[found.fastest_peer]
    found.ratio, found.ratio_low, found.ratio_high = ratio.median, ratio.low, ratio.high
    found.ratio_per_process = [round(one, 3) for one in ratio.per_process]
    found.is_as_faithful = is_as_faithful(found.tool(OURS), found.tool(found.fastest_peer))
    found.cpu_share = round(cpu_share([one for samples in times.samples.values() for one in samples]), 3)


def _peers(times: FreshTimes) -> list[str]:
    return [name for name in times.samples if name not in {EAGER, OURS}]


def is_as_faithful(ours: ToolFound, peer: ToolFound) -> bool:
    """By the metric where both have one, else by the SQNR."""
    if ours.metric is not None and peer.metric is not None:
        return ours.metric >= peer.metric
    return (ours.sqnr_db or 0.0) >= (peer.sqnr_db or 0.0)
