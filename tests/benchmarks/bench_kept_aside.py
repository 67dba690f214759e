"""``auto`` with a goal on models kept aside, beside NNCF and ONNX Runtime by their books.

    python -m tests.benchmarks.bench_kept_aside --out FOLDER --work FOLDER [--only NAME ...] [--rounds 30]
        [--processes 5] [--max-drop 0.01] [--limit 1500]

The models (`kept.rows`) are named in no other file but timm's list in the loader. Each is trained here, once, into
--work, on real data that installed packages bring along, and has a metric on labels that it has not seen. Every tool
leaves a file; where NNCF's plain quantization misses the goal, its quantization with accuracy control is tried too.
Then fresh processes open all the files, each in another order, and time them in the same rounds, one thread.

A ratio is a peer's time over ours: below 1 ours is slower. A row is lost if ours misses the goal, is beyond the noise
slower than the fastest peer that keeps it (the float model in a bare runtime is one), or was not measured at all.
FOLDER gets a JSON file per row, ``table.md`` and ``summary.json``; a row whose file is there already and without an
error is taken as it is. The exit status is 1 if a row is lost.
"""

import argparse
import dataclasses
import os
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from tests.benchmarks.children import run_child
from tests.benchmarks.kept.rows import KEPT, kept_row
from tests.benchmarks.peers.found import EAGER, OURS, PeerFound, ToolFound
from tests.benchmarks.peers.fresh import FreshTimes
from tests.benchmarks.peers.one_row import Comparison, build_ours, judge
from tests.benchmarks.peers.opening import Left, open_left, write_module
from tests.benchmarks.peers.pooling import cpu_share, pooled_ratio, typical_ms
from tests.benchmarks.peers.tools import PEERS, largest

NNCF = "NNCF + OpenVINO int8"
CONTROLLED = "NNCF with accuracy control"
FLOATS = {"openvino": "OpenVINO float", "onnxruntime": "ONNX Runtime float"}
"""The float model in the bare runtime of each of our targets that has one."""
BUILT = (*FLOATS.values(), NNCF, "ONNX Runtime static int8", "ONNX Runtime dynamic int8")
ROUNDING = 1e-9


class Beside(msgspec.Struct, kw_only=True):
    """A peer's time over ours, and the bounds of that at 95 %."""

    peer: str
    ratio: float
    low: float
    high: float


class KeptFound(PeerFound, kw_only=True):
    """One model kept aside with every tool."""

    metric_name: str = ""
    max_drop: float = 0.01
    goal_metric: float = 0.0
    """The least metric that keeps the goal."""
    fastest: Beside | None = None
    """Beside the fastest peer that keeps the goal."""
    same_float: Beside | None = None
    """Beside the float model in the runtime that was chosen."""
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    """What each step took."""

    def keeps(self, name: str) -> bool:
        """Whether a tool keeps the goal on the held-out labels."""
        metric = self.tool(name).metric
        return metric is not None and metric >= self.goal_metric - ROUNDING

    @property
    def reasons(self) -> list[str]:
        """Why the row is lost; nothing if it is not."""
        if self.error or self.fastest is None:
            return [f"not measured: {self.error or 'nothing was timed'}"]
        ours = self.tool(OURS)
        reasons = [] if self.keeps(OURS) else [f"misses the goal: {ours.metric} below {self.goal_metric:.4f}"]
        besides = {one.peer: one for one in (self.fastest, self.same_float) if one is not None}
        return reasons + [f"slower than {_in_words(one)}" for one in besides.values() if one.high < 1.0]


