"""Measure one row: this process builds and judges every peer and ours; fresh processes time what they left on disk.

python -m tests.benchmarks.peers.one_row NAME --out FILE [--models FOLDER] [--rounds 30] [--processes 5] [--peers ...]
    [--keep FOLDER]
"""

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import ace_studio
from ace_studio.engine.quantize.fidelity import sqnr_db
from tests.benchmarks.peers.found import EAGER, OURS, PeerFound, ToolFound, fastest, give_verdict
from tests.benchmarks.peers.fresh import FreshTimes, time_freshly
from tests.benchmarks.peers.opening import Left, Run, eager, open_left, write_lineup, write_module
from tests.benchmarks.peers.row import PeerRow, make_row, model_file
from tests.benchmarks.peers.tools import PEERS, largest, peers_of

MOST_GOALS = 3
"""Peers of about one speed change places from one timing to the next: then ours gets the other one's goal too."""
QUICK_ROUNDS = 15


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


def goal_of(row: PeerRow, peer: ToolFound, base_metric: float | None) -> dict[str, Any]:
    """The peer's fidelity as a goal in the words of ``ace_studio.compile``."""
    if row.score is not None and peer.metric is not None and base_metric:
        drop = (base_metric - peer.metric) / abs(base_metric)
        return {"evaluate": row.score, "max_drop": min(0.99, max(0.0, drop))}
    return {"min_sqnr_db": peer.sqnr_db}


def build_ours(row: PeerRow, goal: dict[str, Any], folder: Path, *, rounds: int) -> tuple[Left, str]:
    """``ace_studio.compile`` with that goal and nothing else said: the chosen artifact, and what it is."""
    result = ace_studio.compile(
        row.module,
        tracing_inputs=list(row.tracing or row.held_out),
        calibration_inputs=list(row.calibration),
        out=folder,
        rounds=rounds,
        **goal,
    )
    report = result.report
    assert report.chosen is not None
    chosen = report.runs[report.chosen]
    assert chosen.artifact
    met = "" if report.goal_met else ", misses the goal"
    print(
        f"  {len(report.runs)} candidates",
        *(f"{one.target} {one.precision} {one.status} {one.speedup} {one.sqnr_db} {one.metric}" for one in report.runs),
        sep="\n    ",
    )
    return Left(kind=chosen.target, path=str(folder / chosen.artifact)), f"{chosen.target} {chosen.precision}{met}"


@dataclass
class Comparison:
    """One row in the making."""

    row: PeerRow
    folder: Path
    """For what the tools leave."""
    rounds: int
    processes: int
    model_file: str = ""
    note: Callable[[PeerFound], None] = lambda _: None
    """Called after each step."""
    left: dict[str, Left] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.found = PeerFound(name=self.row.name)
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, names: Sequence[str]) -> PeerFound:
        """Build, judge and time the peers, then ours with the goals that follow from them."""
        row = self.row
        self.left[EAGER] = write_module(row.module, self.folder / "eager.pt", kind="eager module")
        base = self._new_tool(EAGER)
        base.metric = row.score(row.module) if row.score else None
        for name in names:
            self._build_peer(name)
        quick = self._time(processes=1, rounds=QUICK_ROUNDS)
        ours = self._new_tool(OURS)
        peer = fastest(quick)
        asked: set[str] = set()
        while peer not in asked and len(asked) < MOST_GOALS and not self.found.is_as_faithful:
            asked.add(peer)
            folder = self.folder / f"ours_{len(asked)}"
            goal = goal_of(row, self.found.tool(peer), base.metric)
            self.left[OURS], ours.what = build_ours(row, goal, folder, rounds=self.rounds)
            judge(row, open_left(self.left[OURS], largest(row)), ours)
            give_verdict(self.found, self._time(processes=self.processes, rounds=self.rounds))
            self.note(self.found)
            peer = self.found.fastest_peer
        return self.found

    def _new_tool(self, name: str) -> ToolFound:
        tool = ToolFound(name=name)
        self.found.tools.append(tool)
        return tool

    def _build_peer(self, name: str) -> None:
        tool, folder = self._new_tool(name), self.folder / name.replace(" ", "_")
        folder.mkdir()
        try:
            left = PEERS[name](self.row, folder)
            judge(self.row, open_left(left, largest(self.row)), tool)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its result
            tool.error = f"{type(error).__name__}: {error}"[:300]
            traceback.print_exc()
        else:
            self.left[name] = left
        self.note(self.found)

    def _time(self, *, processes: int, rounds: int) -> FreshTimes:
        inputs = {"first": largest(self.row), "timed": self.row.held_out[0]}
        write_lineup(self.folder, self.left, **inputs, model_file=self.model_file)
        return time_freshly(self.folder, processes=processes, rounds=rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="an empty folder for what the tools leave; a temporary one otherwise")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=[])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)

    def note(found: PeerFound) -> None:
        options.out.write_bytes(msgspec.json.encode(found))

    row = make_row(options.name, options.models)
    with tempfile.TemporaryDirectory() as temporary:
        comparison = Comparison(
            row,
            options.keep or Path(temporary),
            rounds=options.rounds,
            processes=options.processes,
            model_file=model_file(options.name, options.models),
            note=note,
        )
        comparison.run(options.peers or peers_of(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
