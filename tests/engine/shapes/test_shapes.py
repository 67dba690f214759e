"""Examples: gathering, naming, comparing, resizing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.examples.leaves import forward_parameters, named_leaves
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.shapes import compare_examples, example_at, tracing_example, unseen_sizes
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.tensors import DimChoice, TensorSpec


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, state: Tensor, scale: float = 1.0) -> Tensor:
        return x + state * scale


class Nested(nn.Module):
    def forward(self, batch: dict[str, Tensor], states: list[Tensor]) -> Tensor:
        return batch["ids"] + states[0] + states[1]


class Variadic(nn.Module):
    def forward(self, first: Tensor, *others: Tensor) -> Tensor:
        return sum(others, first)


def loaded(module: nn.Module, **fields: object) -> LoadedModel:
    return LoadedModel(module=module, source=Path(), sha256="", data=DataSources(**fields))


def never_read(path: Path) -> Tensor:
    raise AssertionError(f"nobody asked for {path}")


def gather(module: nn.Module, *rows: dict[str, TensorSpec], read_tensor=never_read, **fields: object):
    recipe = Recipe(inputs=InputsChoice(rows=rows))
    return gather_examples(
        loaded(module, **fields), recipe, Path("/recipes"), read_tensor=read_tensor, read_content=never_read
    )


def row(*shape: int, **fields: str) -> TensorSpec:
    return TensorSpec(shape=shape, **fields)


def test_rows_become_the_arguments_of_forward_in_its_own_order() -> None:
    (example,) = gather(TwoInputs(), {"state": row(3, values="zeros"), "x": row(3, values="range")})
    assert torch.equal(example.args[0], torch.tensor([0.0, 1.0, 2.0]))
    assert torch.equal(example.args[1], torch.zeros(3))


def test_random_rows_are_the_same_every_time_and_differ_between_examples() -> None:
    cells = [{"x": row(4), "state": row(4)}, {"x": row(4), "state": row(4)}]
    first, again = gather(TwoInputs(), *cells), gather(TwoInputs(), *cells)
    assert torch.equal(first[0].args[0], again[0].args[0])
    assert not torch.equal(first[0].args[0], first[1].args[0])


@pytest.mark.parametrize(("dtype", "low", "high"), [("int64", 0, 99), ("uint8", 0, 99), ("bool", 0, 1)])
def test_random_integers_stay_in_their_range(dtype: str, low: int, high: int) -> None:
    (example,) = gather(TwoInputs(), {"x": row(500, dtype=dtype), "state": row(1)})
    x = example.args[0]
    assert str(x.dtype) == f"torch.{dtype}"
    assert int(x.min()) >= low
    assert int(x.max()) <= high
    assert len(x.unique()) > 1


def test_dotted_row_names_become_dictionaries_and_lists() -> None:
    (example,) = gather(Nested(), {"batch.ids": row(2), "states.0": row(2), "states.1": row(2)})
    batch, states = example.args
    assert list(batch) == ["ids"]
    assert isinstance(states, list)
    assert len(states) == 2


def test_rows_for_variadic_arguments_are_passed_by_position() -> None:
    (example,) = gather(Variadic(), {"first": row(2), "others.0": row(2), "others.1": row(2)})
    assert len(example.args) == 3


def test_a_row_for_an_unknown_input_names_the_nearest_one() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), {"x": row(2), "stat": row(2)})
    problem = caught.value.problem
    assert problem.code is ErrorCode.BAD_INPUT
    assert "'stat'" in problem.what
    assert "'state'" in problem.remedy


def test_a_row_that_lacks_a_required_input_says_which() -> None:
    with pytest.raises(AceError, match="lacks the input 'state'"):
        gather(TwoInputs(), {"x": row(2)})


def test_an_unknown_element_type_names_the_nearest_one() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), {"x": row(2, dtype="flaot32"), "state": row(2)})
    assert "float32" in caught.value.problem.remedy


def test_a_file_in_a_row_is_read_relative_to_the_recipe() -> None:
    asked: list[Path] = []

    def read(path: Path) -> Tensor:
        asked.append(path)
        return torch.ones(2, dtype=torch.float64)

    (example,) = gather(TwoInputs(), {"x": row(2, values="data/x.npy"), "state": row(2)}, read_tensor=read)
    assert asked == [Path("/recipes/data/x.npy")]
    assert example.args[0].dtype is torch.float32


def test_a_file_of_another_shape_than_the_row_is_refused() -> None:
    with pytest.raises(AceError, match="another shape"):
        gather(TwoInputs(), {"x": row(3, values="x.npy"), "state": row(2)}, read_tensor=lambda path: torch.ones(2))


def test_rows_come_before_the_tracing_callable_and_that_before_the_entrys_examples() -> None:
    ones, twos = torch.ones(1), torch.full((1,), 2.0)
    model = TwoInputs()
    from_callable = gather(model, tracing=lambda: [(ones, ones)], examples=(Example((twos, twos)),))
    from_entry = gather(model, examples=(Example((twos, twos)),))
    assert torch.equal(from_callable[0].args[0], ones)
    assert torch.equal(from_entry[0].args[0], twos)


def test_a_tracing_callable_that_raises_is_reported_by_name() -> None:
    def inputs():
        raise KeyError("pixels")

    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), tracing=inputs)
    assert caught.value.problem.code is ErrorCode.USER_CODE
    assert "inputs() raised KeyError" in caught.value.problem.what


def test_without_any_examples_the_message_says_where_to_add_them() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs())
    assert caught.value.problem.code is ErrorCode.NO_DATA
    assert "tracing" in caught.value.problem.remedy


def test_leaves_are_named_as_forward_names_them_and_in_the_order_of_the_tensors() -> None:
    example = Example(({"ids": torch.ones(1)},), {"states": [torch.ones(2), torch.ones(3)]})
    leaves = named_leaves(example, forward_parameters(Nested()))
    assert [leaf.name for leaf in leaves] == ["batch.ids", "states.0", "states.1"]
    assert [leaf.value.shape for leaf in leaves] == [tensor.shape for tensor in example.tensors()]


def compare(*examples: Example, **choices: DimChoice):
    return compare_examples(TwoInputs(), examples, choices={key.replace("_", "."): one for key, one in choices.items()})


def pair(n: int, *, scale: float | None = None) -> Example:
    args = (torch.ones(n, 4), torch.ones(n, 4))
    return Example(args if scale is None else (*args, scale))


def test_dimensions_that_differ_between_examples_are_dynamic() -> None:
    x, state = compare(pair(1), pair(3))
    assert (x.name, state.name) == ("x", "state")
    assert x.dynamic_dims() == [0]
    assert x.sizes == ((1, 3), (4, 4))


def test_a_choice_of_the_recipe_wins_over_equal_sizes() -> None:
    x, _ = compare(pair(3), x_0=DimChoice.DYNAMIC)
    assert x.dynamic_dims() == [0]


def test_a_choice_for_no_dimension_names_the_dimensions() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(3), x_7=DimChoice.DYNAMIC)
    assert caught.value.problem.code is ErrorCode.RECIPE
    assert "x.0, x.1, state.0" in caught.value.problem.why


def test_a_static_choice_that_the_examples_contradict_is_refused() -> None:
    with pytest.raises(AceError, match="the examples differ"):
        compare(pair(1), pair(2), x_0=DimChoice.STATIC)


def test_plain_values_that_differ_between_examples_are_refused_with_the_reason() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(2, scale=1.0), pair(2, scale=2.0))
    assert "'scale' is 1.0 in example 1 and 2.0 in example 2" in caught.value.problem.what


def test_examples_with_other_inputs_are_refused_and_the_missing_one_is_named() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(2), Example(kwargs={"x": torch.ones(2, 4)}))
    assert "example 2 has no state" in caught.value.problem.why


def test_every_difference_of_rank_and_type_is_reported_at_once() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(2), Example((torch.ones(2, 4, 1), torch.ones(2, 4, dtype=torch.float64))))
    assert len(caught.value.problems) == 2


def test_the_tracing_example_is_the_largest_whose_free_sizes_are_at_least_two() -> None:
    examples = [pair(1), pair(3), pair(2)]
    tracing, is_grown = tracing_example(examples, compare(*examples))
    assert tracing is examples[1]
    assert not is_grown


def test_a_tracing_example_is_grown_by_repeating_content_when_the_examples_are_crossed() -> None:
    class Ids(nn.Module):
        def forward(self, ids: Tensor) -> Tensor:
            return ids

    examples = [Example((torch.arange(256).reshape(1, 256),)), Example((torch.tensor([[7], [8]]),))]
    tracing, is_grown = tracing_example(examples, compare_examples(Ids(), examples, choices={}))
    assert is_grown
    assert tuple(tracing.args[0].shape) == (2, 256)
    assert torch.equal(tracing.args[0][1], torch.arange(256))


def test_resizing_crops_and_repeats_real_content() -> None:
    example = Example((torch.tensor([[5, 6, 7]]),))
    assert example_at(example, {(0, 1): 5}).args[0].tolist() == [[5, 6, 7, 5, 6]]
    assert example_at(example, {(0, 1): 2}).args[0].tolist() == [[5, 6]]


@pytest.mark.parametrize(
    ("seen", "low", "high", "first"),
    [((1, 2), 1, None, 3), ((1, 16), 1, None, 9), ((224, 320), 1, None, 256), ((1, 512), 1, 512, 257), ((5,), 1, 5, 4)],
)
def test_unseen_sizes_stay_affordable_and_keep_common_factors(
    seen: tuple[int, ...], low: int, high: int | None, first: int
) -> None:
    assert next(unseen_sizes(seen, low=low, high=high)) == first


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=5), st.integers(1, 10), st.integers(0, 3000))
def test_unseen_sizes_are_new_and_inside_the_range(seen: list[int], low: int, room: int) -> None:
    sizes = list(unseen_sizes(seen, low=low, high=low + room))
    assert all(low <= size <= low + room and size not in seen for size in sizes)
    assert len(set(sizes)) == len(sizes)
