"""The layout of flat graphs beside dagre, the layout library of the best-known viewers of models, in turn.

    npm install --prefix FOLDER @dagrejs/dagre
    python -m tests.benchmarks.bench_layout --engine FOLDER --out FOLDER [--rounds 5] [--sizes 100 300 1000 2000]

Both get the same boxes and edges: layers of a transformer whose one mask feeds every layer, and stages of random blocks
with skips. Node and this process lay out each graph in turn, after one call that does not count; a layout that takes
longer than ``--limit`` seconds counts as the limit. Crossings are those of straight lines between the middles of the
boxes, the same rule for both. FOLDER gets ``table.md`` and ``summary.json``. The exit status is 1 unless ours is
faster on every graph with at most a tenth more crossings.
"""

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from ace_studio.gui.graph_layout.layered import BlockProblem, Edge, lay_out_block
from ace_studio.records.graph import GraphTable
from tests.gui.graph_tables import large_table, layered_table

SIDE, HEIGHT = 120.0, 28.0
OPS_OF_A_LAYER = 3
GRAPHS: dict[str, Callable[[int], GraphTable]] = {
    "transformer": lambda ops: layered_table(max(1, (ops - 3) // OPS_OF_A_LAYER)),
    "stages": large_table,
}
PEER = """
const dagre = require(process.argv[1] + "/node_modules/@dagrejs/dagre");
const lines = require("readline").createInterface({ input: process.stdin });
let boxes = null;
lines.on("line", (line) => {
  if (line !== "again") { boxes = JSON.parse(line); }
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({});
  graph.setDefaultEdgeLabel(() => ({}));
  for (let at = 0; at < boxes.count; at++) graph.setNode(String(at), { width: boxes.width, height: boxes.height });
  boxes.edges.forEach(([from, to], at) => graph.setEdge(String(from), String(to), {}, String(at)));
  const began = process.hrtime.bigint();
  dagre.layout(graph);
  const ms = Number(process.hrtime.bigint() - began) / 1e6;
  const middles = [...Array(boxes.count).keys()].map((at) => [graph.node(String(at)).x, graph.node(String(at)).y]);
  console.log(JSON.stringify({ ms, middles }));
});
"""
Edges = list[tuple[int, int]]


class LayoutFound(msgspec.Struct, kw_only=True):
    """One graph laid out by both."""

    graph: str
    ops: int
    edges: int
    ours_ms: float
    peer_ms: float
    is_limit: bool = False
    """Whether the peer was ended at the limit, so that its time is at least the one given."""
    ratios: list[float]
    """The peer's time over ours, round by round."""
    ours_crossings: int
    peer_crossings: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether ours was faster in every round, with no more crossings than a tenth above the peer's."""
        few = self.peer_crossings is None or self.ours_crossings <= 1.1 * self.peer_crossings
        return min(self.ratios) > 1.0 and few


class Peer:
    """A Node process that lays out graphs. Raises: TimeoutError when one takes longer than the limit."""

    COMMAND: ClassVar[Sequence[str]] = ("--stack-size=60000", "-e", PEER, "--")

    def __init__(self, engine: Path, limit_s: float) -> None:
        node = shutil.which("node")
        if node is None or not (engine / "node_modules/@dagrejs/dagre").is_dir():
            sys.exit(f"Node and dagre are needed: npm install --prefix {engine} @dagrejs/dagre")
        self._limit_s = limit_s
        self._process = subprocess.Popen(
            [node, *self.COMMAND, str(engine.resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> dict[str, Any]:
        """The milliseconds of one layout and the middles of its boxes."""
        assert self._process.stdin is not None and self._process.stdout is not None
        is_late = threading.Event()
        guard = threading.Timer(self._limit_s, lambda: (is_late.set(), self._process.kill()))
        guard.start()
        try:
            print(line, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        finally:
            guard.cancel()
        if not answer and is_late.is_set():
            raise TimeoutError
        if not answer:  # a peer that fails is no slow peer
            sys.exit(f"dagre ended with status {self._process.wait()}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def crossings(middles: np.ndarray, edges: Edges) -> int:
    """How many pairs of edges cross, as straight lines; edges that share an end do not count."""
    ends = np.asarray(edges)
    start, stop = middles[ends[:, 0]], middles[ends[:, 1]]
    total = 0
    for at in range(len(ends)):
        others = slice(at + 1, None)
        apart = ~np.isin(ends[others], ends[at]).any(axis=1)
        first = _turn(start[at], stop[at], start[others]) * _turn(start[at], stop[at], stop[others]) < 0
        second = _turn(start[others], stop[others], start[at]) * _turn(start[others], stop[others], stop[at]) < 0
        total += int((first & second & apart).sum())
    return total


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    turn: np.ndarray = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (
        c[..., 0] - a[..., 0]
    )
    return turn


@contextlib.contextmanager
def running(engine: Path, limit_s: float) -> Iterator[Peer]:
    """A peer that is ended with the block."""
    peer = Peer(engine, limit_s)
    try:
        yield peer
    finally:
        peer.end()


def compare(name: str, ops: int, options: argparse.Namespace) -> LayoutFound:
    """Lay out one graph in turn."""
    table = GRAPHS[name](ops)
    count, edges = len(table.op_id), list(zip(table.edge_source, table.edge_target, strict=True))
    problem = BlockProblem(
        widths=(SIDE,) * count,
        heights=(HEIGHT,) * count,
        edges=tuple(Edge(source=source, target=target) for source, target in edges),
        may_fold=False,  # columns would hide crossings
    )
    layout = lay_out_block(problem)
    ours = np.stack([np.asarray(layout.x) + SIDE / 2, np.asarray(layout.y) + HEIGHT / 2], axis=1)
    found = LayoutFound(
        graph=name, ops=count, edges=len(edges), ours_ms=0.0, peer_ms=0.0, ratios=[],
        ours_crossings=crossings(ours, edges),
    )  # fmt: skip
    ours_ms, peer_ms = [], []
    with running(options.engine, options.limit) as peer:
        try:
            boxes = {"count": count, "width": SIDE, "height": HEIGHT, "edges": edges}
            first = peer.ask(json.dumps(boxes))
            found.peer_crossings = crossings(np.asarray(first["middles"]), edges)
        except TimeoutError:
            found.is_limit = True
        for _ in range(options.rounds):
            began = time.perf_counter()
            lay_out_block(problem)
            ours_ms.append((time.perf_counter() - began) * 1000)
            peer_ms.append(options.limit * 1000 if found.is_limit else peer.ask("again")["ms"])
    found.ours_ms, found.peer_ms = statistics.median(ours_ms), statistics.median(peer_ms)
    found.ratios = [theirs / own for theirs, own in zip(peer_ms, ours_ms, strict=True)]
    return found


def table_text(rows: Sequence[LayoutFound]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| graph | ops | edges | ours, ms | dagre, ms | ratio (lowest round) | crossings | of dagre |",
        "|---" * 8 + "|",
    ]
    for one in rows:
        at_least = "> " if one.is_limit else ""
        ratio = f"{at_least}{statistics.median(one.ratios):.1f} ({min(one.ratios):.1f})"
        theirs = "" if one.peer_crossings is None else one.peer_crossings
        lines.append(
            f"| {one.graph} | {one.ops} | {one.edges} | {one.ours_ms:.1f} | {at_least}{one.peer_ms:.1f} | {ratio} |"
            f" {one.ours_crossings} | {theirs} |{'' if one.is_held else ' lost'}"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Lay out every graph at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", type=Path, required=True, help="folder with node_modules/@dagrejs/dagre")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000, 2000])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one layout of the peer")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [compare(name, size, options) for name in GRAPHS for size in options.sizes]
    (options.out / "table.md").write_text(table_text(rows), encoding="utf-8")
    (options.out / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    print(table_text(rows))
    return 0 if all(one.is_held for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
