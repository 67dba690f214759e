"""Examples from files of arrays: by name, as lists, as samples; and what is said of data that do not fit."""

import numpy as np
import pytest
import torch
from torch import nn

from ace_studio.engine.examples.arrays import examples_from_arrays, stored_examples
from ace_studio.engine.examples.wanted import WantedInput
from ace_studio.engine.flow import Example
from ace_studio.engine.load.tensors import read_arrays
from ace_studio.records.errors import AceError, ErrorCode

IDS = WantedInput("ids", torch.zeros(2, 7, dtype=torch.int64), frozenset({0, 1}))
X = WantedInput("x", torch.zeros(1, 3, 8, 6), frozenset({0}))
FORM_X = Example((X.template,))


def _tensors(examples):
    return [example.tensors()[0] for example in examples]


def test_each_row_of_an_array_is_an_example_with_a_batch_of_one():
    values = torch.randn(5, 3, 8, 6)
    found = _tensors(examples_from_arrays({"x": values}, FORM_X, [X], samples=64))
    assert len(found) == 5
    assert torch.equal(torch.cat(found), values)


def test_a_fixed_batch_takes_so_many_rows_at_once():
    wanted = WantedInput("x", torch.zeros(2, 4))
    found = _tensors(
        examples_from_arrays({"x": torch.arange(20.0).reshape(5, 4)}, Example((wanted.template,)), [wanted], samples=9)
    )
    assert [tuple(one.shape) for one in found] == [(2, 4), (2, 4)]


def test_an_array_of_whole_inputs_and_a_list_are_taken_as_they_are():
    whole = torch.randn(3, 1, 3, 8, 6)
    assert len(examples_from_arrays({"x": whole}, FORM_X, [X], samples=9)) == 3
    listed = [torch.randn(size, 3, 8, 6) for size in (1, 4)]
    assert [len(one) for one in _tensors(examples_from_arrays({"x": listed}, FORM_X, [X], samples=9))] == [1, 4]


def test_a_model_of_one_input_takes_the_only_array_under_any_name_and_leaves_labels_alone():
    arrays = {"pictures": torch.randn(2, 3, 8, 6), "labels": torch.zeros(2)}
    assert len(examples_from_arrays(arrays, FORM_X, [X], samples=9)) == 2


def test_several_inputs_are_filled_by_name_and_plain_values_stay():
    form = Example((IDS.template,), {"x": X.template, "scale": 2.0})
    arrays = {"x": torch.ones(4, 3, 8, 6), "ids": torch.full((4, 9), 5, dtype=torch.int32)}
    (first, *rest) = examples_from_arrays(arrays, form, [IDS, X], samples=9)
    assert len(rest) == 3
    assert first.args[0].dtype is torch.int64
    assert tuple(first.args[0].shape) == (1, 9)
    assert first.kwargs["scale"] == 2.0


@pytest.mark.parametrize("name", ["label", "target", "y"])
def test_labels_are_left_alone_under_every_name_that_evaluation_knows(name):
    arrays = {"pictures": torch.randn(2, 3, 8, 6), name: torch.zeros(2)}
    assert len(examples_from_arrays(arrays, FORM_X, [X], samples=9)) == 2
    y = WantedInput("y", X.template, X.free)
    assert len(examples_from_arrays({"y": torch.randn(2, 3, 8, 6)}, FORM_X, [y], samples=9)) == 2


def test_a_list_of_examples_is_what_a_function_would_give():
    content = [(torch.zeros(1, 2),), {"x": torch.ones(1, 2)}]
    found = examples_from_arrays({"": content}, FORM_X, [X], samples=9)
    assert [len(one.args) for one in found] == [1, 0]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": torch.zeros(4, 3, 8, 7)}, "[4, 3, 8, 7]; expected is float32 [any, 3, 8, 6]"),
        ({"x": torch.zeros(4, 3)}, "[4, 3]"),
        ({"x": torch.tensor(1.0)}, "single number"),
        ({"x": torch.zeros(4, 3, 8, 6, dtype=torch.uint8)}, "numbers are uint8"),
        ({"x": torch.zeros(0, 3, 8, 6)}, "empty"),
        ({"x": []}, "empty list"),
        ({"x": [torch.zeros(1, 3, 8, 6), "a"]}, "not an array"),
        ({"a": torch.zeros(1), "b": torch.zeros(1)}, "holds a, b"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected(arrays, words):
    with pytest.raises(AceError) as caught:
        examples_from_arrays(arrays, FORM_X, [X], samples=9, where="here")
    assert caught.value.problem.code is ErrorCode.BAD_INPUT
    assert "x" in caught.value.problem.what
    assert words in caught.value.problem.why
    assert caught.value.problem.where == "here"


def test_every_array_that_does_not_fit_is_told_at_once():
    form = Example((IDS.template, X.template))
    with pytest.raises(AceError) as caught:
        examples_from_arrays({"ids": torch.zeros(1, 7), "x": torch.zeros(1, 3)}, form, [IDS, X], samples=9)
    assert len(caught.value.problems) == 2


def test_arrays_of_different_length_are_refused():
    form = Example((IDS.template, X.template))
    arrays = {"ids": torch.zeros(3, 7, dtype=torch.int64), "x": torch.zeros(4, 3, 8, 6)}
    with pytest.raises(AceError, match="equally many"):
        examples_from_arrays(arrays, form, [IDS, X], samples=9)


def test_numbers_of_numpy_arrive_as_they_are(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3, 8, 6)))
    (first, _) = _tensors(examples_from_arrays(read_arrays(tmp_path / "a.npz"), FORM_X, [X], samples=9))
    assert first.dtype is torch.float32


