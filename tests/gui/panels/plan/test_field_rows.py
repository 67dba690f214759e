"""The rows of the forms: the keys of the smaller tables of the recipe."""

from msgspec.structs import replace

from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.recipe import DecodeChoice
from tests.gui.forms import note, opened, type_in


def test_batch_sizes_of_a_graph_whose_batch_is_fixed_carry_a_warning(desk, int8_plan):
    capture = desk.document.capture
    first = capture.inputs[0]
    form = int8_plan.measure.more
    desk.session.choices.set_choice("measure", batches=(1, 8))
    desk.settle()
    assert note(form, "measure.batches").startswith("Each is timed")
    dims = tuple(replace(dim, verdict="static") for dim in first.dims)
    desk.session._state.change(capture=replace(capture, inputs=(replace(first, dims=dims), *capture.inputs[1:])))
    desk.settle()
    assert f"{first.name} · 0 is not dynamic" in note(form, "measure.batches")


def test_a_step_model_is_told_in_the_window_and_the_recipe_opens_again(desk, int8_plan):
    form = opened(desk, int8_plan).measure.decode
    assert note(form, "measure.decode.feed") == "Name the token input first"
    assert not form.editors["measure.decode.feed"].isEnabled()
    type_in(desk, form.editors["measure.decode.token"], "pixels")
    assert "would forget" in note(form, "measure.decode.feed")
    type_in(desk, form.editors["measure.decode.feed"], "cache")
    assert "'cache' is not a pair" in note(form, "measure.decode.feed")
    type_in(desk, form.editors["measure.decode.feed"], "cache = 1")
    assert note(form, "measure.decode.feed") == "The model has no input 'cache'. It takes pixels."
    form.editors["measure.decode.tokens"].setValue(64)
    wanted = DecodeChoice(token="pixels", feed={"cache": "1"}, tokens=64)
    assert desk.document.recipe.measure.decode == wanted
    assert parse_recipe(recipe_text(desk.document.recipe), name="r.toml").measure.decode == wanted


def test_without_an_input_for_the_token_nothing_is_said_of_decoding(desk, int8_plan):
    form = opened(desk, int8_plan).measure.decode
    desk.session.choices.set_choice("measure.decode", token="pixels", feed={"cache": "1"})
    desk.settle()
    type_in(desk, form.editors["measure.decode.token"], "")
    assert desk.document.recipe.measure.decode == DecodeChoice()
    parse_recipe(recipe_text(desk.document.recipe), name="r.toml")
    desk.do("undo")
    assert desk.document.recipe.measure.decode.feed == {"cache": "1"}
