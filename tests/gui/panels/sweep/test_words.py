from ace_studio.gui.panels.sweep.panel import outcome_words, preview_words, progress_words
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import JobAdvanced, RowStatus, SweepRow, SweepStatus
from ace_studio.session.sweep_state import SweepPhase, SweepPreview, SweepState
from tests.session.fake_sweep_link import sweep_row

STATE = SweepState()


def test_the_forecast_says_what_it_rests_on():
    known = SweepPreview(jobs=12, combinations=14, at_once=2, seconds=90.0)
    assert (
        preview_words(known, STATE) == "12 jobs (2 excluded), 2 at once. About 1:30, by earlier runs of their models."
    )
    some = SweepPreview(jobs=3, combinations=3, seconds=9.0, unknown=1)
    assert preview_words(some, STATE).endswith("Not counted: 1 job of models that never ran.")
    assert "No earlier run" in preview_words(SweepPreview(jobs=1, combinations=1), STATE)
    away = SweepState(scheduler="tcp://box:1")
    assert "at tcp://box:1. About 1:30 for one worker" in preview_words(known, away)


def test_a_mistake_takes_the_place_of_the_forecast():
    problem = Problem(code=ErrorCode.RECIPE, what="There is no axis 'plon'", remedy="plan?", where="s.toml:3")
    assert preview_words(SweepPreview(problems=(problem,)), STATE) == "s.toml:3: There is no axis 'plon'. plan?"


def test_progress_has_the_time_left_and_what_runs():
    at_work = {"2": JobAdvanced(job="2", phase="Building")}
    state = SweepState(phase=SweepPhase.RUNNING, total=4, done=1, at_once=2, remaining_s=120.0, at_work=at_work)
    assert progress_words(state, 30.0) == "1 of 4 jobs, 30.0 s, about 2:00 left; 2 Building"
    assert progress_words(SweepState(phase=SweepPhase.RUNNING), 3.0) == "Starting, 3.0 s"
    assert "is looked for" in progress_words(SweepState(phase=SweepPhase.RUNNING, at_once=2, is_lost=True), 3.0)
    assert progress_words(SweepState(phase=SweepPhase.STOPPING), 3.0) == "Stopping"


def test_the_outcome_counts_results_and_failures():
    failed = SweepRow(job="2", recipe="a", axes={}, status=RowStatus.LOST)
    state = SweepState(rows=(sweep_row(1, 2.0), failed), total=3, status=SweepStatus.CANCELLED)
    assert outcome_words(state) == "1 of 3 jobs have a result, 1 failed, the sweep was stopped"
    assert outcome_words(STATE) == ""
