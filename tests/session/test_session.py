from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    AnyEvent,
    AttemptEnded,
    BaselineMeasured,
    DoctorRequest,
    EnvironmentFound,
    EnvironmentReport,
    FileInspected,
    FileReport,
    InspectRequest,
    JobCancelled,
    JobFailed,
    JobFinished,
    LogLine,
    Phase,
    Progress,
    RunRequest,
    TargetFinished,
    TraceRequest,
)
from ace_studio.records.recipes.file import read_recipe, write_recipe
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import CaptureChoice, Goal, MeasureChoice, ModelChoice, Recipe
from ace_studio.records.results import Baseline
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session.document import PART_OF_FIELD, Document, EngineState, Part, Verb
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session
from tests.session.fake_engine_link import (
    CAPTURE,
    READY,
    RUNG,
    FakeEngineLink,
    captured,
    inspected,
    lost,
    result,
    target_run,
)


class Watcher:
    def __init__(self, session: Session) -> None:
        self.parts: list[frozenset[Part]] = []
        session.subscribe(lambda document, parts: self.parts.append(parts))

    def taken(self) -> set[Part]:
        seen = set().union(*self.parts)
        self.parts.clear()
        return seen


# --- opening ---


def test_opening_a_model_asks_what_it_is_and_fills_in_what_is_plain(
    session: Session, engine: FakeEngineLink, model: Path
) -> None:
    session.apply(READY)
    session.files.open_path(model)
    assert engine.sent == [InspectRequest(job=engine.job, path=str(model))]
    session.apply(inspected(engine.job, "helper", "make_model", "tracing_inputs", "calibration_inputs", "evaluate"))
    document = session.document
    assert document.recipe.model == ModelChoice(source="model.py", entry="make_model")
    assert document.recipe.inputs.tracing == "tracing_inputs"
    assert document.recipe.calibration.inputs == "calibration_inputs"
    assert document.recipe.evaluate.function == "evaluate"
    assert document.folder == str(model.parent)
    assert not document.is_dirty and not document.can_undo
    assert document.needs_trust and not document.is_trusted
    assert document.recent_files == (str(model),)


def test_a_model_of_a_package_opens_by_its_name_with_the_inputs_that_it_proposes(
    session: Session, engine: FakeEngineLink
) -> None:
    session.apply(READY)
    session.files.open_path("timm:resnet18")
    assert session.document.problems == ()
    assert session.document.recipe.model.source == "timm:resnet18"
    assert session.document.recent_files == ("timm:resnet18",)
    rows = tuple({"x": TensorSpec(shape=(batch, 3, 224, 224))} for batch in (1, 2))
    report = FileReport(path="timm:resnet18", kind="timm", label="", sha256="", size_bytes=0, trust="data", inputs=rows)
    session.apply(FileInspected(job=engine.job, report=report))
    assert session.document.recipe.inputs.rows == rows
    assert not session.document.is_dirty and not session.document.needs_trust


def test_an_entry_is_left_open_if_several_are_plausible(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "first", "second"))
    assert session.document.recipe.model.entry == ""


