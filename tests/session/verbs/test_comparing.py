"""A and B, as the session's verbs."""

from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed, JobFinished, ModelCaptured
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import encode_result
from ace_studio.session.comparison.graphs import OpChange
from ace_studio.session.comparison.sides import Pin, compared_ops
from ace_studio.session.document import COMPARING, EngineState, Part
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session
from tests.session.fake_engine_link import CAPTURE, READY, Watcher, captured, graph, inspected, result, target_run


def run(session, engine, *targets, output="/out"):
    """A finished run of these targets; returns its id."""
    session.jobs.run()
    session.apply(captured(engine.job, "conv", "relu"))
    found = replace(result(*(target_run(each) for each in targets)), fingerprint="f1")
    session.apply(JobFinished(job=engine.job, result=found, output=session.document.output))
    session.history.load_history()
    return session.document.history[0].id


def test_two_runs_are_compared_read_only_and_the_present_comes_back(opened, engine):
    one = run(opened, engine, "a")
    opened.plan.set_default_precision(Precision.FP16)
    other = run(opened, engine, "a", "b")
    opened.comparing.compare_runs(one, other)
    shown = opened.document
    assert [each.target for each in shown.runs] == ["a", "a", "b"]
    assert shown.graph.op_id == ("conv", "relu")
    assert [change.name for change in shown.comparison.changes] == ["plan: default", "plan: from goal"]
    opened.plan.set_default_precision(Precision.FP32)
    assert opened.document.problems[-1] is COMPARING
    opened.comparing.hide()
    assert opened.document.comparison is None
    assert opened.document.recipe.plan.default is Precision.FP16
    assert all(opened.document.pins)


def test_a_row_of_the_present_run_can_be_pinned_and_swapped(opened, engine):
    run(opened, engine, "a", "b")
    opened.comparing.pin_shown(0, row=0)
    opened.comparing.pin_shown(1, row=1)
    opened.comparing.show()
    assert [each.target for each in opened.document.runs] == ["a", "b"]
    opened.comparing.swap()
    assert [each.target for each in opened.document.runs] == ["b", "a"]
    opened.comparing.pin_shown(0, row=1)  # a row of what is compared
    assert [each.target for each in opened.document.runs] == ["a", "a"]
    opened.comparing.clear()
    assert opened.document.pins == (None, None)
    assert opened.document.comparison is None


def test_choices_that_were_not_run_are_pinned_with_their_capture(opened, engine):
    opened.jobs.trace()
    opened.apply(captured(engine.job, "conv", "relu"))
    opened.apply(JobFinished(job=engine.job))
    opened.comparing.pin_shown(0)
    opened.plan.set_default_precision(Precision.FP16)
    opened.comparing.pin_shown(1)
    opened.comparing.show()
    assert opened.document.comparison.changes[0].name == "plan: default"
    assert opened.document.graph.op_id == ("conv", "relu")


def test_pins_come_back_with_their_model_after_a_restart(opened, engine, model, tmp_path):
    run(opened, engine, "a")
    opened.comparing.pin_shown(0)
    opened.plan.set_default_precision(Precision.FP16)
    opened.comparing.pin_shown(1)
    pins = opened.document.pins
    again = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    again.apply(READY)
    again.files.open_path(model)
    assert again.document.pins == pins
    again.comparing.show()
    assert again.document.comparison is not None


def test_runs_are_compared_while_the_engine_starts_and_what_it_then_says_is_about_the_open_model(
    opened, engine, model, tmp_path
):
    one, other = run(opened, engine, "a"), run(opened, engine, "b")
    sent = len(engine.sent)
    again = Session(engine, folders=UserFolders.inside(tmp_path / "user"))
    again.files.open_path(model)
    assert again.document.activity.state is EngineState.STARTING
    again.comparing.compare_runs(one, other)
    compared = again.document.comparison
    assert compared is not None
    assert not again.document.problems
    seen = Watcher(again)
    again.apply(READY)
    assert len(engine.sent) > sent
    again.apply(inspected(engine.job, "make_model", path=str(model)))
    again.apply(JobFinished(job=engine.job))
    assert (again.document.comparison, again.document.file) == (compared, None)
    assert again.document.activity.state is EngineState.IDLE
    assert Part.ACTIVITY in seen.taken(), "the state of the engine is of the window"
    again.comparing.hide()
    assert again.document.file.path == str(model)


def test_nothing_is_compared_while_a_run_goes_on(opened, engine):
    one, other = run(opened, engine, "a"), run(opened, engine, "b")
    opened.jobs.run()
    opened.comparing.compare_runs(one, other)
    assert opened.document.comparison is None
    assert opened.document.problems[-1].what == "The engine is busy"


