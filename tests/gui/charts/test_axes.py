"""The axes of the trade-off."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from ace_studio.gui.charts.axes import COSTS, DROP, LATENCY, LOSSES, SIZE, SQNR
from ace_studio.records.results import SearchStep
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import latency, result_of, three_runs

TABLE = layered_table(3)
DOCUMENT = SimpleNamespace(baseline=result_of(TABLE).baseline)
RUN = three_runs(TABLE)[0]


def test_a_latency_lies_where_the_table_says_and_a_goal_at_its_share_of_the_baseline():
    noisy = replace(RUN, latency_ms=latency(7.2), speedup=1.45)
    assert LATENCY.of_run(noisy, DOCUMENT) == noisy.latency_ms.p50
    assert LATENCY.from_goal(0.7, DOCUMENT) == pytest.approx(7.0)


@pytest.mark.parametrize("axis", [*COSTS, *LOSSES], ids=lambda axis: axis.id)
def test_a_goal_comes_back_from_its_place_in_the_plot(axis):
    assert axis.to_goal(axis.from_goal(0.4, DOCUMENT), DOCUMENT) == pytest.approx(0.4)


def test_a_run_and_a_step_with_equal_figures_lie_at_one_place():
    step = SearchStep(
        target="t", low="int8-static", metric_drop=RUN.metric_drop, sqnr_db=RUN.sqnr_db, size_bytes=RUN.size_bytes,
        latency_ratio=1 / RUN.speedup,
    )  # fmt: skip
    for axis in (LATENCY, SIZE, DROP, SQNR):
        assert axis.of_step(step, DOCUMENT) == pytest.approx(axis.of_run(RUN, DOCUMENT))


def test_identical_outputs_stay_in_the_picture():
    assert SQNR.of_run(replace(RUN, sqnr_db=200.0), DOCUMENT) == 120.0


def test_without_a_baseline_a_goal_has_no_place_and_a_latency_has():
    assert LATENCY.from_goal(0.7, SimpleNamespace(baseline=None)) is None
    assert LATENCY.of_run(RUN, SimpleNamespace(baseline=None)) == RUN.latency_ms.p50
