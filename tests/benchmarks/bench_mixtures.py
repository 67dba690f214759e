"""Mixtures of precisions that the search finds, beside those made by hand from the sensitivity chart.

    python -m tests.benchmarks.bench_mixtures --out FOLDER [--only NAME ...] [--goal DB] [--processes 5]

Both sides want the same fidelity, above what all ops at int8 have. By hand means: all ops at int8-static, with improved
weights, but for the most sensitive ones, which are at bf16 (at fp32 where the processor has no bf16). As few as meet
the goal are, found by halving their number; or all ops, if that is faster. Fresh processes, one after the other, time
both artifacts in balanced order. FOLDER gets a JSON file per side and ``figures.json``; a side whose file is there
already, from a run that was ended, is not searched again. The exit status is 1 unless the search's plan is faster on
five of seven models, in no more builds in all.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ace_studio.engine.measure import Ratio
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from tests.benchmarks.children import run_child
from tests.benchmarks.figures import Figure, conclude, median_of
from tests.benchmarks.peers.fresh import time_freshly
from tests.benchmarks.peers.opening import Left, write_lineup
from tests.benchmarks.peers.pooling import pooled_ratio
from tests.benchmarks.peers.row import PeerRow, make_row

GOALS_DB = {
    "mobilenet_v2": 43.0, "resnet50": 30.0, "vit_small": 33.0, "convnext_tiny": 33.0, "unet": 47.0, "bert_base": 35.0,
    "wav2vec2_base": 30.0,
}  # fmt: skip
"""Above all ops at int8-static without improved weights, below all ops at bf16."""
TARGET = "openvino"
IMPROVE = ("equalize", "smoothquant", "compensate")
FASTER_SHARE = 5 / 7
SIDES = ("ours", "hand")
LIMIT_S = 3600.0
ROUNDS = 30


def fewest(count: int, is_accurate: Callable[[int], bool]) -> int:
    """The least number of high ops that is accurate, by halving; ``count`` if none below it is known to be."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_accurate(middle) else (middle, high)
    return high


def by_search(row: PeerRow, folder: Path, goal_db: float) -> dict[str, Any]:
    """What `ace_studio.compile` finds for the goal."""
    import ace_studio

    report = ace_studio.compile(
        row.module,
        tracing_inputs=list(row.held_out),
        calibration_inputs=list(row.calibration),
        min_sqnr_db=goal_db,
        target=TARGET,
        profile=False,
        out=folder / "search",
    ).report
    if report.chosen is None or not report.goal_met:
        raise SystemExit("the search found nothing that meets the goal")
    chosen = report.runs[report.chosen]
    return {
        "artifact": str(folder / "search" / (chosen.artifact or "")),
        "sqnr_db": chosen.sqnr_db,
        "builds": len(report.search),
    }


def by_hand(row: PeerRow, folder: Path, goal_db: float) -> dict[str, Any]:
    """The fastest of the mixtures that keep the most sensitive ops high, and of all ops high."""
    import ace_studio

    high = Precision.FP32 if TARGETS[TARGET].precision_problem(Precision.BF16) else Precision.BF16
    built: list[dict[str, Any]] = []

    def build(default: Precision, ops: Sequence[str] = (), **more: Any) -> Any:
        place = folder / f"hand{len(built)}"
        report = ace_studio.compile(
            row.module,
            tracing_inputs=list(row.held_out),
            calibration_inputs=list(row.calibration),
            default=str(default),
            rules=[(f"id:{op_id}", str(high)) for op_id in ops],
            target=TARGET,
            profile=False,
            out=place,
            **more,
        ).report
        run = report.runs[0]
        artifact = str(place / (run.artifact or ""))
        built.append({"artifact": artifact, "sqnr_db": run.sqnr_db or 0.0, "speedup": run.speedup or 0.0})
        return report

    chart = build(Precision.INT8_STATIC, sensitivity={"scan": "on"}, improve=IMPROVE).sensitivity
    noisy = sorted((one.sqnr_db, one.id) for one in chart if one.precision == Precision.INT8_STATIC)
    ranked = [op_id for _, op_id in noisy]
    build(high)

    def is_accurate(count: int) -> bool:
        if count:
            build(Precision.INT8_STATIC, ranked[:count], improve=IMPROVE)
        return bool(built[-1 if count else 0]["sqnr_db"] >= goal_db)

    fewest(len(ranked), is_accurate)
    meeting = [one for one in built if one["sqnr_db"] >= goal_db]
    if not meeting:
        raise SystemExit("not even all ops high meet the goal")
    return max(meeting, key=lambda one: one["speedup"]) | {"builds": len(built)}


