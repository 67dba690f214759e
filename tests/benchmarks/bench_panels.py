"""Times of the panels, of their tables and charts, and of the list of past runs:

    python -m pytest tests/benchmarks/bench_panels.py -m benchmark -s

CPU time of this thread, so that other processes matter less. A gesture may take 50 ms, a table of 50,000 rows 100 ms.
"""

import sqlite3
import statistics
import time

import numpy as np
import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_layout.marking import marked_segments
from ace_studio.gui.graph_view.search import search_index
from ace_studio.gui.panels.charts import CHARTS
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.kept.history import History
from tests.gui.charting import open_chart
from tests.gui.conftest import desk as desk  # noqa: PLC0414 - a fixture
from tests.gui.graph_tables import large_table
from tests.gui.run_results import REPORT, show_result
from tests.gui.two_targets import two_targets
from tests.session.fake_engine_link import result, target_run

pytestmark = pytest.mark.benchmark
MARKED_LIMIT_MS = 30


def report(name, actions, *, limit):
    """Time each action, and compare the median with the limit, ms."""
    took = []
    for action in actions:
        start = time.thread_time()
        action()
        took.append(1000 * (time.thread_time() - start))
    print(f"\n{name}: median {statistics.median(took):.1f} ms, worst {max(took):.1f}, n {len(took)}, limit {limit} ms")
    assert statistics.median(took) < limit


def test_plan_of_two_targets(desk):
    plan = two_targets(desk.trusted(), large_table(2000))
    plan.precision.modules.tree.expandAll()
    desk.settle()
    ids = desk.document.graph.op_id

    def select(at):
        desk.session.view.select((ids[at * 7 + 1],))
        plan.update_from(desk.document)

    def turn(at):
        desk.session.plan.set_precision_of_module(f"stage0.block.{at}", Precision.INT8_STATIC)
        plan.update_from(desk.document)

    report("select an op in the plan of 2,000", [lambda at=at: select(at) for at in range(5)], limit=60)
    report("choose the precision of a module", [lambda at=at: turn(at) for at in range(5)], limit=100)


def test_plan_with_forty_rules(desk):
    desk.captured(large_table(2000), REPORT)
    plan = desk.panel("plan")
    desk.session.plan.set_default_precision(Precision.INT8_STATIC)
    for at in range(40):
        desk.session.plan.set_rule(f"id:conv2d_{at}*", Precision.FP32)
    desk.settle()

    def turn(at):
        desk.session.plan.set_precision_of_module(f"stage0.block.{at}", Precision.FP32)
        plan.update_from(desk.document)

    report("choose a precision beside 40 rules", [lambda at=at: turn(at) for at in range(5)], limit=100)


@pytest.mark.parametrize("chart", [row.id for row in CHARTS])
def test_charts_of_two_thousand_ops(desk, chart):
    table = large_table(2000)
    desk.captured(table, REPORT)
    charts = desk.panel("charts")
    show_result(desk, table)
    view = open_chart(desk, charts, chart)

    def draw(at):
        desk.session.view.select_run(at % 2)
        view.update_from(desk.document)

    report(f"chart {chart}", [lambda at=at: draw(at) for at in range(5)], limit=60)


def test_table_of_fifty_thousand_rows():
    count = 50_000
    model = ColumnsModel()
    model.set_columns(
        [
            Column(title="op", values=[f"op_{row % 977}" for row in range(count)]),
            Column(title="flops", values=[(row * 7919) % count for row in range(count)], is_number=True),
        ]
    )
    model.set_filter("warm")
    report(
        "filter 50,000 rows", [lambda text=text: model.set_filter(text) for text in ("op_12", "9", "op_7")], limit=100
    )
    model.set_filter("")
    orders = (Qt.SortOrder.DescendingOrder, Qt.SortOrder.AscendingOrder)
    report("sort 50,000 rows", [lambda order=order: model.sort(1, order) for order in orders], limit=100)


def test_search_of_fifty_thousand_ops():
    index = search_index(large_table(50_000), ())
    queries = ("warm", "conv", "op:conv module:stage3", "/relu_.*9/")
    report("search 50,000 ops", [lambda query=query: index.find(query, lambda _: ()) for query in queries], limit=60)


def test_marking_every_third_edge_of_two_thousand_ops():
    table = large_table(2000)
    arrangement = Arrangement(table)
    arrangement.open(arrangement.inner_blocks(arrangement.tree.root))
    scene = arrangement.scene()
    source, target = (np.array(column[::3], dtype=np.int64) for column in (table.edge_source, table.edge_target))
    mark = [lambda: marked_segments(arrangement.tree, scene, source, target)] * 3
    report("mark hundreds of edges", mark, limit=MARKED_LIMIT_MS)


def test_list_of_a_thousand_runs(desk, tmp_path):
    history = desk.session.history.store
    run_id = history.add(result(target_run("eager")), recipe_toml="x", title="t")
    copy_run(history, run_id, 999)
    report("read 1,000 runs", [history.list] * 5, limit=100)
    desk.open_example()
    panel = desk.panel("history")

    def show():
        desk.session.history.load_history()
        panel.update_from(desk.document)
        panel.table.viewport().grab()

    report("list 1,000 runs", [show] * 5, limit=250)


def copy_run(history: History, run_id: int, times: int) -> None:
    """Add the same run many times."""
    with sqlite3.connect(history._path) as database:
        names = ", ".join(row[1] for row in database.execute("PRAGMA table_info(run)") if row[1] != "id")
        copy = f"INSERT INTO run ({names}) SELECT {names} FROM run WHERE id = ?"
        database.executemany(copy, [(run_id,)] * times)
    database.close()
