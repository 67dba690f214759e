"""Proposed inputs become cells of the shape table and calls of the module."""

import torch
from torch import nn

from ace_studio.engine.examples.rows import made_up_tensor
from ace_studio.engine.load.proposals import ProposedInput, examples_of, specs_of
from ace_studio.records.tensors import ValueSource


class Net(nn.Module):
    def forward(self, ids, mask=None, *, images=()):
        return ids


IDS = ProposedInput("ids", (2, 3), dtype=torch.int64, below=500)


def test_an_input_is_drawn_below_its_bound_and_the_same_for_the_same_seed():
    (first,), (second,) = (example.args for example in examples_of([(IDS,), (IDS,)], Net()))
    assert first.dtype is torch.int64 and first.shape == (2, 3)
    assert int(first.min()) >= 0 and int(first.max()) < 500
    again = examples_of([(IDS,)], Net())[0].args[0]
    assert torch.equal(first, again) and not torch.equal(first, second)


def test_masks_are_ones_in_the_table_and_in_the_call():
    mask = ProposedInput("mask", (2, 3), dtype=torch.int64, values=ValueSource.ONES)
    assert mask.spec().values == "ones"
    assert examples_of([(IDS, mask)], Net())[0].args[1].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_floats_are_shown_as_what_is_drawn():
    for one, shown in (
        (ProposedInput("ids", (4000,)), "random"),
        (ProposedInput("ids", (4000,), below=7), "random 0..6"),
        (ProposedInput("ids", (4000,), span=(0.0, 255.0)), "random 0..255"),
    ):
        spec = one.spec()
        assert spec.values == shown
        assert torch.equal(examples_of([(one,)], Net())[0].args[0], made_up_tensor(spec, number=0))


def test_integers_below_a_vocabulary_are_proposed_with_its_bounds():
    small = ProposedInput("ids", (1,), dtype=torch.int64, below=7)
    assert (small.spec().values, IDS.spec().values) == ("random 0..6", "random 0..499")


def test_rows_become_calls_with_leading_parameters_by_position():
    images = [ProposedInput(f"images.{number}", (3, 4)) for number in range(2)]
    (example,) = examples_of([(*images, IDS)], Net())
    assert [tuple(tensor.shape) for tensor in example.args] == [(2, 3)]
    assert [tuple(tensor.shape) for tensor in example.kwargs["images"]] == [(3, 4), (3, 4)]


def test_a_row_has_a_cell_for_every_input():
    (row,) = specs_of([(IDS,)])
    assert (row["ids"].shape, row["ids"].dtype) == ((2, 3), "int64")
