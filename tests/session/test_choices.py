"""Changes of a recipe, and what is filled in when a file is opened."""

import pytest
from msgspec.structs import replace

from ace_studio.records.messages import EntryRole, FileReport
from ace_studio.records.recipes.families import FAMILIES
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, Recipe
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session import choices
from tests.session.fake_engine_link import entry

ROW = {"x": TensorSpec(shape=(1, 2))}


def report(*entries, **fields) -> FileReport:
    return FileReport(
        path="m.py", kind="python", label="Python", sha256="a", size_bytes=1, trust="code", entries=entries, **fields
    )


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("get_model"), entry("make_model")], "make_model"),
        ([entry("Net", kind="class", is_module=True), entry("helper")], "Net"),
        ([entry("build")], "build"),
        ([entry("a"), entry("b")], ""),
        ([entry("make_model", required_arguments=1)], ""),
        ([entry("_private"), entry("evaluate")], ""),
    ],
)
def test_the_entry_is_chosen_only_where_one_is_meant(entries, expected):
    assert choices.plausible_entry(entries) == expected


def test_opening_fills_in_the_well_known_callables_beside_the_entry():
    recipe = choices.prefill(Recipe(), report(entry("make_model"), entry("tracing_inputs"), entry("evaluate")))
    assert (recipe.model.entry, recipe.inputs.tracing, recipe.evaluate.function) == (
        "make_model", "tracing_inputs", "evaluate",
    )  # fmt: skip


def test_opening_fills_in_callables_of_any_name_by_their_role_and_the_weights_beside_the_code():
    listed = [
        replace(entry("getLoader"), role=EntryRole.DATA),
        replace(entry("score_it", required_arguments=1), role=EntryRole.EVALUATE),
        entry("Net", kind="class", is_module=True),
    ]
    recipe = choices.prefill(Recipe(), report(*listed, weights=("weights/net.pth",)))
    assert (recipe.model.entry, recipe.model.weights) == ("Net", "weights/net.pth")
    assert (recipe.calibration.inputs, recipe.evaluate.function) == ("getLoader", "score_it")


@pytest.mark.parametrize(("name", "goal"), [("evaluate", Goal(max_drop=0.01)), ("make_model", Goal(min_sqnr_db=20.0))])
def test_a_new_model_gets_a_plan_that_compresses_and_a_limit_for_the_loss(name, goal):
    recipe = choices.prefill(Recipe(), report(entry(name)))
    assert (recipe.plan.from_goal, recipe.goal) == (True, goal)  # nothing says that there are data


@pytest.mark.parametrize("name", ["calibration_inputs", "tracing_inputs"])
def test_a_new_model_with_data_is_planned_at_int8_static(name):
    recipe = choices.prefill(Recipe(), report(entry("make_model"), entry(name)))
    assert (recipe.plan.default, recipe.plan.from_goal) == (Precision.INT8_STATIC, False)


def test_inputs_that_the_file_proposes_win_over_a_function_of_the_usual_name():
    recipe = choices.prefill(Recipe(), report(entry("tracing_inputs"), inputs=(ROW,)))
    assert (recipe.inputs.rows, recipe.inputs.tracing) == ((ROW,), "")


def test_what_was_chosen_is_not_filled_in():
    chosen = choices.change(Recipe(), "model", entry="mine")
    assert choices.prefill(chosen, report(entry("make_model"))) == chosen


def test_a_table_in_a_table_is_changed_by_its_dotted_name():
    assert choices.change(Recipe(), "measure.decode", token="t").measure.decode.token == "t"


def test_without_a_token_the_other_choices_of_decoding_are_dropped():
    recipe = choices.with_decode(Recipe(), token="t", tokens=8)
    assert recipe.measure.decode.tokens == 8
    assert choices.with_decode(recipe, token="") == Recipe()


def test_auto_is_not_written_down_for_a_dimension():
    recipe = choices.with_dim(Recipe(), "x.0", DimChoice.DYNAMIC)
    assert recipe.inputs.dims == {"x.0": DimChoice.DYNAMIC}
    assert choices.with_dim(recipe, "x.0", DimChoice.AUTO).inputs.dims == {}


def test_a_new_rule_replaces_those_with_the_same_words_and_goes_to_the_end():
    recipe = choices.with_rules(Recipe(), ["op:a", "op:b"], Precision.BF16)
    recipe = choices.with_rules(recipe, ["op:a"], Precision.FP32)
    assert recipe.plan.rules == (
        PlanRule(match="op:b", precision=Precision.BF16),
        PlanRule(match="op:a", precision=Precision.FP32),
    )
    assert not recipe.plan.from_goal
    assert choices.with_rules(recipe, ["op:a", "op:b"], None).plan.rules == ()


def test_ids_of_ops_are_matched_literally_and_once():
    assert choices.op_matches(["a[0]", "b", "b"]) == ("id:a[[]0]", "id:b")


def test_a_ready_recipe_changes_how_and_not_what_is_compressed():
    decoder = next(family for family in FAMILIES if family.name == "decoder-step")
    own = choices.change(Recipe(), "calibration", inputs="texts.npz", mean=(0.5,), samples=8)
    own = choices.change(own, "evaluate", function="evaluate")
    own = choices.change(own, "targets", names=("eager",))
    changed = choices.with_family(own, decoder)
    assert changed.plan.from_goal and changed.goal == Goal(max_drop=0.01)
    assert (changed.calibration.inputs, changed.calibration.mean, changed.calibration.samples) == (
        "texts.npz", (0.5,), 64,
    )  # fmt: skip
    assert (changed.evaluate, changed.targets) == (own.evaluate, own.targets)
    assert changed.measure.decode.token == "token"


def test_how_to_decode_is_taken_over_only_with_the_inputs_that_it_names():
    decoder = next(family for family in FAMILIES if family.name == "decoder-step")
    assert choices.with_family(Recipe(), decoder, inputs=["token", "cache"]).measure.decode.token
    assert not choices.with_family(Recipe(), decoder, inputs=["input_ids", "past"]).measure.decode.token
    own = choices.change(Recipe(), "measure.decode", token="ids")
    assert choices.with_family(own, decoder).measure.decode.token == "ids"
