import pytest
from msgspec.structs import replace

from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.sweeps import RowStatus, SweepJob, SweepRow, row_of, with_front
from tests.session.fake_engine_link import result, target_run


def row(job, ms, metric=None, size=1000, **values):
    values = {"recipe": "a.toml", "axes": {}, "status": RowStatus.DONE, "host": "here"} | values
    return SweepRow(job=job, latency_ms=ms, metric=metric, size_bytes=size, **values)


def front(*rows):
    return [one.job for one in with_front(rows) if one.on_front]


def test_a_row_that_another_beats_in_time_size_and_metric_is_not_on_the_front():
    assert front(row("1", 2.0, 0.9), row("2", 1.0, 0.9), row("3", 3.0, 0.95), row("4", 3.0, 0.9, size=10)) == [
        "2", "3", "4"
    ]  # fmt: skip


def test_rows_with_the_same_figures_are_all_on_the_front():
    assert front(row("1", 1.0, 0.9), row("2", 1.0, 0.9), row("3", 1.0, 0.8)) == ["1", "2"]


def test_an_error_is_better_the_lower_it_is():
    assert front(row("1", 1.0, 5.0, higher_is_better=False), row("2", 1.0, 4.0, higher_is_better=False)) == ["2"]


@pytest.mark.parametrize("other", [{"host": "there"}, {"axes": {"shape": "x=8x3"}}])
def test_rows_of_other_machines_and_shapes_are_not_compared(other):
    assert front(row("1", 1.0, 0.9), row("2", 2.0, 0.9, **other)) == ["1", "2"]


def test_without_metrics_only_rows_of_one_recipe_compare_by_fidelity():
    rows = [row("1", 1.0, sqnr_db=30.0), row("2", 2.0, sqnr_db=20.0), row("3", 2.0, sqnr_db=20.0, recipe="b.toml")]
    assert front(*rows) == ["1", "3"]


def test_rows_without_a_figure_are_not_on_the_front():
    assert front(row("1", None, 0.9), row("2", 1.0, 0.5, status=RowStatus.FAILED)) == []


def test_the_row_of_a_job_whose_speed_is_not_decided_has_no_speed_up():
    job = SweepJob(job="1", recipe_path="a.toml", axes={}, recipe=Recipe(), folder="")
    run = replace(target_run("openvino"), float_speedup=1.25)
    assert (row_of(job, result(run)).speedup, row_of(job, result(run)).float_speedup) == (2.0, 1.25)
    row = row_of(job, result(replace(run, speed_undecided="it slowed down")))
    assert (row.speedup, row.float_speedup, row.latency_ms) == (None, None, 2.0)
