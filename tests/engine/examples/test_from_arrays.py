"""Calls out of what a file holds: samples, whole inputs, lists of calls; and what is said of names that do not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ace_studio.engine.examples.from_arrays import stored_examples
from ace_studio.records.errors import AceError, ErrorCode


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