def compare(found: KeptFound, times: FreshTimes) -> None:
    """Write into ``found`` what the times say. Raises: RuntimeError if ours or every peer could not be timed."""
    for name, words in times.errors.items():
        found.tool(name).error = words
    for name, samples in times.samples.items():
        tool = found.tool(name)
        tool.ms, tool.speedup = typical_ms(samples), pooled_ratio(times.samples[EAGER], samples).median
    if OURS not in times.samples:
        raise RuntimeError(f"{OURS} could not be timed: {times.errors.get(OURS)}")
    besides = {}
    for name in times.samples:
        if name != OURS:
            ratio = pooled_ratio(times.samples[name], times.samples[OURS])
            besides[name] = Beside(peer=name, ratio=ratio.median, low=ratio.low, high=ratio.high)
    found.fastest = min((one for one in besides.values() if found.keeps(one.peer)), key=lambda one: one.ratio)
    found.fastest_peer = found.fastest.peer
    found.same_float = besides.get(FLOATS.get(found.tool(OURS).what.split(" ")[0], EAGER))
    found.cpu_share = round(cpu_share([one for samples in times.samples.values() for one in samples]), 3)


@dataclasses.dataclass
class GoalComparison(Comparison):
    """One row in the making, ours with a goal of its own instead of a peer's fidelity."""

    max_drop: float = 0.01

    def measure(self, kept: KeptFound) -> None:
        """Build, judge and time everything."""
        self.found = kept
        self.left[EAGER] = write_module(self.row.module, self.folder / "eager.pt", kind="eager module")
        assert self.row.score is not None
        base = self._new_tool(EAGER)
        base.metric = self.row.score(self.row.module)
        kept.max_drop, kept.goal_metric = self.max_drop, base.metric - self.max_drop * abs(base.metric)
        for name in BUILT:
            self._clocked(name, lambda name=name: self._build_peer(name))
        if not kept.keeps(NNCF):
            self._clocked(CONTROLLED, lambda: self._build_peer(CONTROLLED))
        self._clocked(OURS, self._build_ours)
        self._clocked("timing", lambda: compare(kept, self._time(processes=self.processes, rounds=self.rounds)))
        self.note(kept)

    def _build_ours(self) -> None:
        ours = self._new_tool(OURS)
        goal = {"evaluate": self.row.score, "max_drop": self.max_drop}
        self.left[OURS], ours.what = build_ours(self.row, goal, self.folder / "ours", rounds=self.rounds)
        judge(self.row, open_left(self.left[OURS], largest(self.row)), ours)
        self.note(self.found)

    def _clocked(self, step: str, do: Any) -> None:
        started = time.monotonic()
        try:
            do()
        finally:
            cast(KeptFound, self.found).seconds[step] = round(time.monotonic() - started, 1)


def controlled(row: Any, folder: Path, *, max_drop: float) -> Left:
    """``nncf.quantize_with_accuracy_control``, as `bench_goals` does it."""
    from tests.benchmarks.bench_goals import find_nncf

    model = SimpleNamespace(
        load=lambda: (row.module, list(row.tracing)),
        calibration=lambda: list(row.calibration),
        score=row.score,
        META={"kind": "text" if row.is_transformer else ""},
    )
    found = find_nncf(cast(Any, model), folder, max_drop=max_drop, is_per_tensor=False)
    return Left(kind="bare openvino", path=found["artifact"])


def child(options: argparse.Namespace) -> None:
    """Measure one row in this process."""
    name, folder = options.row, options.out / options.row
    file = options.out / f"{name}.json"
    found = KeptFound(name=name, metric_name=KEPT[name].metric_name)

    def note(kept: PeerFound) -> None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1))

    PEERS[CONTROLLED] = lambda row, into: controlled(row, into, max_drop=options.max_drop)
    try:
        started = time.monotonic()
        row = kept_row(name, options.work)
        found.seconds["training"] = round(time.monotonic() - started, 1)
        comparison = GoalComparison(
            row, folder, options.rounds, options.processes, note=note, max_drop=options.max_drop
        )
        comparison.measure(found)
    except Exception as error:  # noqa: BLE001 - whatever ends a row is its result
        traceback.print_exc()
        found.error = f"{type(error).__name__}: {error}"[:600]
    note(found)


