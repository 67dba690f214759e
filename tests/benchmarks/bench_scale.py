"""How times grow with the ops of a graph, and with the runs in the history.

    python -m tests.benchmarks.bench_scale --out FOLDER [--ops 100 1000 ...] [--runs 1 10 ...] [--rounds 3]

Of a graph: ``arrival`` from the bytes of the engine's message to the first picture, ``layout`` of all blocks open. Of
the history: ``list`` of what the window lists, ``search`` of a tag that no run has, ``append`` of one more run. All in
seconds by the clock. FOLDER gets ``figures.json``. The exit status is 1 if an op costs more than twice as much in a
graph as in one of 10,000, or if a call of the history takes longer than 100 ms.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication

from ace_studio.engine.measure import Ratio
from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_view import GraphView
from ace_studio.gui.ops.facts import prepare
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import ModelCaptured, decode_event, encode_message
from ace_studio.records.results import CaptureReport
from ace_studio.session.kept.history import History
from tests.benchmarks.bench_graph_view import settle
from tests.benchmarks.bench_panels import copy_run
from tests.benchmarks.figures import Figure, conclude, digits, median_of, spread
from tests.gui.graph_tables import large_table
from tests.session.fake_engine_link import result, target_run

USUAL_OPS = 10_000
MOST_GROWTH = 2.0
LIMIT_S = 0.1
WORDS = {
    "arrival": "a graph of {} ops is drawn {} s after it reached the window",
    "layout": "a graph of {} ops, all its blocks open, is laid out in {} s",
    "list": "a history of {} runs is listed in {} s",
    "search": "a history of {} runs is searched for a tag in {} s",
    "append": "a history of {} runs gets one more in {} s",
}


def seconds(call: Callable[[], object], rounds: int) -> Ratio:
    """Median and interval of some calls, by the clock."""
    times = []
    for _ in range(rounds):
        began_s = time.perf_counter()
        call()
        times.append(time.perf_counter() - began_s)
    return spread(times)


def show(view: GraphView, message: bytes) -> None:
    """Do what the window does with a graph that comes from the engine, and wait for the picture."""
    event = decode_event(message)
    assert isinstance(event, ModelCaptured)
    prepare(event.graph)
    view.show_graph(event.graph)
    settle(view)
    view.canvas.grab()


def lay_out(table: GraphTable) -> None:
    """Lay out a graph with all its blocks open."""
    arrangement = Arrangement(table)
    arrangement.open(arrangement.inner_blocks(arrangement.tree.root))
    arrangement.scene()


def of_graphs(sizes: list[int], rounds: int) -> list[Figure]:
    """Graphs of so many ops, the smallest first."""
    application = QApplication(["bench_scale", "-platform", "offscreen"])
    view = GraphView()
    view.resize(1500, 950)
    view.show()
    application.processEvents()
    report = CaptureReport(rung="export", ops=1, seconds=1.0)
    figures: list[Figure] = []
    usual: dict[str, float] = {}
    for size in sizes:
        table = large_table(size)
        message = encode_message(ModelCaptured(job="trace", fingerprint="g", capture=report, graph=table))
        for name, call in (("arrival", partial(show, view, message)), ("layout", partial(lay_out, table))):
            call()
            took = seconds(call, rounds)
            if size == USUAL_OPS:
                usual[name] = took.median / size
            is_lost = took.low / size > MOST_GROWTH * usual.get(name, float("inf"))
            what = WORDS[name].format(f"{size:,}", digits(took.median))
            figures.append(median_of(f"scale.{name}.{size}", what, took, "s", lost=is_lost))
    return figures


def of_histories(sizes: list[int], rounds: int) -> list[Figure]:
    """Histories of so many runs."""
    figures = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            history = History(Path(folder) / "history.sqlite")
            append = partial(history.add, result(target_run("eager")), recipe_toml="x", title="t")
            copy_run(history, append(), size - 1)
            calls = {"list": history.list, "search": partial(history.list, tag="none"), "append": append}
            for name, call in calls.items():
                took = seconds(call, 7 * rounds)
                what = WORDS[name].format(f"{size:,}", digits(took.median))
                figures.append(median_of(f"scale.{name}.{size}", what, took, "s", lost=took.low > LIMIT_S))
    return figures


def main() -> int:
    """Every size, the smallest first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ops", type=int, nargs="*", default=[100, 1_000, 10_000, 50_000, 200_000])
    parser.add_argument("--runs", type=int, nargs="*", default=[1, 10, 100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures = of_graphs(options.ops, options.rounds) + of_histories(options.runs, options.rounds)
    return conclude(options.out, figures)


if __name__ == "__main__":
    sys.exit(main())
