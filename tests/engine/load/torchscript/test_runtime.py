"""Operators of translated programs on numbers, lists and tensors."""

import pytest
import torch
from torch.nn import functional

from ace_studio.engine.load.torchscript import runtime


def test_a_tensor_with_one_element_becomes_a_plain_number():
    assert runtime.as_int(torch.tensor(3)) == 3
    assert runtime.as_float(torch.tensor(2.5)) == 2.5
    assert runtime.as_bool(torch.tensor(True)) is True
    assert (runtime.as_int(3.7), runtime.as_float(3), runtime.as_bool(0)) == (3, 3.0, False)


@pytest.mark.parametrize(("number", "dtype"), [(True, torch.bool), (3, torch.int64), (2.5, torch.float32)])
def test_a_number_becomes_a_tensor_of_the_type_that_torchscript_gives_it(number, dtype):
    made = runtime.number_as_tensor(number)
    assert (made.dtype, made.item()) == (dtype, number)
    assert runtime.number_as_tensor(made) is made


def test_an_element_type_equals_its_number():
    assert runtime.same(torch.float32, 6) and runtime.same(6, torch.float32)
    assert not runtime.same(torch.float32, 7)
    assert runtime.same([1, 2], [1, 2])


@pytest.mark.parametrize(("rounding", "result"), [(None, -3.5), ("floor", -4), ("trunc", -3)])
def test_numbers_are_divided_with_the_rounding_of_torch(rounding, result):
    assert runtime.divide(-7, 2, rounding) == result == torch.div(torch.tensor(-7), 2, rounding_mode=rounding).item()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_the_general_convolution_is_the_plain_one(dims, is_transposed):
    source, weight = torch.randn(1, 2, *[5] * dims), torch.randn(2, 2, *[3] * dims)
    lists = ([2] * dims, [1] * dims, [1] * dims)
    found = runtime.convolution(source, weight, None, *lists, is_transposed, [0] * dims, 1, False, False)
    name = f"conv_transpose{dims}d" if is_transposed else f"conv{dims}d"
    torch.testing.assert_close(found, getattr(functional, name)(source, weight, stride=2, padding=1))


def test_torch_computes_if_an_argument_is_a_tensor_and_python_if_none_is():
    add = torch.ops.aten.add.Tensor
    assert runtime.call("add", add, (2, 3), {"alpha": 2}) == 8
    assert runtime.call("add", add, (torch.tensor(2), 3), {"alpha": 2}).item() == 8


def test_lists_are_changed_in_place():
    items = [1, 2, 3]
    assert runtime.append(items, 4) is items
    assert runtime.pop(items) == 4
    runtime.set_item(items, 0, 9)
    assert items == [9, 2, 3]
    assert runtime.sliced(items, 1, 2**63 - 1) == [2, 3]


def test_a_tensor_is_made_with_torchscript_s_number_for_its_type():
    assert runtime.make_tensor([1, 2], 7).dtype is torch.float64


def test_the_program_s_own_error_is_raised_with_its_message():
    with pytest.raises(RuntimeError, match="too small"):
        runtime.raise_error("too small", "ValueError")
