"""Every choice is one step of undo."""

from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import CaptureChoice, CaptureControl, ControlKind, Goal, MeasureChoice
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.session import Session
from tests.session.fake_engine_link import FakeEngineLink, Watcher, fix_of, inspected


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


CONTROL = CaptureControl(function="model:pick", treat_as=ControlKind.NONSTRICT_TRACE)


def test_a_control_of_a_fix_is_a_choice_that_undo_takes_back(partial):
    partial.choices.apply_fix(fix_of("/models/net.py", 10, control=CONTROL))
    assert partial.document.recipe.capture.controls == (CONTROL,)
    partial.choices.add_control(replace(CONTROL, treat_as=ControlKind.DISABLE))
    assert [one.treat_as for one in partial.document.recipe.capture.controls] == [ControlKind.DISABLE]
    partial.choices.undo()
    partial.choices.undo()
    assert partial.document.recipe.capture.controls == ()
    partial.choices.add_control(CONTROL)
    partial.choices.remove_control(0)
    assert partial.document.recipe.capture.controls == ()


def test_a_patch_is_never_applied_by_itself(partial):
    before = partial.document.recipe
    partial.choices.apply_fix(fix_of("/models/net.py", 10, patch="--- a\n+++ b\n"))
    assert partial.document.recipe is before
    assert partial.document.problems[-1].code is ErrorCode.USAGE


def test_undo_to_another_file_of_the_model_looks_at_that_file(opened, engine, model):
    copy = model.with_name("copy.py")
    copy.write_text("")
    recipe = opened.document.recipe
    opened._state.choose("the patched copy", replace(recipe, model=replace(recipe.model, source="copy.py")))
    for verb, path in ((opened.choices.undo, model), (opened.choices.redo, copy)):
        verb()
        assert engine.sent[-1].path == str(path)
        opened.apply(inspected(engine.job, path=str(path)))
