import msgspec
import pytest
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.sending import Departure, leaving
from ace_studio.records.sweeps import Axis, RowStatus, SweepAdvanced, SweepEnded, SweepReport, SweepRow, SweepStatus
from ace_studio.session.kept.trust import hash_in
from ace_studio.session.session import Session
from ace_studio.session.sweep_state import SweepPhase
from tests.session.fake_engine_link import result
from tests.session.fake_sweep_link import FakeSweepLink, sweep_row

TEXT = """format = 1
recipes = ["a.toml", "b.toml"]
[axes]
plan = ["fp32", "bf16"]
threads = [1, 2]
[[exclude]]
plan = "bf16"
threads = 2
"""


@pytest.fixture
def link(opened):
    opened.sweep._link = FakeSweepLink()
    return opened.sweep._link


@pytest.fixture
def file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(f'format = 1\n[model]\nsource = "{name}.onnx"\n')
    (tmp_path / "sweep.toml").write_text(TEXT)
    return tmp_path / "sweep.toml"


def remember(session, folder, source, seconds):
    session.history.store.add(
        replace(result(), seconds=seconds), recipe_toml="", title=f"{folder.name}/{source}", folder=str(folder)
    )


def test_a_file_is_opened_counted_and_its_exclusions_are_kept_while_they_fit(opened, link, file):
    opened.sweep.open_file(file)
    preview = opened.sweep.preview()
    assert (preview.jobs, preview.combinations, preview.problems) == (6, 8, ())
    assert opened.sweep.out == str(file.parent / "sweep-results")
    opened.sweep.set_axis(Axis.THREADS, (1, 2, 4))
    assert opened.sweep.preview().jobs == 10
    opened.sweep.set_axis(Axis.THREADS, (1,))
    assert opened.document.sweep.sweep.exclude == ()
    assert opened.sweep.preview().jobs == 4


def test_recipes_are_added_to_a_file_and_taken_out_with_their_exclusions(opened, link, file):
    opened.sweep.open_file(file)
    (file.parent / "c.toml").write_text('format = 1\n[model]\nsource = "c.onnx"\n')
    opened.sweep.add_recipes([file.parent / "c.toml", file.parent / "a.toml"])
    assert opened.document.sweep.sweep.recipes == ("a.toml", "b.toml", "c.toml")
    opened.sweep.set_exclusions(({"recipe": "c.toml", "threads": 2}, {"plan": "bf16"}))
    assert opened.sweep.preview().jobs == 5
    with pytest.raises(AceError, match="never 64"):
        opened.sweep.set_exclusions(({"threads": 64},))
    opened.sweep.remove_recipes(["c.toml"])
    assert opened.document.sweep.sweep.exclude == ({"plan": "bf16"},)
    opened.sweep.remove_recipes(["a.toml", "b.toml"])
    assert (opened.document.sweep.sweep.recipes, opened.document.sweep.path) == ((), "")


def test_another_recipe_joins_the_open_choices_once_these_are_saved(opened, link, file):
    opened.sweep.add_recipes([file.parent / "a.toml"])
    assert "not saved" in opened.document.problems[-1].what and opened.document.sweep.sweep.recipes == ()
    opened.files.save_recipe(file.parent / "own.toml")
    opened.sweep.add_recipes([file.parent / "a.toml"])
    assert opened.document.sweep.sweep.recipes == (str(file.parent / "own.toml"), str(file.parent / "a.toml"))
    assert opened.sweep.preview().jobs == 2


def test_the_forecast_counts_the_jobs_of_models_that_ran_before(opened, link, file):
    opened.sweep.open_file(file)
    assert opened.sweep.preview().seconds is None
    for seconds in (10.0, 30.0, 20.0):
        remember(opened, file.parent, "a.onnx", seconds)
    remember(opened, file.parent / "elsewhere", "b.onnx", 99.0)
    opened.sweep.set_place(workers=1)
    opened.sweep.set_axis(Axis.DEVICE, ("cpu",))
    preview = opened.sweep.preview()
    assert (preview.seconds, preview.unknown, preview.at_once) == (60.0, 3, 1)


def test_a_mistake_in_a_file_is_told_with_its_line_and_nothing_starts(opened, link, file):
    file.write_text(TEXT.replace('"bf16"', '"bf17"'))
    opened.sweep.open_file(file)
    assert "sweep.toml:4" in opened.sweep.preview().problems[0].where
    opened.sweep.start()
    assert link.orders == []
    assert any("bf17" in f"{one.what} {one.why}" for one in opened.document.problems)


