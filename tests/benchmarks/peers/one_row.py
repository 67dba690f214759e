"""Measure one row in this process: every peer and ours, at the same inputs, in the same rounds.

python -m tests.benchmarks.peers.one_row NAME --out FILE [--models FOLDER] [--rounds 30] [--peers NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import ace_studio
from ace_studio.engine import measure
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from tests.benchmarks.peers.row import PeerRow, make_row
from tests.benchmarks.peers.tools import PEERS, Run, eager, peers_of

OURS = "ACE Studio auto"
MOST_GOALS = 3
"""Peers of about one speed change places from one timing to the next: then ours gets the other one's goal too."""
EAGER = "eager"


class ToolFound(msgspec.Struct, kw_only=True):
    """One tool on one model."""

    name: str
    ms: float | None = None
    speedup: float | None = None
    """Over eager, median of the rounds' ratios."""
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
    ratio: float | None = None
    """Time of the fastest peer over ours: above 1 ours is faster."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    is_as_faithful: bool = False
    error: str = ""

    @property
    def is_as_fast(self) -> bool:
        """Not slower than the fastest peer beyond the noise."""
        return self.ratio_high is not None and self.ratio_high >= 1.0

    @property
    def is_faster(self) -> bool:
        """Faster than the fastest peer beyond the noise."""
        return self.ratio_low is not None and self.ratio_low > 1.0


def judge(row: PeerRow, run: Run, found: ToolFound) -> None:
    """Fidelity to eager on inputs that nothing was calibrated with, and the metric if the row has one."""
    plain = eager(row.module)
    wanted = [plain(*call) for call in row.held_out]
    given = [run(*call) for call in row.held_out]
    pooled = [
        [torch.cat([one.float().flatten() for one in leaves]) for leaves in zip(*side, strict=True)]
        for side in (wanted, given)
    ]
    found.sqnr_db = round(sqnr_db(*pooled), 2)
    if row.score is not None:
        found.metric = row.score(_as_predict(row, run))


def _as_predict(row: PeerRow, run: Run) -> Callable[..., Any]:
    with torch.no_grad():
        _, nesting = pytree.tree_flatten(row.module(*row.held_out[0]))

    def predict(*tensors: Tensor) -> Any:
        return pytree.tree_unflatten([one.clone() for one in run(*tensors)], nesting)

    return predict


def times_of(row: PeerRow, runs: dict[str, Run], *, rounds: int) -> dict[str, measure.Samples]:
    """Interleaved times of all runs on the first held-out inputs."""
    call = row.held_out[0]
    calls = {name: (lambda run=run: run(*call)) for name, run in runs.items()}
    return measure.measure_interleaved(calls, rounds=rounds, reporter=Reporter())


def build_ours(
    row: PeerRow, peer: ToolFound, base_metric: float | None, folder: Path, *, rounds: int
) -> tuple[Run, str]:
    """``ace_studio.compile`` with the fastest peer's fidelity as the goal, and nothing else said."""
    if row.score is not None and peer.metric is not None and base_metric:
        goal: dict[str, Any] = {
            "evaluate": row.score,
            "max_drop": min(0.99, max(0.0, (base_metric - peer.metric) / abs(base_metric))),
        }
    else:
        goal = {"min_sqnr_db": peer.sqnr_db}
    result = ace_studio.compile(
        row.module,
        tracing_inputs=list(row.tracing or row.held_out),
        calibration_inputs=list(row.calibration),
        out=folder,
        rounds=rounds,
        **goal,
    )
    report, module = result.report, result.module
    assert report.chosen is not None
    chosen = report.runs[report.chosen]
    met = "" if report.goal_met else ", misses the goal"
    print(
        f"  {len(report.runs)} candidates",
        *(f"{one.target} {one.precision} {one.status} {one.speedup} {one.sqnr_db} {one.metric}" for one in report.runs),
        sep="\n    ",
    )

    def run(*tensors: Tensor) -> list[Tensor]:
        given = module(*tensors)
        return [given] if isinstance(given, Tensor) else list(pytree.tree_leaves(given))

    return run, f"{chosen.target} {chosen.precision}{met}"


def compare(row: PeerRow, names: Sequence[str], *, rounds: int, note: Callable[[PeerFound], None]) -> None:
    """Build, judge and time everything; ``note`` is called after each step."""
    found = PeerFound(name=row.name)
    runs: dict[str, Run] = {EAGER: eager(row.module)}
    base = ToolFound(name=EAGER, metric=row.score(row.module) if row.score else None)
    found.tools.append(base)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            one = ToolFound(name=name)
            found.tools.append(one)
            own = Path(folder) / name.replace(" ", "_")
            own.mkdir()
            try:
                runs[name] = PEERS[name](row, own)
                judge(row, runs[name], one)
            except Exception as error:  # noqa: BLE001 - whatever a peer raises is its result
                runs.pop(name, None)
                one.error = f"{type(error).__name__}: {error}"[:300]
                traceback.print_exc()
            note(found)
        quick = times_of(row, runs, rounds=15)
        peers = {one.name: one for one in found.tools if one.name in runs and one.name != EAGER}
        found.fastest_peer = min(peers, key=lambda name: quick[name].latency().p50)
        ours = ToolFound(name=OURS)
        found.tools.append(ours)
        asked: set[str] = set()
        while found.fastest_peer not in asked and len(asked) < MOST_GOALS and not found.is_as_faithful:
            asked.add(found.fastest_peer)
            own = Path(folder) / f"ours_{len(asked)}"
            runs[OURS], ours.what = build_ours(row, peers[found.fastest_peer], base.metric, own, rounds=rounds)
            judge(row, runs[OURS], ours)
            note(found)
            _time(row, found, runs, rounds=rounds)
    note(found)


def _time(row: PeerRow, found: PeerFound, runs: dict[str, Run], *, rounds: int) -> None:
    samples = times_of(row, runs, rounds=rounds)
    tools = {one.name: one for one in found.tools}
    for name, one in samples.items():
        tools[name].ms = one.latency().p50
        tools[name].speedup = measure.ratio_of(samples[EAGER], one).median
    found.fastest_peer = min((name for name in runs if name not in {EAGER, OURS}), key=lambda name: tools[name].ms or 0)
    ratio = measure.ratio_of(samples[found.fastest_peer], samples[OURS])
    found.ratio, found.ratio_low, found.ratio_high = ratio.median, ratio.low, ratio.high
    found.is_as_faithful = _is_as_faithful(tools[OURS], tools[found.fastest_peer])


def _is_as_faithful(ours: ToolFound, peer: ToolFound) -> bool:
    if ours.metric is not None and peer.metric is not None:
        return ours.metric >= peer.metric
    return (ours.sqnr_db or 0.0) >= (peer.sqnr_db or 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=[])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)

    def note(found: PeerFound) -> None:
        options.out.write_bytes(msgspec.json.encode(found))

    row = make_row(options.name, options.models)
    compare(row, options.peers or peers_of(row), rounds=options.rounds, note=note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
