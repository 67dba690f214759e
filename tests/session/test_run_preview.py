"""What a run will do and cost, before it starts."""

from ace_studio.records.messages import EnvironmentReport, Phase, TargetReport
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, Recipe, TargetsChoice
from ace_studio.session.document import Document
from ace_studio.session.run_preview import BUILDS, BYTES, run_preview, seconds_of_others

TARGETS = (
    TargetReport(name="a", label="A", available=True),
    TargetReport(name="b", label="B", available=True, precisions={"fp16": "has no kernels"}),
    TargetReport(name="c", label="C", available=False),
)
USUAL = {Phase.CAPTURE.name: 4.0, Phase.LOWER.name: 10.0, BUILDS: 1}


def document(names=("auto",), plan=Plan(), **goal):  # noqa: B008 - frozen
    environment = EnvironmentReport(
        python="3", executable="p", platform="l", cpu="c", cores=1, memory_bytes=1, versions={}, targets=TARGETS
    )
    recipe = Recipe(targets=TargetsChoice(names=names), plan=plan, goal=Goal(**goal))
    return Document(recipe=recipe, environment=environment)


def test_targets_that_cannot_do_the_plan_are_not_built_for():
    assert run_preview(document(), {}).targets == ("a", "b")
    assert run_preview(document(plan=Plan(default=Precision.FP16)), {}).targets == ("a",)
    assert run_preview(document(names=("b", "c"), plan=Plan(default=Precision.FP16)), {}).targets == ("b",)


def test_the_time_follows_the_number_of_builds():
    found = run_preview(document(), USUAL)
    assert (found.builds, found.seconds) == (2, 24.0)
    assert run_preview(document(), {}).seconds is None


def test_a_search_is_expected_to_build_as_often_as_the_last_time():
    searching = document(plan=Plan(from_goal=True), max_drop=0.01)
    found = run_preview(searching, USUAL | {BUILDS: 7})
    assert (found.is_searched, found.builds, found.seconds) == (True, 7, 14.0)
    assert run_preview(searching, {}).builds is None


def test_runs_of_other_models_say_what_the_first_run_of_a_model_may_take():
    others = [USUAL, {Phase.LOWER.name: 3.0, BYTES: 100}, {BUILDS: 2}]
    assert run_preview(document(), {}, others).others_s == (3.0, 14.0)
    assert run_preview(document(), {}).others_s is None


def test_models_of_about_this_size_count_where_there_are_some():
    known = [(5.0, 100), (90.0, 4000), (70.0, 1100), (8.0, None)]
    assert seconds_of_others(known, 1000) == (70.0, 90.0)
    assert seconds_of_others(known, 10**9) == (5.0, 90.0)
    assert seconds_of_others(known, None) == (5.0, 90.0)
    assert seconds_of_others([(0.0, 1000)], 1000) is None