def test_the_open_choices_are_saved_as_a_sweep_once_they_have_a_file(opened, link, tmp_path):
    opened.sweep.set_axis(Axis.THREADS, (1, 2))
    opened.sweep.save(tmp_path / "mine.toml")
    assert opened.document.problems[-1].remedy == "Save the recipe first"
    opened.files.save_recipe(tmp_path / "project" / "r.toml")
    opened.sweep.save(tmp_path / "mine.toml")
    assert (tmp_path / "mine.toml").read_text() == (
        'format = 1\nrecipes = ["project/r.toml"]\n\n[axes]\nthreads = [1, 2]\n'
    )
    opened.sweep.use_open_choices()
    opened.sweep.open_file(tmp_path / "mine.toml")
    assert opened.sweep.preview().jobs == 2


def test_a_sweep_goes_through_its_phases_and_reads_its_results_again(opened, link, tmp_path):
    verbs, out = opened.sweep, tmp_path / "out"
    verbs.set_place(out=str(out))
    verbs.start()
    verbs.start()
    assert len(link.orders) == 1
    assert link.orders[0].out == str(out)
    verbs.apply(SweepAdvanced(row=None, done=1, total=2, workers=1, kept=(sweep_row(1, 2.0),)))
    verbs.apply(SweepAdvanced(row=sweep_row(2, 1.0), done=2, total=2, workers=1))
    assert [row.job for row in opened.document.sweep.rows] == ["1", "2"]
    verbs.stop()
    verbs.stop()
    assert (link.stops, opened.document.sweep.phase) == (1, SweepPhase.STOPPING)
    waiting = SweepRow(job="3", recipe="r", axes={}, status=RowStatus.CANCELLED)
    report = SweepReport(status=SweepStatus.CANCELLED, rows=(sweep_row(1, 2.0), waiting))
    verbs.apply(SweepEnded(report=report))
    state = opened.document.sweep
    assert (state.phase, len(state.rows), state.total) == (SweepPhase.IDLE, 1, 2)


def test_a_sweep_goes_on_while_another_model_is_opened(opened, link, file):
    opened.sweep.start()
    opened.files.open_path(file.parent / "a.toml")
    assert opened.document.sweep.is_running


def test_a_sweep_that_died_is_a_problem_and_can_be_started_again(opened, link):
    opened.sweep.start()
    problem = Problem(code=ErrorCode.CRASH, what="gone")
    opened.sweep.apply(SweepEnded(problems=(problem,)))
    assert opened.document.problems[-1] == problem
    opened.sweep.start()
    assert len(link.orders) == 2


def test_without_a_link_nothing_starts_and_it_is_said(opened):
    assert isinstance(opened, Session)
    opened.sweep.start()
    assert opened.document.problems[-1].code is ErrorCode.UNSUPPORTED


def test_a_sweep_that_is_opened_as_a_file_brings_its_first_recipe_along(opened, link, file):
    opened.files.open_path(file)
    assert opened.document.recipe.model.source == "a.onnx"
    assert opened.document.sweep.path == str(file)
    assert opened.sweep.preview().jobs == 6


def test_files_to_be_sent_are_asked_for_by_the_sweep_itself_and_never_by_a_file_of_results(opened, link, tmp_path):
    files = Departure(folder=tmp_path, files=leaving(sorted(tmp_path.glob("*.py")), tmp_path))
    (problem,) = files.refusals("eve@far", is_named=False)
    row = SweepRow(job="1", recipe="r", axes={}, status=RowStatus.FAILED, error=problem)
    report = SweepReport(status=SweepStatus.INCOMPLETE, rows=(row,))
    (tmp_path / "gift").mkdir()
    (tmp_path / "gift" / "sweep.json").write_bytes(msgspec.json.encode(report))
    opened.sweep.set_place(out=str(tmp_path / "gift"))
    assert opened.document.sweep.rows and opened.sweep.asked() == ()
    opened.sweep.start()
    opened.sweep.apply(SweepEnded(report=report))
    assert opened.sweep.asked() == (problem,)
    opened.sweep.trust_refused()
    assert hash_in(problem) in link.orders[-1].trusted_sha256