@dataclass(frozen=True)
class Pair:
    """Both sides of a model."""

    name: str
    ratio: Ratio
    """Time by hand over ours."""
    builds: tuple[int, int]
    """Ours, by hand."""


def time_pair(name: str, folder: Path, processes: int) -> Pair:
    """Time both artifacts. Raises: RuntimeError if one of them could not be timed."""
    sides = {side: json.loads((folder / f"{side}.json").read_text()) for side in SIDES}
    call = tuple(make_row(name, None).held_out[0])
    lefts = {side: Left(kind=TARGET, path=found["artifact"]) for side, found in sides.items()}
    write_lineup(folder, lefts, first=call, timed=call)
    times = time_freshly(folder, processes=processes, rounds=ROUNDS)
    if times.errors:
        raise RuntimeError(f"not timed: {times.errors}")
    ratio = pooled_ratio(times.samples["hand"], times.samples["ours"])
    return Pair(name, ratio, (sides["ours"]["builds"], sides["hand"]["builds"]))


def figures_of(pairs: Sequence[Pair], failed: Sequence[str] = ()) -> list[Figure]:
    """On how many models the search's plan is faster, in how many builds, and each ratio."""
    faster = [one.name for one in pairs if one.ratio.low > 1.0]
    total, peer = len(pairs) + len(failed), "the most sensitive ops kept at bf16"
    left = [one.name for one in pairs if one.name not in faster] + list(failed)
    words = f"{len(faster)} of {total} mixtures of precisions that the search finds are faster than those made by hand "
    words += f"({peer}), at the same fidelity" + f"; not: {', '.join(left)}" * bool(left)
    ours, by_hand_ = (sum(one.builds[side] for one in pairs) for side in (0, 1))
    builds = f"the search builds {ours} plans to find these mixtures; by hand it takes {by_hand_}"
    each = "the search's mixture of {} runs {:.3g} times as fast as the one made by hand"
    is_lost = len(faster) < FASTER_SHARE * total
    return [
        Figure(id="mixtures.faster", what=words, value=len(faster), unit=f"of {total}", peer=peer, lost=is_lost),
        Figure(
            id="mixtures.builds", what=builds, value=ours, peer=peer, peer_value=by_hand_, lost=ours > by_hand_
        ),
        *(
            median_of(f"mixtures.{one.name}", each.format(one.name, one.ratio.median), one.ratio, peer=peer)
            for one in pairs
        ),
    ]  # fmt: skip


def main() -> int:
    """Find both mixtures of every model, time them, and say whether the claims hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=list(GOALS_DB), help="models of bench_peers")
    parser.add_argument("--goal", type=float, help="fidelity in dB, of models that have none here")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    out: Path = arguments.out.absolute()
    if arguments.side:
        (name,) = arguments.only
        find = by_search if arguments.side == "ours" else by_hand
        found = find(make_row(name, None), out, arguments.goal or GOALS_DB[name])
        (out / f"{arguments.side}.json").write_text(json.dumps(found, indent=1))
        return 0
    pairs, failed = [], []
    for name in arguments.only:
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        goal = ["--goal", str(arguments.goal)] if arguments.goal else []
        endings = [
            run_child(
                "tests.benchmarks.bench_mixtures",
                ["--out", str(folder), "--only", name, "--side", side, *goal],
                log=folder / f"{side}.log",
                limit_s=LIMIT_S,
            )
            for side in SIDES
            if not (folder / f"{side}.json").exists()
        ]
        if any(endings):
            failed.append(name)
            print(f"{name}: {' / '.join(endings)}", flush=True)
            continue
        pairs.append(time_pair(name, folder, arguments.processes))
        print(pairs[-1], flush=True)
    return conclude(out, figures_of(pairs, failed))


if __name__ == "__main__":
    sys.exit(main())
