"""The steps from a file to an artifact: one is next, and a blocked one says why."""

from __future__ import annotations

from ace_studio.records.messages import JobFinished
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.steps import StepState, has_random_weights, steps_of
from tests.session.fake_engine_link import READY, result, target_run


def states(session):
    return {step.id: step.state for step in steps_of(session.document)}


def next_step(session):
    return [step.id for step in steps_of(session.document) if step.state is StepState.NEXT]


def test_there_are_no_steps_without_a_model(session):
    assert steps_of(session.document) == ()


def test_trust_comes_before_trace_and_run_and_run_before_export(opened):
    opened.trust.revoke_trust()
    assert next_step(opened) == ["trust"]
    blocked = {step.id: step.why for step in steps_of(opened.document) if step.state is StepState.BLOCKED}
    assert blocked == dict.fromkeys(("trace", "run"), "Trust comes first") | dict.fromkeys(
        ("compare", "export"), "Run first"
    )
    opened.trust.trust_file()
    assert next_step(opened) == ["run"]
    assert states(opened)["trace"] is StepState.OPEN


def test_export_is_done_once_an_artifact_was_saved_and_open_again_after_another_run(opened, engine, tmp_path):
    out = tmp_path / "out"
    opened.apply(JobFinished(job=engine.job))
    opened.jobs.run(out)
    out.mkdir()
    (out / "a.onnx").write_bytes(b"model")
    opened.apply(JobFinished(job=engine.job, result=result(target_run("onnxruntime", "a.onnx")), output=str(out)))
    assert next_step(opened) == ["export"]
    opened.files.export_artifact(0, tmp_path / "saved.onnx")
    assert states(opened)["export"] is StepState.DONE and next_step(opened) == []
    assert steps_of(opened.document)[-1].why == "Saved as saved.onnx"
    opened.plan.set_default_precision(Precision.FP16)
    assert next_step(opened) == ["run"] and states(opened)["export"] is StepState.OPEN


def test_nothing_is_next_while_the_engine_works(opened):
    opened.apply(READY)
    opened.trust.trust_file()
    opened.jobs.trace()
    assert next_step(opened) == []
    assert states(opened)["trace"] is StepState.WORKING


def test_the_plan_is_done_only_if_it_compresses(opened):
    assert states(opened)["plan"] is StepState.DONE
    opened.plan.set_default_precision(Precision.FP32)
    assert states(opened)["plan"] is StepState.OPEN


def test_a_class_without_weights_is_at_random_ones(opened):
    assert not has_random_weights(opened.document)
