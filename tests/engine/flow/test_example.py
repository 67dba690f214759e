"""One call of a model, as users write it."""

import pytest
import torch

from ace_studio.engine.flow import Example, measured_places, repeats_without_end, tensor_leaves

ONE, TWO = torch.ones(2), torch.zeros(3)


@pytest.mark.parametrize(
    ("value", "args", "kwargs"),
    [
        ((ONE, TWO), (ONE, TWO), {}),
        ([ONE], (ONE,), {}),
        ({"x": ONE}, (), {"x": ONE}),
        ({0: ONE}, ({0: ONE},), {}),
        (ONE, (ONE,), {}),
        (Example((ONE,)), (ONE,), {}),
    ],
)
def test_a_list_is_arguments_and_a_dict_with_text_keys_is_keywords(value, args, kwargs):
    example = Example.of(value)
    assert len(example.args) == len(args)
    assert [id(leaf) for leaf in tensor_leaves(example.args)] == [id(leaf) for leaf in tensor_leaves(args)]
    assert dict(example.kwargs).keys() == kwargs.keys()


def test_tensors_come_in_the_order_of_the_arguments_then_of_the_keywords():
    example = Example(args=([ONE, 3], "word"), kwargs={"b": TWO, "a": ONE})
    assert [leaf.shape[0] for leaf in example.tensors()] == [2, 3, 2]


def test_a_copy_shares_no_tensor_with_its_original():
    example = Example(args=(ONE.clone(), 5))
    copy = example.copied()
    copy.args[0].zero_()
    assert example.args[0].sum() == 2
    assert copy.args[1] == 5


def test_fidelity_is_measured_on_numbers_and_on_all_outputs_if_there_are_only_indices():
    index, score = torch.tensor([1]), torch.tensor([0.5])
    assert measured_places([index, score, index]) == [1]
    assert measured_places([index, index]) == [0, 1]


def test_shared_and_endless_lists_are_told_from_long_ones() -> None:
    nested: list[object] = [torch.zeros(1)]
    for _ in range(64):
        nested = [nested, nested]
    itself: list[object] = []
    itself.append({"a": (itself,)})
    assert repeats_without_end(nested) and repeats_without_end(itself)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert not repeats_without_end(deep)
    assert not repeats_without_end([list(range(1000))] * 500)
    assert not repeats_without_end(([(0.5, 1)] * 10, {"a": [None, torch.zeros(1)]}))
