"""What each precision costs and gains at each decision group of a graph on a target, from builds that were measured.

The runtime itself says what time its kernels took in the build with all ops at a precision; an op that was fused counts
with the kernel that computes it. The noise comes from the sensitivity scan, corrected by what those builds really lost.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from networkx.utils import UnionFind

from ace_studio.engine.pipeline.compress.search.mixture import Border, Choice, DecisionGroup, Mixture
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Precision

UNKNOWN_NOISE = 1e-3
"""Of every op whose sensitivity is unknown; the builds correct it."""
_MOST_CORRECTION = 1e3
"""Factor by which a build may correct the noise that the scan predicts: 30 dB either way."""
_CONVERTED_BYTES = 1.25
"""Bytes that a conversion moves per byte of the fp32 value: 4 are read and 1 is written, or the reverse."""
_WEIGHT_SHARE = {
    Precision.FP32: 1.0, Precision.FP16: 0.5, Precision.BF16: 0.5, Precision.INT8_STATIC: 0.25,
    Precision.INT8_DYNAMIC: 0.25, Precision.INT8_WEIGHT: 0.25, Precision.INT4_WEIGHT: 0.15, Precision.FP8: 0.25,
}  # fmt: skip
"""Bytes of a stored weight per byte in fp32; at 4 bits with a scale per group of 32."""


_FIXED = -1
"""Owner of the ops that no choice has an influence on."""


@dataclass(frozen=True)
class PricedBuild:
    """All ops at one precision on a target, as measured."""

    precision: Precision
    assigned: Mapping[str, Precision]
    """Op id -> the precision that the target took for it."""
    ratio: float
    """Its latency as a share of the baseline's."""
    op_ms: Mapping[str, float] = field(default_factory=dict)
    """Op id -> time by the runtime's own counters, of ops that are computed in a kernel of their own."""
    homes: Mapping[str, str] = field(default_factory=dict)
    """Op id -> the op whose kernel computes it too."""
    noise: float | None = None
    """Noise power of its outputs relative to their signal, measured; None if unknown."""
    size_bytes: int | None = None
    """Of the saved artifact."""


def make_mixture(
    table: GraphTable,
    builds: Sequence[PricedBuild],
    noise: Mapping[Precision, Mapping[str, float]],
    *,
    seconds_per_byte: float,
    baseline_ms: float,
) -> Mixture:
    """The groups of a graph with a choice for every build.

    Args:
        table: The graph.
        builds: One per precision; the last is the one that ops can stay at (fp32 or 16 bits).
        noise: Precision -> op id -> noise power of the op alone, from the scan.
        seconds_per_byte: Time to move a byte, for the price of conversions.
        baseline_ms: What the shares of the time refer to; 0 if no build was timed, and conversions then cost nothing.
    """
    groups = _groups(table, builds, noise)
    owners = _owners(table, builds, groups)
    times = [_times(table, build, owners) for build in builds]
    weights = {table.op_id[row]: float(table.weight_bytes[row]) for row in table.op_rows()}
    made = [
        DecisionGroup(
            ops, _choices(ops, builds, times=[one.get(at, 0.0) for one in times], noise=noise, weights=weights)
        )
        for at, ops in enumerate(groups)
    ]
    exact = builds[-1]
    stored = sum(
        weights[op_id] * _WEIGHT_SHARE[exact.assigned.get(op_id, Precision.FP32)] for ops in groups for op_id in ops
    )
    fixed_bytes = max(0.0, (exact.size_bytes or stored) - stored)
    price = 1e3 * seconds_per_byte * _CONVERTED_BYTES / baseline_ms if baseline_ms else 0.0
    mixture = Mixture(tuple(made), tuple(_borders(table, owners, price)), times[-1].get(_FIXED, 0.0), fixed_bytes)
    return mixture.corrected(noise=_noise_factors(mixture, builds))


def _groups(
    table: GraphTable, builds: Sequence[PricedBuild], noise: Mapping[Precision, Mapping[str, float]]
) -> list[tuple[str, ...]]:
    """The ops that have a choice, those together that read one value or that a runtime computes in one kernel."""
    free = [table.op_id[row] for row in table.op_rows() if _has_choice(table, row, builds, noise)]
    together = UnionFind(free)
    readers: dict[tuple[int, str], list[str]] = defaultdict(list)
    known = set(free)
    for source, target in zip(table.edge_source, table.edge_target, strict=True):
        if table.op_id[target] in known and is_weighted(table.op[target]):
            readers[source, table.op[target]].append(table.op_id[target])
    for same in readers.values():
        together.union(*same)
    for build in builds:
        for op_id, home in build.homes.items():
            if op_id in known and home in known:
                together.union(op_id, home)
    order = {op_id: at for at, op_id in enumerate(free)}
    groups = [tuple(sorted(ops, key=order.__getitem__)) for ops in together.to_sets()]
    return sorted(groups, key=lambda ops: order[ops[0]])


