"""Rules that reduce latency or size: targets, precisions, smaller weights, pruning, threads, graph breaks."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from ace_studio.engine.advice.facts import PRECISION_ORDER, Facts
from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import (
    BATCH_NORMS,
    CONVOLUTIONS,
    MATRIX_PRODUCTS,
    SUMS,
    TRANSPOSED_CONVOLUTIONS,
    operator_name,
)
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import FinetuneMethod, Objective, PruneMethod
from ace_studio.records.results import Bound
from ace_studio.records.results.words import ratio_words
from ace_studio.records.targets import TARGET_ROWS

WORTH = 1.15
"""A card promises at least this factor of latency or size."""
PRUNED_CHANNELS = 0.3
ARITHMETIC_TO_TIME = 0.85
"""Part of the arithmetic saved by structured pruning that shows in the time. Measured 0.85 to 0.9 on ResNet50:
4.09 to 1.92 GMAC at 30 % of the channels is 1.82 times as fast in eager, 1.91 in OpenVINO."""
BYTES_PER_WEIGHT = {"int8-weight": 1.0, "int4-weight": 0.5 + 2 / 32}
"""Stored bytes of a weight; int4 in groups of 32 with a 16-bit scale."""

CACHED_BYTES = 2_000_000
"""Weights that fit into the caches of one core cost no waiting, so fewer bits gain nothing."""
_PLAIN = CONVOLUTIONS - TRANSPOSED_CONVOLUTIONS
"""Without transposed ones: a transposed and a plain convolution cannot become one."""


def use_another_target(facts: Facts) -> Advice | None:
    """A runtime that is usually faster was not tried: it is not installed, or the recipe does not name it."""
    best, gain = None, WORTH
    for one in facts.fitting_targets:
        was_tried = any(run.target == one.name for run in facts.result.runs)
        expected = expected_gain(facts, one.name, facts.run.precision)
        if not was_tried and expected > gain:
            best, gain = one, expected
    if best is None or (not best.available and not best.install):
        return None
    missing = "is not installed" if not best.available else "is not among the recipe's targets"
    kind = "convolutional networks" if facts.is_convolutional else "networks of matrix products"
    return Advice(
        kind=f"target-{best.name}",
        title=f"Try {best.label}",
        why=f"It {missing}. {facts.run.target} is {facts.run.speedup or 0.0:.2f} times as fast as the original; "
        f"{best.label} is usually {gain:.1f} times as fast as that on {kind} at {facts.run.precision}.",
        estimate=f"about {gain:.1f} times as fast as now, judged by other networks",
        quantity=AdviceQuantity.LATENCY,
        estimated_gain=round(gain, 2),
        change={"targets": {"names": ["auto"]}},
        do_first="" if best.available else f"Install it: {best.install}",
    )


def expected_gain(facts: Facts, target: str, precision: str) -> float:
    """How much faster than the chosen run another one may be; 0 where nothing is known.

    A model that gains less than usual in the chosen run, such as one of tiny layers, is expected to gain less in the
    other run too. So typical speed-ups are compared with each other, unless this run exceeds its typical one.
    """

    def typical(name: str, at: str) -> float:
        return TARGET_ROWS[name].typical_speedup(at, is_convolutional=facts.is_convolutional) or 0.0

    reached = max(facts.run.speedup or 0.0, typical(facts.run.target, facts.run.precision))
    return typical(target, precision) / reached if facts.run.speedup else 0.0


def lower_the_precision(facts: Facts) -> Advice | None:
    """A usually faster precision was not tried, and accuracy can be traded (or it is bf16, which costs little)."""
    best, gain, target = None, WORTH, ""
    for precision in PRECISION_ORDER:
        is_left_out = precision.needs_calibration and any(one.code == "no-data" for one in facts.result.warnings)
        if str(precision) in facts.tried or is_left_out or (not facts.has_slack and precision is not Precision.BF16):
            continue
        for name in facts.can(precision):
            expected = expected_gain(facts, name, precision)
            if expected > gain:
                best, gain, target = precision, expected, name
    if best is None:
        return None
    return Advice(
        kind=f"precision-{best}",
        title=f"Try {best}",
        why=f"Only {', '.join(sorted(facts.tried))} was measured ({ratio_words(facts.run, 'speedup') or 'no speed'}); "
        f"{target} can do {best} here{_slack_words(facts)}.",
        estimate=f"about {gain:.1f} times as fast as now, judged by other networks",
        quantity=AdviceQuantity.LATENCY,
        estimated_gain=round(gain, 2),
        change={"plan": {"default": str(best)}},
    )


def go_back_to_fp32(facts: Facts) -> Advice | None:
    """The plan of the recipe is clearly slower than fp32 in the same runtime, and only speed counts."""
    run = facts.run
    speed, high = run.float_speedup, run.float_speedup_high
    if speed is None or high is None or high >= 1.0 or run.speed_undecided:
        return None
    if run.is_exact or facts.wants_smaller or facts.recipe.plan.from_goal:
        return None
    gain = 1.0 / speed
    return Advice(
        kind="precision-fp32",
        title="Go back to fp32",
        why=f"fp32 in {run.target} was measured beside {run.built_words}: that runs at {speed:.2f} times "
        "its speed and is less exact.",
        estimate=f"{gain:.2f} times as fast as now, measured in this job; the file becomes larger",
        quantity=AdviceQuantity.LATENCY,
        estimated_gain=round(gain, 2),
        change={"plan": {"default": str(Precision.FP32), "rest": str(Precision.FP32), "rules": []}},
    )


def _slack_words(facts: Facts) -> str:
    goal, run = facts.recipe.goal, facts.run
    if goal.max_drop is not None and run.metric_drop is not None:
        return f", and of the drop of {goal.max_drop:.2%} that is allowed only {max(0.0, run.metric_drop):.2%} is used"
    if goal.min_sqnr_db is not None and run.fidelity is not None:
        return f", and the {run.fidelity:.1f} dB are {run.fidelity - goal.min_sqnr_db:.1f} above the goal"
    return ""


def move_fewer_bytes(facts: Facts) -> Advice | None:
    """Most time goes into reading weights of linear layers: store them with fewer bits."""
    run, precision = facts.run, Precision.INT8_WEIGHT
    waiting = [op for op in run.ops if op.bound is Bound.MEMORY and operator_name(op.op) in MATRIX_PRODUCTS]
    share = sum(op.share or 0.0 for op in waiting)
    if sum(op.bytes or 0 for op in waiting) < CACHED_BYTES:
        return None
    if share < 0.3 or not facts.has_slack or run.precision in BYTES_PER_WEIGHT:
        return None
    if facts.can(Precision.INT4_WEIGHT) and not facts.misses_accuracy and run.precision != Precision.FP32:
        precision = Precision.INT4_WEIGHT
    ratio = BYTES_PER_WEIGHT[precision] / facts.bytes_per_weight
    gain = 1 / (1 - share * (1 - ratio)) if ratio < 1 else 0.0
    if gain < WORTH or str(precision) in facts.tried or not facts.can(precision):
        return None
    return Advice(
        kind="weight-only",
        title=f"Store weights at {precision}",
        why=f"{share:.0%} of the time of {run.target} goes into linear layers that wait for their weights from memory.",
        estimate=f"about {gain:.1f} times as fast if those layers are limited by memory alone",
        quantity=AdviceQuantity.LATENCY,
        estimated_gain=round(gain, 2),
        change={"plan": {"default": str(precision)}},
    )


def store_smaller_weights(facts: Facts) -> Advice | None:
    """Accuracy can be traded and most bytes are weights of linear layers: int4 is the smallest."""
    run = facts.run
    if not facts.wants_smaller or not facts.has_slack or str(Precision.INT4_WEIGHT) in facts.tried:
        return None
    share, ratio = facts.matrix_weight_share, BYTES_PER_WEIGHT["int4-weight"] / facts.bytes_per_weight
    gain = 1 / (1 - share * (1 - ratio))
    if gain < WORTH or not facts.can(Precision.INT4_WEIGHT) or not run.size_bytes:
        return None
    return Advice(
        kind="int4-weights",
        title="Store weights at int4",
        why=f"The artifact has {run.size_bytes / 1e6:.1f} MB, and linear layers read {share:.0%} of the weights"
        + _slack_words(facts)
        + ".",
        estimate=f"about {run.size_bytes / gain / 1e6:.1f} MB, for some fidelity",
        quantity=AdviceQuantity.SIZE,
        estimated_gain=round(gain, 2),
        change={"plan": {"default": str(Precision.INT4_WEIGHT)}},
    )


def take_channels_away(facts: Facts) -> Advice | None:
    """Most arithmetic is in layers whose channels can be pruned, and nothing was pruned yet."""
    recipe, share = facts.recipe, facts.layer_flops_share
    is_small = sum(facts.table.flops) < 10_000_000  # narrow nets have few channels to give
    can = recipe.prune.method is PruneMethod.NONE and facts.has_slack and not facts.is_onnx_file
    if not can or share < 0.8 or is_small:
        return None
    gone = 1 - (1 - PRUNED_CHANNELS) ** 2
    faster, smaller = 1 / (1 - share * gone * ARITHMETIC_TO_TIME), 1 / (1 - facts.layer_weight_share * gone)
    training = {"method": str(FinetuneMethod.DISTILL), "epochs": 10, "learning_rate": 0.001}
    needs = [] if facts.has_pruning_library else ["Install it: pip install 'ace-studio[prune]'"]
    needs += (
        []
        if facts.has_training_data
        else ["Name some hundred real inputs in [calibration] inputs, to train with afterwards"]
    )
    return Advice(
        kind="prune-channels",
        title=f"Prune {PRUNED_CHANNELS:.0%} of the channels and train a little",
        why=f"{share:.0%} of {sum(facts.table.flops) / 1e9:.2f} GFLOP are in layers with channels; none was pruned.",
        estimate=f"about {faster:.1f} times as fast and a file {smaller:.1f} times smaller; what it costs in accuracy "
        "depends on the training data, so look at the preview first",
        quantity=AdviceQuantity.SIZE if facts.wants_smaller else AdviceQuantity.LATENCY,
        estimated_gain=round(smaller if facts.wants_smaller else faster, 2),
        change={"prune": {"method": str(PruneMethod.STRUCTURED), "amount": PRUNED_CHANNELS}, "finetune": training},
        do_first="; ".join(needs),
    )


WORTH_SHARING_MS = 1.0
"""Shorter calls gain little: threads wait for each other at the end of every op, some 10 us each time."""


def use_more_threads(facts: Facts) -> Advice | None:
    """One thread was measured, the machine has more cores, and a call is long enough to split."""
    threads, latency = facts.recipe.measure.threads, facts.run.latency_ms
    if isinstance(threads, str) or facts.cores <= threads or facts.objective is not Objective.LATENCY:
        return None
    if latency is None or latency.p50 < WORTH_SHARING_MS or facts.misses_accuracy or facts.misses_size:
        return None
    gain = (min(facts.cores, 8) / threads) ** 0.7
    if gain < WORTH or facts.recipe.measure.device not in ("auto", "cpu"):
        return None
    shown = "1 thread" if threads == 1 else f"{threads} threads"
    return Advice(
        kind="threads",
        title="Use all cores",
        why=f"Latency was measured with {shown}; there are {facts.cores} cores.",
        estimate=f"about {gain:.1f} times as fast by the clock, if nothing else needs the cores",
        quantity=AdviceQuantity.LATENCY,
        estimated_gain=round(gain, 2),
        change={"measure": {"threads": "all"}},
    )


def merge_the_branches(facts: Facts) -> Advice | None:
    """Much of the time goes into parallel branches that could be one convolution, with the same outputs."""
    share = {op.id: op.share or 0.0 for op in facts.run.ops}
    groups = [[share.get(op_id, 0.0) for op_id in ops] for ops in parallel_branches(facts.table)]
    saved = sum(sum(shares) - max(shares) for shares in groups)
    gain = 1 / (1 - min(saved, 0.9))
    if gain < WORTH:
        return None
    return Advice(
        kind="merge-branches",
        title=f"Merge the branches of {len(groups)} blocks",
        why="In each of them convolutions and norms read one value and are added, as in models that are merged after "
        f"training (RepVGG, MobileOne). {saved:.0%} of the time of {facts.run.target} goes into what one convolution "
        "per block would do as well.",
        estimate=f"about {gain:.1f} times as fast, with the same outputs",
        quantity=AdviceQuantity.LATENCY,
        estimated_gain=round(gain, 2),
        do_first="Merge them in the function that makes the model. Many models have a method for it: reparameterize(), "
        "switch_to_deploy() or fuse(); for those of timm call timm.utils.reparameterize_model(model).",
    )


def parallel_branches(table: GraphTable) -> list[tuple[str, ...]]:
    """Op ids of the convolutions, norms and sums that one convolution could replace, a tuple for each of these.

    They begin at one value and are added. In inference all are linear, so that the sum is a convolution too.

    Source: Ding et al. 2021, arXiv:2101.03697, section 3.3.
    """
    return list(_Branches(table).groups())


class _Branches:
    def __init__(self, table: GraphTable) -> None:
        self._table = table
        self._kind = [operator_name(op) for op in table.op]
        self._read: dict[int, list[int]] = defaultdict(list)
        for source, target in zip(table.edge_source, table.edge_target, strict=True):
            self._read[target].append(source)
        self._readers = Counter(table.edge_source)

    def groups(self) -> Iterator[tuple[str, ...]]:
        inner: set[int] = set()
        for root in reversed(range(len(self._kind))):  # a sum before the sums that it reads
            if self._kind[root] not in SUMS or root in inner:
                continue
            sums, leaves = self._summed(root)
            inner.update(sums)
            by_source: dict[int, list[list[int]]] = defaultdict(list)
            for leaf in leaves:
                source, rows = self._branch(leaf)
                by_source[source].append(rows)
            for branches in by_source.values():
                rows = [row for branch in branches for row in branch]
                has_convolution = any(self._kind[row] in _PLAIN for row in rows)
                if has_convolution and sum(map(bool, branches)) > 1:
                    saved_sums = sums[: len(branches) - 1]
                    yield tuple(self._table.op_id[row] for row in sorted((*rows, *saved_sums)))

    def _summed(self, root: int) -> tuple[list[int], list[int]]:
        """The sums that make one of more than two values, and these values."""
        sums, leaves = [root], list[int]()
        for one in sums:
            for row in self._read[one]:
                is_part = self._kind[row] in SUMS and self._readers[row] == 1
                (sums if is_part else leaves).append(row)
        return sums, leaves

    def _branch(self, leaf: int) -> tuple[int, list[int]]:
        """The value that a branch reads, and its ops; none for the value itself."""
        rows: list[int] = []
        for kinds in (BATCH_NORMS, _PLAIN):
            if self._kind[leaf] in kinds and self._readers[leaf] == 1 and len(self._read[leaf]) == 1:
                rows.append(leaf)
                leaf = self._read[leaf][0]
        return leaf, rows


def mend_the_break(facts: Facts) -> Advice | None:
    """A graph break leaves ops eager."""
    capture = facts.result.capture
    if capture is None or not capture.ops_left_eager or not capture.graph_breaks:
        return None
    worst = max(capture.graph_breaks, key=lambda one: one.ops_left_eager * one.count)
    total = capture.ops + capture.ops_left_eager
    return Advice(
        kind="mend-break",
        title=f"Fix the graph break at {Path(worst.file).name}:{worst.line}",
        why=f"{capture.ops_left_eager} of {total} ops run eagerly between {len(capture.pieces)} subgraphs; this break "
        f"is the most costly one: {worst.reason}.",
        estimate="no number: a whole graph can be compressed and fused throughout",
        quantity=AdviceQuantity.LATENCY,
        do_first="Run `ace-studio fix RECIPE`: it tries fixes for this place in a copy and shows those that work.",
    )


SPEED_RULES: tuple[Callable[[Facts], Advice | None], ...] = (
    use_another_target,
    lower_the_precision,
    go_back_to_fp32,
    move_fewer_bytes,
    store_smaller_weights,
    take_channels_away,
    use_more_threads,
    merge_the_branches,
    mend_the_break,
)