def run_row(name: str, options: argparse.Namespace) -> KeptFound:
    """The row of an earlier run, or that of a process of its own."""
    file = options.out / f"{name}.json"
    if file.exists():
        found = msgspec.json.decode(file.read_bytes(), type=KeptFound)
        if found.fastest is not None and not found.error:
            return found
        file.unlink()
    shutil.rmtree(options.out / name, ignore_errors=True)
    arguments = ["--row", name, "--out", str(options.out), "--work", str(options.work)]
    for option in ("rounds", "processes", "max_drop"):
        arguments += [f"--{option.replace('_', '-')}", str(getattr(options, option))]
    started = time.monotonic()
    module = "tests.benchmarks.bench_kept_aside"
    ending = run_child(module, arguments, log=options.out / f"{name}.log", limit_s=options.limit)
    found = KeptFound(name=name)
    if file.exists():
        found = msgspec.json.decode(file.read_bytes(), type=KeptFound)
    found.error = found.error or ending
    found.seconds["all"] = round(time.monotonic() - started, 1)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    return found


def _in_words(beside: Beside) -> str:
    return f"{beside.peer}: {beside.ratio:.2f} ({beside.low:.2f}-{beside.high:.2f})"


def summary_line(found: KeptFound) -> str:
    """What came of a row in one line."""
    seconds = f"{found.seconds.get('all', 0):.0f} s"
    if found.reasons:
        return f"LOST, {'; '.join(found.reasons)} [{seconds}]"
    assert found.fastest is not None
    return f"{found.tool(OURS).what}, goal kept, beside {_in_words(found.fastest)} [{seconds}]"


def table(rows: Sequence[KeptFound]) -> str:
    """Everything as markdown."""
    lost = [one for one in rows if one.reasons]
    lines = ["# Models kept aside", "", f"- lost: {len(lost)} of {len(rows)}"]
    lines += [f"  - {one.name}: {'; '.join(one.reasons)}" for one in lost]
    for one in rows:
        float_metric = one.tools[0].metric if one.tools else None
        about = "" if float_metric is None else f"{one.metric_name} {float_metric:.4f}, at least {one.goal_metric:.4f}"
        lines += ["", f"## {one.name}", "", summary_line(one), "", about, ""]
        if one.same_float is not None:
            lines += [f"Beside the float of the same runtime: {_in_words(one.same_float)}", ""]
        if one.cpu_share is not None:
            lines += [f"The core was theirs for {one.cpu_share:.0%} of the time.", ""]
        lines += ["| tool | metric | goal | SQNR dB | ms | seconds | |", "|---|---|---|---|---|---|---|"]
        lines += [_line(one, tool) for tool in sorted(one.tools, key=lambda tool: tool.ms or 1e9)]
    return "\n".join(lines) + "\n"


def _line(found: KeptFound, tool: ToolFound) -> str:
    cells = [
        f"**{tool.name}**" if tool.name == OURS else tool.name,
        "" if tool.metric is None else f"{tool.metric:.4f}",
        "" if tool.metric is None else "kept" if found.keeps(tool.name) else "MISSED",
        "" if tool.sqnr_db is None else f"{tool.sqnr_db:.1f}",
        "" if tool.ms is None else f"{tool.ms:.3g}",
        str(found.seconds.get(tool.name, "")),
        (tool.error or tool.what).replace("|", "/").replace("\n", " ")[:160],
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="for the trained models, which are kept")
    parser.add_argument("--only", nargs="+", choices=list(KEPT), default=[])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--max-drop", type=float, default=0.01)
    parser.add_argument("--limit", type=float, default=1500.0, help="seconds for one row")
    parser.add_argument("--row", choices=list(KEPT), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.out, options.work = options.out.absolute(), options.work.absolute()
    for folder in (options.out, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    if options.row:
        child(options)
        return 0
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"  # as PyTorch's pages ask for
    rows = []
    for name in options.only or KEPT:
        rows.append(run_row(name, options))
        print(f"{name:18s} {summary_line(rows[-1])}", flush=True)
    (options.out / "table.md").write_text(table(rows), encoding="utf-8")
    (options.out / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1))
    print(table(rows))
    return 1 if any(one.reasons for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