# --- to trace ---


class Two(nn.Module):
    """Takes a batch and a state whose batch comes second."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, state, *, scale=None):
        return self.layer(x) + state[0], scale


ONE = nn.Linear(4, 2)


def _stored(content, module=ONE):
    return stored_examples(content, module, giver="a.npz", where="[inputs] tracing")


def test_arrays_of_samples_give_one_sample_and_a_few():
    x = torch.randn(9, 4)
    one, few = _stored({"input": x})
    assert torch.equal(one.args[0], x[:1]) and torch.equal(few.args[0], x[:4])
    assert len(_stored({"input": x[:1]})) == 1


def test_arrays_whose_first_axes_differ_are_one_call():
    x, state = torch.randn(5, 4), torch.randn(2, 5, 4)
    (call,) = _stored({"state": state, "x": x}, Two())
    assert torch.equal(call.args[0], x) and torch.equal(call.args[1], state)
    assert len(_stored({"x": torch.randn(2, 4), "state": torch.randn(2, 2, 4)}, Two())) == 2


def test_lists_hold_a_whole_input_per_call():
    calls = _stored({"input": [torch.randn(size, 4) for size in (1, 3, 5)]})
    assert [len(call.args[0]) for call in calls] == [1, 3, 5]
    assert len(_stored({"": [torch.randn(2, 4)]})) == 1


def test_a_list_of_calls_is_what_a_function_would_give():
    tuples = [(torch.randn(1, 4), torch.randn(1, 1, 4)), {"x": torch.randn(2, 4), "state": torch.randn(1, 2, 4)}]
    first, second = _stored({"": tuples}, Two())
    assert len(first.args) == 2 and set(second.kwargs) == {"x", "state"}


def test_the_only_array_goes_to_the_first_argument_and_labels_go_nowhere():
    (call,) = _stored({"pictures": torch.randn(1, 4), "labels": torch.zeros(1)})
    assert len(call.args) == 1


def test_dotted_names_become_containers():
    class Nested(nn.Module):
        def forward(self, batch):
            return batch["ids"]

    first, _ = _stored({"batch.ids": torch.ones(3, 2), "batch.mask": torch.ones(3, 2)}, Nested())
    assert set(first.args[0]) == {"ids", "mask"}


def test_numpys_usual_type_becomes_the_models():
    double = torch.randn(1, 4, dtype=torch.float64)
    assert _stored({"input": double})[0].args[0].dtype is torch.float32
    assert _stored({"input": double}, nn.Linear(4, 2).double())[0].args[0].dtype is torch.float64


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"x": torch.zeros(2, 4)}, "A.npz lacks the input 'state'"),
        ({"x": torch.zeros(2, 4), "stat": torch.zeros(2, 4)}, "forward has no input 'stat'"),
        ({"x": [torch.zeros(1, 4)], "state": [torch.zeros(1, 1, 4)] * 2}, "not one per input, equally long"),
        ({"x": [torch.zeros(1, 4)], "state": torch.zeros(1, 1, 4)}, "not one per input, equally long"),
        ({"x": [torch.zeros(1, 4)], "state": ["a"]}, "not one per input, equally long"),
    ],
)
def test_what_does_not_fit_is_told_with_the_key(content, words):
    with pytest.raises(AceError) as caught:
        _stored(content, Two())
    assert words in caught.value.problem.what
    assert (caught.value.problem.code, caught.value.problem.where) == (ErrorCode.BAD_INPUT, "[inputs] tracing")
    assert caught.value.problem.remedy