def test_a_request_waits_until_the_engine_is_ready(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.files.open_path(model)
    assert engine.sent == []
    assert session.document.activity.state is EngineState.STARTING
    assert session.document.activity.verb is Verb.INSPECT
    session.apply(READY)
    assert len(engine.sent) == 1
    assert session.document.activity.state is EngineState.BUSY


def test_opening_what_is_not_there_is_a_problem_and_changes_nothing_else(opened: Session) -> None:
    before = opened.document
    opened.files.open_path("/nowhere/model.py")
    assert [problem.code for problem in opened.document.problems] == [ErrorCode.NOT_FOUND]
    assert opened.document.recipe is before.recipe
    opened.view.dismiss_problem(0)
    assert opened.document.problems == ()


def test_opening_a_recipe_takes_its_choices_as_they_are(session: Session, engine: FakeEngineLink, model: Path) -> None:
    recipe = Recipe(model=ModelChoice(source="model.py", entry="other"), goal=Goal(max_drop=0.02))
    write_recipe(recipe, model.with_name("r.toml"))
    session.apply(READY)
    session.files.open_path(model.with_name("r.toml"))
    session.apply(inspected(engine.job, "make_model", "evaluate"))
    assert session.document.recipe == recipe
    assert session.document.recipe_path == str(model.with_name("r.toml"))


def test_a_broken_recipe_gives_all_its_problems(opened: Session, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text('format = 1\n[model]\nsource = 3\n[goal]\nmax_drop = "much"\n')
    opened.files.open_path(broken)
    assert len(opened.document.problems) >= 2
    assert opened.document.recipe.model.source == "model.py"


def test_what_was_asked_for_the_file_before_does_not_reach_the_new_one(
    opened: Session, engine: FakeEngineLink, model: Path
) -> None:
    opened.jobs.trace()
    old_job = engine.job
    other = model.with_name("other.py")
    other.write_text("")
    opened.files.open_path(other)
    assert engine.cancelled == [old_job]
    opened.apply(captured(old_job, "a", "b"))
    assert opened.document.graph is None
    opened.apply(JobCancelled(job=old_job))
    assert isinstance(engine.sent[-1], InspectRequest) and engine.sent[-1].path == str(other)
    assert opened.document.activity.verb is Verb.INSPECT


# --- trust ---


def test_trust_is_asked_for_by_the_engine_and_the_job_goes_on_once_it_is_given(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    opened.jobs.run(tmp_path / "out")
    refused = Problem(code=ErrorCode.UNTRUSTED, what="not trusted", where=str(model), details=f"sha256:{'b' * 64}")
    opened.apply(JobFailed(job=engine.job, problems=(refused,)))
    assert opened.document.needs_trust and not opened.document.is_trusted
    opened.apply(inspected(engine.job, sha256="c" * 64))
    assert opened.document.needs_trust
    opened.trust.trust_file()
    again = engine.sent[-1]
    assert isinstance(again, RunRequest) and again.output == str(tmp_path / "out")
    assert {"b" * 64, "c" * 64} <= set(again.trusted_sha256)
    assert not opened.document.needs_trust and opened.document.problems == ()


def test_a_file_trusted_once_stays_trusted_until_it_changes(
    opened: Session, engine: FakeEngineLink, model: Path, tmp_path: Path
) -> None:
    later = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    later.apply(READY)
    later.files.open_path(model)
    later.apply(inspected(engine.job, path=str(model)))
    assert later.document.is_trusted and not later.document.needs_trust
    later.files.open_path(model)
    later.apply(inspected(engine.job, sha256="changed", path=str(model)))
    assert later.document.needs_trust


def test_only_what_was_shown_is_trusted(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "make_model", sha256="shown", path=str(model)))
    model.write_text("import os  # changed after it was inspected")
    session.trust.trust_file()
    assert [file.sha256 for file in session.trust.files] == ["shown"]


def test_a_file_without_code_needs_no_trust(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, trust="data"))
    assert session.document.is_trusted and not session.document.needs_trust


# --- choices ---


def test_each_choice_can_be_taken_back_and_put_back_by_its_name(opened: Session) -> None:
    opened.plan.set_default_precision(Precision.BF16)
    opened.plan.set_rule("module:head.*", Precision.FP32)
    assert opened.document.undo_label == "fp32 for module:head.*"
    assert opened.document.is_dirty
    opened.choices.undo()
    assert opened.document.redo_label == "fp32 for module:head.*"
    assert opened.document.recipe.plan.rules == ()
    opened.choices.undo()
    assert not opened.document.can_undo and not opened.document.is_dirty
    opened.choices.redo()
    opened.choices.redo()
    assert opened.document.recipe.plan.rules == (PlanRule(match="module:head.*", precision=Precision.FP32),)
    assert not opened.document.can_redo


def test_quick_edits_of_the_same_thing_are_one_step(engine: FakeEngineLink, model: Path, tmp_path: Path) -> None:
    session = Session(engine, folders=UserFolders.inside(tmp_path / "user"), clock=lambda: 1.0)
    session.files.open_path(model)
    for drop in (0.01, 0.02, 0.03):
        session.choices.set_goal(Goal(max_drop=drop))
    session.choices.set_measure(MeasureChoice(threads=2))
    session.choices.undo()
    assert session.document.recipe.goal.max_drop == 0.03
    session.choices.undo()
    assert session.document.recipe.goal == Goal()
    assert not session.document.can_undo


def test_a_choice_that_changes_nothing_is_no_step(opened: Session) -> None:
    watcher = Watcher(opened)
    opened.choices.set_entry("make_model")
    opened.choices.set_dim("x.0", DimChoice.AUTO)
    assert not opened.document.can_undo and watcher.taken() == set()


def test_a_rule_that_says_nothing_is_a_problem(opened: Session) -> None:
    opened.plan.set_rule("layer1", Precision.BF16)
    assert opened.document.problems[0].code is ErrorCode.RECIPE
    assert not opened.document.can_undo


def test_the_precision_of_ops_replaces_their_own_rules_only(opened: Session) -> None:
    opened.plan.set_rule("op:aten.*", Precision.BF16)
    opened.plan.set_precision_of_ops(["a", "b", "a"], Precision.FP32)
    opened.plan.set_precision_of_ops(["b"], Precision.INT8_STATIC)
    assert [(rule.match, str(rule.precision)) for rule in opened.document.recipe.plan.rules] == [
        ("op:aten.*", "bf16"),
        ("id:a", "fp32"),
        ("id:b", "int8-static"),
    ]
    assert not opened.document.recipe.plan.from_goal
    opened.plan.set_precision_of_ops(["a", "b"], None)
    assert [rule.match for rule in opened.document.recipe.plan.rules] == ["op:aten.*"]


VERBS = st.one_of(
    st.tuples(st.just("choices.set_entry"), st.tuples(st.sampled_from(["a", "b"]))),
    st.tuples(st.just("choices.set_rows"), st.tuples(st.sampled_from([(), ({"x": TensorSpec(shape=(1, 2))},)]))),
    st.tuples(st.just("choices.set_dim"), st.tuples(st.sampled_from(["x.0", "x.1"]), st.sampled_from(DimChoice))),
    st.tuples(st.just("choices.set_tracing"), st.tuples(st.sampled_from(["", "inputs"]))),
    st.tuples(
        st.just("choices.set_capture"), st.tuples(st.sampled_from([CaptureChoice(), CaptureChoice(rungs=("fx",))]))
    ),
    st.tuples(st.just("plan.set_default_precision"), st.tuples(st.sampled_from(Precision))),
    st.tuples(st.just("plan.set_plan_from_goal"), st.tuples(st.booleans())),
    st.tuples(st.just("plan.set_rule"), st.tuples(st.sampled_from(["op:*", "id:a"]), st.sampled_from(Precision))),
    st.tuples(st.just("plan.remove_rule"), st.tuples(st.sampled_from(["op:*", "id:a"]))),
    st.tuples(
        st.just("plan.set_precision_of_ops"),
        st.tuples(st.lists(st.sampled_from("abc"), max_size=3), st.none() | st.sampled_from(Precision)),
    ),
    st.tuples(st.just("choices.set_targets"), st.tuples(st.sampled_from([(), ("eager",), ("eager", "openvino")]))),
    st.tuples(st.just("choices.set_goal"), st.tuples(st.builds(Goal, max_drop=st.none() | st.floats(0, 1)))),
    st.tuples(st.just("choices.set_measure"), st.tuples(st.builds(MeasureChoice, threads=st.integers(1, 4)))),
    st.tuples(st.just("jobs.trace"), st.just(())),
    st.tuples(st.just("view.select"), st.tuples(st.just(["a"]))),
)


@settings(max_examples=60, deadline=None)
@given(gestures=st.lists(VERBS, max_size=12), pauses=st.lists(st.sampled_from([0.1, 10.0]), min_size=12, max_size=12))
def test_undoing_everything_restores_the_recipe_and_redoing_brings_it_back(
    tmp_path_factory: pytest.TempPathFactory, gestures: list[tuple[str, tuple[object, ...]]], pauses: list[float]
) -> None:
    now_s = [0.0]
    folder = tmp_path_factory.mktemp("undo")
    session = Session(FakeEngineLink(), folders=UserFolders.inside(folder), clock=lambda: now_s[0])
    (folder / "m.py").write_text("")
    session.files.open_path(folder / "m.py")
    start = session.document.recipe
    for (verb, arguments), pause_s in zip(gestures, pauses, strict=False):
        now_s[0] += pause_s
        attrgetter(verb)(session)(*arguments)
    end = session.document.recipe
    while session.document.can_undo:
        before = session.document.recipe
        session.choices.undo()
        assert session.document.recipe != before
    assert session.document.recipe == start
    assert not session.document.is_dirty
    while session.document.can_redo:
        session.choices.redo()
    assert session.document.recipe == end


# --- findings ---


def test_a_trace_is_followed_to_its_end_and_findings_are_never_undone(opened: Session, engine: FakeEngineLink) -> None:
    watcher = Watcher(opened)
    opened.choices.set_dim("x.0", DimChoice.DYNAMIC)
    opened.jobs.trace()
    request = engine.sent[-1]
    assert isinstance(request, TraceRequest) and request.recipe == opened.document.recipe
    job = engine.job
    opened.apply(Progress(job=job, phase=Phase.CAPTURE, detail="export", fraction=0.5))
    activity = opened.document.activity
    assert (activity.state, activity.verb, activity.phase) == (EngineState.BUSY, Verb.TRACE, Phase.CAPTURE)
    assert (activity.detail, activity.fraction) == ("export", 0.5)
    opened.apply(AttemptEnded(job=job, outcome=RUNG))
    opened.apply(captured(job, "a", "b"))
    opened.apply(JobFinished(job=job))
    assert opened.document.activity.state is EngineState.IDLE
    assert opened.document.capture is CAPTURE and opened.document.rungs == (RUNG,)
    assert not opened.document.is_stale
    assert {Part.RECIPE, Part.GRAPH, Part.ACTIVITY} <= watcher.taken()
    opened.choices.undo()
    assert opened.document.graph is not None
    assert opened.document.is_stale and opened.document.is_capture_stale
    opened.choices.redo()
    assert not opened.document.is_stale


def test_a_plan_does_not_make_the_capture_stale(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a"))
    opened.apply(JobFinished(job=engine.job))
    opened.plan.set_default_precision(Precision.BF16)
    assert not opened.document.is_capture_stale


def test_a_run_fills_the_table_as_it_goes_and_ends_in_the_history(
    opened: Session, engine: FakeEngineLink, tmp_path: Path
) -> None:
    opened.jobs.run(tmp_path / "out")
    job = engine.job
    opened.apply(BaselineMeasured(job=job, fingerprint="f1", baseline=Baseline(size_bytes=5)))
    for index, target in ((2, "openvino"), (0, "eager"), (2, "openvino again"), (0, "inductor")):
        opened.apply(TargetFinished(job=job, fingerprint="f1", index=index, run=target_run(target)))
    assert [run.target for run in opened.document.runs] == ["inductor", "openvino again"]
    assert opened.history.store.list() == ()
    opened.apply(JobFinished(job=job, result=result(target_run("openvino")), output=str(tmp_path / "out")))
    assert [run.target for run in opened.document.runs] == ["openvino"]
    assert opened.document.selection.run == 0
    (past,) = opened.history.store.list()
    assert (past.title, past.target, past.output) == ("model.py", "openvino", str(tmp_path / "out"))
    assert not opened.document.is_stale
    opened.choices.set_goal(Goal(max_drop=0.5))
    assert opened.document.is_stale


def test_a_new_run_clears_the_runs_before_it_but_not_the_graph(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(captured(engine.job, "a"))
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/tmp/o"))
    opened.jobs.run()
    assert opened.document.runs == () and opened.document.result is None
    assert opened.document.graph is not None
    assert isinstance(engine.sent[-1], RunRequest) and Path(engine.sent[-1].output).is_absolute()


def test_a_late_answer_of_an_old_job_is_filed_but_not_shown(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    old = engine.job
    opened.jobs.cancel()
    opened.apply(JobCancelled(job=old))
    late: list[AnyEvent] = [
        captured(old, "a"),
        TargetFinished(job=old, fingerprint="f1", index=0, run=target_run("eager")),
        Progress(job=old, phase=Phase.MEASURE),
        JobFinished(job=old, result=result(target_run("eager")), output=""),
    ]
    for event in late:
        opened.apply(event)
    assert opened.document.graph is None and opened.document.runs == ()
    assert opened.document.activity.state is EngineState.IDLE
    assert len(opened.history.store.list()) == 1


def test_a_failed_job_leaves_its_problems_and_the_engine_idle(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    problem = Problem(code=ErrorCode.USER_CODE, what="forward() raised")
    opened.apply(JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.problems == (problem,)
    assert opened.document.activity.state is EngineState.IDLE


def test_one_job_at_a_time(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    sent = len(engine.sent)
    opened.jobs.run()
    assert len(engine.sent) == sent
    assert "busy" in opened.document.problems[0].what


def test_nothing_starts_without_a_model(session: Session, engine: FakeEngineLink) -> None:
    session.apply(READY)
    session.jobs.trace()
    assert engine.sent == [] and session.document.problems[0].code is ErrorCode.USAGE


def test_the_environment_is_asked_for_and_kept(session: Session, engine: FakeEngineLink) -> None:
    session.apply(READY)
    session.jobs.request_environment()
    assert isinstance(engine.sent[-1], DoctorRequest)
    report = EnvironmentReport(
        python="3.11", executable="p", platform="l", cpu="c", cores=2, memory_bytes=1, versions={}
    )
    session.apply(EnvironmentFound(job=engine.job, report=report))
    assert session.document.environment is report


def test_log_lines_are_kept_up_to_the_limit(session: Session) -> None:
    session.set_setting("log_lines", 100)
    for number in range(150):
        session.apply(LogLine(text=str(number)))
    assert session.document.log == tuple(str(number) for number in range(50, 150))


# --- cancelling and losing the engine ---


def test_cancelling_shows_at_once_and_asks_the_engine_once(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    job = engine.job
    opened.jobs.cancel()
    opened.jobs.cancel()
    assert opened.document.activity.state is EngineState.CANCELLING
    assert engine.cancelled == [job]
    opened.apply(JobCancelled(job=job))
    assert opened.document.activity.state is EngineState.IDLE
    assert opened.document.problems == ()


def test_a_job_stopped_by_force_restarts_the_engine_without_a_problem(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    job = engine.job
    opened.jobs.cancel()
    opened.apply(lost(ErrorCode.CANCELLED, job=job))
    assert engine.restarts == 1 and opened.document.problems == ()
    assert opened.document.activity.state is EngineState.STARTING
    opened.jobs.trace()
    opened.apply(READY)
    assert isinstance(engine.sent[-1], TraceRequest) and engine.sent[-1].job != job


def test_a_job_sent_to_a_dying_engine_is_sent_again(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    old = engine.job
    opened.jobs.cancel()
    opened.apply(JobCancelled(job=old))
    opened.jobs.request_environment()
    new = engine.job
    opened.apply(lost(ErrorCode.CANCELLED, job=old))
    opened.apply(READY)
    assert [request.job for request in engine.sent].count(new) == 2


def test_a_crash_is_a_problem_and_the_engine_comes_back(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(lost())
    assert opened.document.problems[0].code is ErrorCode.CRASH
    assert engine.restarts == 1
    assert opened.document.activity.state is EngineState.STARTING
    opened.apply(READY)
    opened.jobs.run()
    assert opened.document.activity.state is EngineState.BUSY


def test_an_engine_that_never_comes_up_is_not_started_for_ever(session: Session, engine: FakeEngineLink) -> None:
    session.apply(lost(ErrorCode.NOT_INSTALLED))
    assert engine.restarts == 0
    assert session.document.activity.state is EngineState.LOST
    session.jobs.request_environment()
    assert engine.restarts == 1
    session.apply(READY)
    assert isinstance(engine.sent[-1], DoctorRequest)


def test_an_engine_that_dies_without_any_work_is_given_up_after_three_times(
    session: Session, engine: FakeEngineLink
) -> None:
    for _ in range(5):
        session.apply(READY)
        session.apply(lost())
    assert engine.restarts == 2
    assert session.document.activity.state is EngineState.LOST


# --- looking ---


def test_only_ops_of_the_graph_can_be_selected_and_a_new_graph_keeps_those_it_has(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a", "b"))
    opened.apply(JobFinished(job=engine.job))
    opened.view.select(["b", "nothing", "a", "b"])
    assert opened.document.selection.op_ids == ("b", "a")
    opened.jobs.trace()
    opened.apply(captured(engine.job, "b", "c"))
    assert opened.document.selection.op_ids == ("b",)


def test_selecting_a_run_that_is_not_there_selects_none(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output=""))
    opened.view.select_run(0)
    assert opened.document.selection.run == 0
    opened.view.select_run(7)
    assert opened.document.selection.run is None


# --- saving ---


def test_saving_writes_the_recipe_and_what_is_saved_can_be_opened(opened: Session, model: Path) -> None:
    opened.choices.set_goal(Goal(max_drop=0.1))
    assert not opened.files.save_recipe()
    assert opened.document.problems[-1].code is ErrorCode.USAGE
    assert opened.files.save_recipe(model.with_name("mine.toml"))
    assert not opened.document.is_dirty
    assert read_recipe(model.with_name("mine.toml")) == opened.document.recipe
    opened.choices.undo()
    assert opened.document.is_dirty
    assert opened.files.save_recipe()


def test_saving_elsewhere_keeps_pointing_at_the_same_files_undo_included(
    opened: Session, model: Path, tmp_path: Path
) -> None:
    opened.choices.set_rows([{"x": TensorSpec(shape=(1,), values="x.npy")}])
    opened.choices.set_goal(Goal(max_drop=0.1))
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    assert opened.files.save_recipe(recipes / "mine.toml")
    assert opened.document.folder == str(recipes)
    assert opened.document.recipe.model.source == "../project/model.py"
    assert opened.document.recipe.inputs.rows[0]["x"].values == "../project/x.npy"
    opened.choices.undo()
    opened.choices.undo()
    assert opened.document.recipe.model.source == "../project/model.py"


def test_a_recipe_that_cannot_be_written_is_a_problem(opened: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not opened.files.save_recipe(tmp_path / "file" / "recipe.toml")
    assert opened.document.problems


def test_unsaved_choices_survive_a_crash_and_not_a_clean_close(
    opened: Session, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.choices.set_goal(Goal(max_drop=0.25))
    monkeypatch.setattr("ace_studio.session.kept.autosave._started_s", lambda pid: 1.0)
    later = Session(FakeEngineLink(), folders=UserFolders.inside(tmp_path / "user"))
    (saved,) = later.files.restorable()
    later.files.restore(saved)
    assert later.document.recipe == opened.document.recipe
    assert later.document.folder == str(model.parent)
    assert later.document.is_dirty
    assert later.files.restorable() == ()
    later.files.close()
    assert Session(FakeEngineLink(), folders=UserFolders.inside(tmp_path / "user")).files.restorable() == ()


def test_a_running_window_is_not_restored(opened: Session, tmp_path: Path) -> None:
    opened.choices.set_goal(Goal(max_drop=0.25))
    other = Session(FakeEngineLink(), folders=UserFolders.inside(tmp_path / "user"))
    assert other.files.restorable() == ()


def test_exporting_copies_the_artifact_of_a_run(opened: Session, engine: FakeEngineLink, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "m.onnx").write_bytes(b"onnx")
    opened.jobs.run(output)
    opened.apply(
        JobFinished(job=engine.job, result=result(target_run("onnxruntime", artifact="m.onnx")), output=str(output))
    )
    assert opened.files.export_artifact(0, tmp_path / "copy.onnx") == (tmp_path / "copy.onnx",)
    assert (tmp_path / "copy.onnx").read_bytes() == b"onnx"
    assert opened.files.export_artifact(5, tmp_path / "x") == ()
    assert opened.document.problems[-1].code is ErrorCode.NOT_FOUND


def test_every_field_of_the_document_belongs_to_a_part() -> None:
    assert set(Document.__struct_fields__) == set(PART_OF_FIELD)


def test_a_listener_hears_only_of_what_changed_and_can_leave(opened: Session) -> None:
    watcher = Watcher(opened)
    heard: list[Document] = []
    leave = opened.subscribe(lambda document, parts: heard.append(document))
    opened.apply(LogLine(text="hello"))
    assert watcher.taken() == {Part.LOG}
    leave()
    opened.set_setting("theme", "dark")
    assert watcher.taken() == {Part.SETTINGS}
    assert len(heard) == 1
    opened.set_setting("theme", "pink")
    assert Part.PROBLEMS in watcher.taken()