def _has_choice(
    table: GraphTable, row: int, builds: Sequence[PricedBuild], noise: Mapping[Precision, Mapping[str, float]]
) -> bool:
    op_id, stays = table.op_id[row], builds[-1]
    for build in builds[:-1]:
        precision = build.assigned.get(op_id, Precision.FP32)
        is_lower = precision is build.precision and precision is not stays.assigned.get(op_id, Precision.FP32)
        if is_lower and (is_weighted(table.op[row]) or op_id in noise.get(precision, {})):
            return True
    return False


def _owners(table: GraphTable, builds: Sequence[PricedBuild], groups: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """Op id -> the group whose precision decides what time the op takes.

    An op without a choice goes with the op whose kernel computes it, else with what it reads first.
    """
    owners = {op_id: at for at, ops in enumerate(groups) for op_id in ops}
    homes: dict[str, str] = {}
    for build in builds:
        for op_id, home in build.homes.items():
            homes.setdefault(op_id, home)
    read: dict[int, list[int]] = defaultdict(list)
    for source, target in zip(table.edge_source, table.edge_target, strict=True):
        read[target].append(source)
    for row in table.op_rows():  # in execution order: what it reads has its owner already
        op_id = table.op_id[row]
        candidates = [homes.get(op_id, ""), *(table.op_id[source] for source in read[row])]
        if (
            op_id not in owners
            and (found := next((owners[one] for one in candidates if one in owners), None)) is not None
        ):
            owners[op_id] = found
    return owners


def _times(table: GraphTable, build: PricedBuild, owners: Mapping[str, int]) -> dict[int, float]:
    """Group -> time as a share of the baseline's latency; by the arithmetic of the ops where the runtime tells none."""
    costs: Mapping[str, float] = build.op_ms
    total = sum(costs.values())
    if total <= 0.0:
        costs = {table.op_id[row]: float(table.flops[row] + table.output_bytes[row] + 1) for row in table.op_rows()}
        total = sum(costs.values())
    times: dict[int, float] = defaultdict(float)
    for op_id, cost in costs.items():
        times[owners.get(op_id, _FIXED)] += cost / total * build.ratio
    return times


def _choices(
    ops: Sequence[str],
    builds: Sequence[PricedBuild],
    *,
    times: Sequence[float],
    noise: Mapping[Precision, Mapping[str, float]],
    weights: Mapping[str, float],
) -> tuple[Choice, ...]:
    choices = []
    for build, time in zip(builds, times, strict=True):
        if build is not builds[-1] and not any(build.assigned.get(op_id) is build.precision for op_id in ops):
            continue  # the target refuses it here: the same as staying
        own = noise.get(build.precision, {})
        choices.append(
            Choice(
                build.precision,
                0.0 if build.precision is Precision.FP32 else sum(own.get(op_id, UNKNOWN_NOISE) for op_id in ops),
                time,
                sum(weights.get(op_id, 0.0) for op_id in ops) * _WEIGHT_SHARE[build.precision],
            )
        )
    return tuple(choices)


def _borders(table: GraphTable, owners: Mapping[str, int], price: float) -> Iterable[Border]:
    """One per value and pair of groups that exchange it."""
    seen = set()
    for source, target in zip(table.edge_source, table.edge_target, strict=True):
        given, taken = owners.get(table.op_id[source]), owners.get(table.op_id[target])
        if given is None or taken is None or given == taken or (source, given, taken) in seen:
            continue
        seen.add((source, given, taken))
        yield Border(given, taken, price * table.output_bytes[source])


def _noise_factors(mixture: Mixture, builds: Sequence[PricedBuild]) -> dict[Precision, float]:
    """Precision -> measured noise over predicted noise of the build with all ops at it."""
    factors = {}
    for build in builds:
        predicted = mixture.of(mixture.uniform(build.precision)).noise
        if build.noise is not None and predicted > 0.0 and math.isfinite(predicted):
            factors[build.precision] = min(_MOST_CORRECTION, max(1.0 / _MOST_CORRECTION, build.noise / predicted))
    return factors