def test_one_pin_stays_when_another_model_is_opened_and_a_pair_goes(opened, model):
    other = model.with_name("other.py")
    other.write_text("")
    opened.comparing.pin_shown(0)
    opened.files.open_path(other)
    assert opened.document.pins[0].name.startswith("model.py, plan")
    opened.comparing.pin_shown(1)
    third = model.with_name("third.py")
    third.write_text("")
    opened.files.open_path(third)
    assert opened.document.pins == (None, None)


def test_a_result_file_is_pinned_and_one_that_is_none_says_so(opened, tmp_path):
    text = 'format = 1\n[model]\nsource = "m.py"\n'
    file = tmp_path / "result.json"
    file.write_bytes(encode_result(replace(result(target_run("a")), recipe=text)))
    opened.comparing.pin_file(0, file)
    opened.comparing.pin_file(1, file)
    opened.comparing.show()
    assert opened.document.recipe == Recipe(model=ModelChoice(source="m.py"))
    file.write_text("{}")
    opened.comparing.pin_file(0, file)
    assert opened.document.problems[-1].what == f"{file} is no result of a run"


def pinned_and_another(opened, engine, model):
    """The open model as A, and a file whose capture as B begins."""
    opened.jobs.trace()
    opened.apply(captured(engine.job, "conv", "relu"))
    opened.apply(JobFinished(job=engine.job))
    opened.comparing.pin_shown(0)
    other = model.with_name("other.onnx")
    opened.comparing.pin_file(1, other)
    assert engine.sent[-1].path == str(other)
    opened.apply(inspected(engine.job, "make_model", sha256="bb", path=str(other)))
    return other


def test_a_model_file_is_captured_beside_the_open_model_and_pinned(opened, engine, model):
    other = pinned_and_another(opened, engine, model)
    before, asked = opened.document, engine.sent[-1]
    assert (asked.recipe.model.source, asked.folder) == (other.name, str(other.parent))
    found = ModelCaptured(job=asked.job, fingerprint="f2", capture=CAPTURE, graph=graph("conv", "relu", "gelu"))
    opened.apply(found)
    opened.apply(JobFinished(job=asked.job))
    after = opened.document
    assert (after.graph, after.fingerprint, after.file, after.recipe) == (
        before.graph, before.fingerprint, before.file, before.recipe)  # fmt: skip
    opened.comparing.show()
    shown = opened.document.comparison
    assert shown.pins[1].name == "project/other.onnx"
    changes = compared_ops(shown, *shown.partners(None)).changes
    assert changes == (OpChange.SAME, OpChange.SAME, OpChange.ONLY_SECOND)


def test_a_model_that_cannot_be_captured_is_not_pinned_and_the_open_one_has_not_failed(opened, engine, model):
    pinned_and_another(opened, engine, model)
    opened.apply(ModelCaptured(job=engine.job, fingerprint="f2", capture=CAPTURE, graph=graph("conv")))
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="a branch")
    opened.apply(JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.problems[-1] == problem
    assert opened.document.failure is None
    assert opened.document.graph.op_id == ("conv", "relu")
    assert opened.document.pins[1] is None


def test_a_model_to_pin_that_contains_code_waits_for_trust_and_then_goes_on(opened, engine, model):
    other = pinned_and_another(opened, engine, model)
    refused = Problem(code=ErrorCode.UNTRUSTED, what="not trusted", where=str(other), details="sha256: bb")
    opened.apply(JobFailed(job=engine.job, problems=(refused,)))
    opened.apply(inspected(engine.job, "make_model", path=str(model)))
    assert opened.document.needs_trust
    opened.trust.trust_file()
    assert not opened.document.needs_trust
    assert engine.sent[-1].path == str(other)
    opened.apply(inspected(engine.job, "make_model", sha256="bb", path=str(other)))
    assert "bb" in engine.sent[-1].trusted_sha256


def test_a_run_that_is_gone_from_the_history_is_said(opened, engine):
    found = run(opened, engine, "a")
    opened.comparing.pin_run(0, found)
    opened.comparing.pin_run(1, found)
    opened.history.remove_past_runs([found])
    opened.comparing.show()
    assert opened.document.comparison is None
    assert "There is no run" in opened.document.problems[-1].what


def test_the_folder_that_a_strangers_result_names_is_not_taken_over(opened, tmp_path):
    (tmp_path / "gift").mkdir()
    stranger = replace(result(), folder="/home/user/private", seconds=77.0)
    (tmp_path / "gift" / "result.json").write_bytes(encode_result(stranger))
    assert opened.comparing._side(Pin(name="gift", path=str(tmp_path / "gift" / "result.json"))).folder == ""
