"""The columns of the comparison of targets."""

from msgspec.structs import replace

from ace_studio.gui.panels.results.columns import ResultRow, figure_columns, plan_words, result_columns
from ace_studio.gui.style.theme import DARK
from ace_studio.records.results import Latency, RunStatus, SearchStep, TargetRun
from ace_studio.session.comparison.figures import ComparedRow, Difference, compared_rows
from tests.gui.comparing import press, two_plans
from tests.gui.run_results import TABLE, result_of, run_of, show_result, three_runs


def beside_float(run):
    return replace(run, float_speedup=1.3, float_speedup_low=1.2, float_speedup_high=1.4)


def test_the_gain_over_fp32_in_the_same_runtime_stands_beside_the_speed_up(desk):
    first, second, _ = three_runs(TABLE)
    desk.traced()
    show_result(desk, TABLE, result_of(TABLE, (second, beside_float(first))))
    panel = desk.panel("results")
    (found,) = [each for each in panel.model.columns if each.title == "vs fp32 (95 %)"]
    assert found.values == ["–", "not measured", "1.30×  1.20 – 1.40"]
    assert [found.colour(at) for at in range(3)] == [panel.colours.text_dim] * 2 + [panel.colours.good]
    assert "1.30× against fp32 in the same runtime" in panel._verdict.text()


def test_a_disturbed_measurement_is_not_decided_in_its_row_and_in_the_verdict(desk):
    why = "the processor slowed down while measuring"
    first, second, _ = (replace(run, speed_undecided=why) for run in three_runs(TABLE))
    desk.traced()
    show_result(desk, TABLE, result_of(TABLE, (first, second)))
    panel = desk.panel("results")
    (found,) = [each for each in panel.model.columns if each.title == "speed-up (95 %)"]
    assert found.values[1:] == ["not decided", "not decided"]
    assert found.tips(1).startswith(why)
    assert panel._verdict.text().endswith(f"not decided whether it is faster: {why}")


def test_an_artifact_that_was_not_run_says_so_and_why_in_its_row(desk):
    first, second, _ = three_runs(TABLE)
    why = "Core ML runs only on macOS; open the package there"
    saved = replace(second, latency_ms=None, verified=False, not_run=why)
    desk.traced()
    show_result(desk, TABLE, result_of(TABLE, (first, saved)))
    panel = desk.panel("results")
    columns = {each.title: each for each in panel.model.columns}
    assert columns["status"].values[-1] == "not run"
    assert columns["status"].tips(2) == f"not run, compared or timed: {why}"
    assert columns["status"].colour(2) == panel.colours.warn


def test_two_runs_are_compared_by_their_gain_over_fp32_too():
    first = beside_float(run_of(TABLE))
    second = replace(first, float_speedup=2.6, float_speedup_low=2.5, float_speedup_high=2.7)
    row = compared_rows(result_of(TABLE, (first,)), result_of(TABLE, (second,)))[-1]
    assert change_of(row, "vs fp32") == ("2.00×  1.79 – 2.25", DARK.good)
    second = replace(second, speed_undecided="it slowed down")
    row = compared_rows(result_of(TABLE, (first,)), result_of(TABLE, (second,)))[-1]
    assert change_of(row, "vs fp32") == ("–", DARK.text_dim)


def test_a_plan_is_told_from_another_by_the_ops_that_it_keeps_and_by_better_weights():
    run = run_of(TABLE)
    assert plan_words(run, None) == "int8-static"
    kept = replace(run.ops[0], planned="fp32")
    step = SearchStep(target="t", low="int8-static", improved=("smoothquant",))
    assert plan_words(replace(run, ops=(kept, *run.ops[1:])), step) == "int8-static, 1 op at fp32, smoothquant"


FASTER = Difference(first=2.0, second=1.0, change=0.5, low=0.45, high=0.55, is_clear=True)
NOISE = Difference(first=2.0, second=2.1, change=1.05, low=0.9, high=1.2)
SAME = Difference(first=3.0, second=3.0, change=0.0)


def change_of(row, title):
    columns = figure_columns([row], DARK)
    at = next(at for at, each in enumerate(columns) if each.title.startswith(f"A: {title}"))
    found = columns[at + 2]
    return found.values[0], found.colour(0)


def test_a_clear_change_has_a_colour_and_one_within_the_noise_is_grey_and_says_so():
    row = ComparedRow(name="a", latency=FASTER, speedup=NOISE, metric=SAME, sqnr=SAME, size=Difference(first=1.0))
    assert change_of(row, "latency") == ("0.50×  0.45 – 0.55", DARK.good)
    assert change_of(row, "speed-up") == ("1.05×  0.90 – 1.20, within noise", DARK.text_dim)
    assert change_of(row, "metric") == ("the same", DARK.text_dim)
    assert change_of(row, "size") == ("–", DARK.text_dim)


def test_results_of_two_runs_stand_beside_each_other_and_a_row_selects_both(desk):
    found = two_plans(desk)
    panel = desk.panel("results")
    assert panel.model.rowCount() == len(found.rows)
    assert panel._verdict.text().startswith("B against A: ")
    assert not panel.export_button.isEnabled()
    last = len(found.rows) - 1
    panel.table.selectRow(panel.model.view_row(last))
    desk.settle()
    assert desk.document.selection.run == found.rows[last].runs[1]
    press(desk, "Back to the present")
    assert "target" in [each.title for each in panel.model.columns]


def test_two_rows_of_one_run_are_pinned_from_the_menu_and_compared(desk):
    desk.ran()
    panel = desk.panel("results")
    measured = [row for row, each in enumerate(panel.rows) if each.index is not None and each.run.latency_ms]
    for row, pin in zip(measured[:2], panel.pin_actions, strict=True):
        panel.table.selectRow(panel.model.view_row(row))
        desk.settle()
        pin.trigger()
        desk.settle()
    press(desk, "Show the difference")
    (row,) = [each for each in desk.document.comparison.rows if each.name != "baseline"]
    assert row.runs == (0, 1)
    assert row.latency.change is not None


def test_a_latency_says_on_what_and_how_often_it_was_measured():
    run = TargetRun(target="t", status=RunStatus.OK, latency_ms=Latency(p10=1.0, p50=1.0, p90=1.0, n=28))
    rows = [ResultRow(run=run, index=0, plan="")]
    known = {"measured_input": "1x40", "threads": 2}
    for environment, words in ((known, "input 1x40, threads: 2, rounds: 28"), ({}, "")):
        columns = result_columns(rows, colours=DARK, where=environment)
        latency = next(one for one in columns if one.title.startswith("latency"))
        assert latency.tips(0) == words
