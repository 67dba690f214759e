"""How far the dynamic dimensions of an artifact with planned memory may grow."""

import dataclasses

import msgspec

from ace_studio.engine.targets.shared import size_bounds as bounds
from ace_studio.engine.targets.shared.size_bounds import size_bounds
from tests.engine.targets.conftest import captured_model


def test_a_dynamic_dimension_may_grow_to_the_smallest_bound_at_least():
    assert size_bounds(captured_model("mlp")) == [{0: bounds.SMALLEST_BOUND}]


def test_a_size_that_the_user_chose_is_the_bound_unless_an_example_is_larger():
    captured = captured_model("mlp")
    largest = max(example.tensors()[0].shape[0] for example in captured.examples)
    name = captured.inputs[0].name
    assert size_bounds(captured, {f"{name}.0": (1, 2, 500)}) == [{0: 500}]
    assert size_bounds(captured, {f"{name}.0": (1, 1, 1)}) == [{0: largest}]


def test_a_large_example_may_be_exceeded_by_the_factor_of_growth(monkeypatch):
    captured = captured_model("mlp")
    largest = max(example.tensors()[0].shape[0] for example in captured.examples)
    monkeypatch.setattr(bounds, "SMALLEST_BOUND", 1)
    assert size_bounds(captured) == [{0: bounds.GROWTH * largest}]


def test_no_bound_is_beyond_the_range_at_which_the_graph_holds(monkeypatch):
    captured = captured_model("mlp")
    (found,) = captured.inputs
    dims = tuple(msgspec.structs.replace(dim, max=10) if dim.index == 0 else dim for dim in found.dims)
    limited = dataclasses.replace(captured, inputs=(msgspec.structs.replace(found, dims=dims),))
    assert size_bounds(limited) == [{0: 10}]
