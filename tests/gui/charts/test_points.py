"""Runs as points of the charts."""

from types import SimpleNamespace

from msgspec.structs import replace

from ace_studio.gui.charts.points import colour_of, front_of, points_of, run_names
from ace_studio.gui.style.theme import THEMES
from ace_studio.records.results import RunStatus
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import result_of, three_runs

TABLE = layered_table(3)
DARK = THEMES["dark"]


def document(*runs, selected=None):
    return SimpleNamespace(
        comparison=None, runs=runs, baseline=result_of(TABLE).baseline, selection=SimpleNamespace(run=selected)
    )  # fmt: skip


def test_the_baseline_and_every_run_that_was_built_are_points():
    first, second, third = three_runs(TABLE)
    shown = points_of(
        document(first, replace(second, status=RunStatus.FAILED), replace(third, status=RunStatus.DROPPED))
    )
    assert [(point.short_name, point.run) for point in shown] == [
        ("eager fp32", None),
        (first.target, 0),
        (third.target, 2),
    ]
    assert shown[0].size_bytes == 40_000_000


def test_runs_of_one_target_are_told_apart_by_precision_and_then_by_number():
    first, other, _ = three_runs(TABLE)
    again = replace(first, precision="bf16")
    assert run_names(document(first, other)) == [first.target, other.target]
    assert run_names(document(first, again)) == [f"{first.target} int8-static", f"{first.target} bf16"]
    assert run_names(document(first, first)) == [f"{first.target} int8-static 1", f"{first.target} int8-static 2"]


def test_the_front_holds_what_no_other_run_beats_in_both():
    assert front_of([(2.0, 20.0), (4.0, 2.0), (6.0, 4.0), (4.0, 3.0)]) == [0, 1]


def test_the_selected_run_has_the_accent_and_the_baseline_is_dim():
    runs = three_runs(TABLE)
    shown = document(*runs, selected=1)
    assert colour_of(1, shown, DARK) == DARK.accent
    assert colour_of(None, shown, DARK) == DARK.text_dim
    assert len({colour_of(at, document(*runs), DARK) for at in range(3)}) == 3
