"""Gaps of the window's event loop at very many ops: how long nothing else could be answered. Run it on request:

    xvfb-run -a -s "-screen 0 1600x1000x24" env QT_QPA_PLATFORM=xcb \
        python -m pytest tests/benchmarks/bench_window.py -m benchmark -s

A timer beats once per millisecond. A gesture's gap is the longest time between two beats until every panel shows the
result. Both are also given in CPU time of the window's thread, which a busy machine does not lengthen.
``ACE_BENCH_OPS=200000`` takes another size. The goal at 50,000 ops: no gap above 50 ms, no gesture above 100 ms.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest

from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport
from tests.gui.conftest import desk  # noqa: F401 - a fixture
from tests.gui.graph_tables import large_table, layered_table

pytestmark = pytest.mark.benchmark
OPS = int(os.environ.get("ACE_BENCH_OPS", "50000"))


class Beats:
    """Beats of the event loop, in wall time and in CPU time of this thread."""

    def __init__(self):
        self.times = []
        self._timer = QTimer(interval=1, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.beat)
        self._timer.start()

    def beat(self):
        self.times.append((time.perf_counter(), time.thread_time()))

    def stop(self):
        self._timer.stop()
        self.beat()

    def gap_ms(self, clock):
        pairs = zip(self.times, self.times[1:], strict=False)
        return max(after[clock] - before[clock] for before, after in pairs) * 1000

    def total_ms(self, clock):
        return (self.times[-1][clock] - self.times[0][clock]) * 1000


@pytest.fixture
def gesture(desk):  # noqa: F811 - the fixture
    @contextmanager
    def measured(name):
        desk.settle()
        beats = Beats()
        beats.beat()
        yield
        desk.settle()
        beats.stop()
        wall, cpu = (f"gap {beats.gap_ms(clock):6.0f} ms, all {beats.total_ms(clock):6.0f} ms" for clock in (0, 1))
        print(f"{name:40} CPU: {cpu}   wall: {wall}")

    return measured


def test_gaps_while_working_on_very_many_ops(desk, gesture):  # noqa: F811 - the fixture
    table = large_table(OPS)
    print(f"\n{OPS} ops")
    desk.captured(layered_table(3), CaptureReport(rung="export", ops=9, seconds=1.0))
    with gesture("the graph arrives"):
        desk.captured(table, CaptureReport(rung="export", ops=len(table), seconds=1.0))
    with gesture("first opening of the op table"):
        ops = desk.panel("ops")
    ops.table.setFocus()
    with gesture("select all ops in the table"):
        QTest.keyClick(ops.table, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    with gesture("a precision for all selected"):
        desk.session.plan.set_precision_of_ops(desk.document.selection.op_ids, Precision.INT8_DYNAMIC)
    with gesture("undo"):
        desk.session.choices.undo()
    with gesture("redo"):
        desk.session.choices.redo()
    some = table.op_id[1:-1:3]
    with gesture("select every third op"):
        desk.session.view.select(some)
    with gesture("a precision for every third op"):
        desk.session.plan.set_precision_of_ops(some, Precision.INT8_STATIC)
    with gesture("undo"):
        desk.session.choices.undo()
    with gesture("filter the op table"):
        QTest.keyClicks(ops.filter, "conv stage1")
        desk.bot.wait(120)
    with gesture("clear the filter"):
        ops.filter.clear()
        desk.bot.wait(120)
    with gesture("select one op"):
        desk.session.view.select(table.op_id[40:41])
    with gesture("first opening of Plan"):
        plan = desk.panel("plan")
    tree = plan.precision.modules.tree
    with gesture("open a stage in Plan"):
        tree.topLevelItem(0).child(0).setExpanded(True)
    with gesture("select all ops, Plan in front"):
        QTest.keyClick(ops.table, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    with gesture("a precision for all, Plan in front"):
        desk.session.plan.set_precision_of_ops(desk.document.selection.op_ids, Precision.INT8_DYNAMIC)
    with gesture("a precision for one module"):
        desk.session.plan.set_precision_of_module("stage0.block.1", Precision.FP16)
    rules = [f"id:{name}" for name in table.op_id[1:20_001]]
    with gesture("a recipe of 20,000 rules arrives"):
        recipe = desk.document.recipe
        desk.session._state.choose("rules", choices_with_rules(recipe, rules))
    with gesture("a change with 20,000 rules"):
        desk.session.plan.set_rule("module:stage0.*", Precision.FP16)
    with gesture("undo with 20,000 rules"):
        desk.session.choices.undo()


def choices_with_rules(recipe, matches):
    from ace_studio.session.choices import with_rules

    return with_rules(recipe, matches, Precision.INT8_WEIGHT)
