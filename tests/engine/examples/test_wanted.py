"""The inputs that data files must give, and which samples are used."""

import torch
from torch import nn

from ace_studio.engine.examples.wanted import WantedInput, choose_indices, filled_form, wanted_inputs
from ace_studio.engine.flow import Example
from ace_studio.records.recipes.recipe import InputsChoice, Recipe, Subset
from ace_studio.records.tensors import DimChoice


def test_subsets_keep_the_order_and_random_ones_are_the_same_every_time():
    assert choose_indices(10, samples=4, subset=Subset.FIRST) == [0, 1, 2, 3]
    assert choose_indices(10, samples=4, subset=Subset.SPREAD) == [0, 2, 5, 7]
    drawn = choose_indices(100, samples=10, subset=Subset.RANDOM)
    assert drawn == sorted(set(drawn)) == choose_indices(100, samples=10, subset=Subset.RANDOM)
    assert drawn != list(range(10))
    for subset in Subset:
        assert choose_indices(3, samples=9, subset=subset) == [0, 1, 2]


def test_sizes_that_differ_and_those_that_the_recipe_frees_may_have_any_size():
    examples = [Example((torch.zeros(size, 3, 8), 1.0)) for size in (1, 4)]
    recipe = Recipe(inputs=InputsChoice(dims={"input.2": DimChoice.DYNAMIC}))
    (wanted,) = wanted_inputs(nn.Linear(8, 2), examples, recipe)
    assert (wanted.name, wanted.free) == ("input", {0, 2})
    assert wanted.words == "float32 [any, 3, any]"


def test_a_form_keeps_its_plain_values_and_gets_other_tensors():
    form = Example((torch.zeros(2), 3.0), {"mask": torch.zeros(1, dtype=torch.bool)})
    filled = filled_form(form, [torch.ones(5), torch.ones(1, dtype=torch.bool)])
    assert filled.args[1] == 3.0
    assert torch.equal(filled.args[0], torch.ones(5)) and bool(filled.kwargs["mask"])


def test_an_input_says_its_type_and_its_sizes():
    assert WantedInput("ids", torch.zeros(2, 7, dtype=torch.int64), frozenset({0})).words == "int64 [any, 7]"
