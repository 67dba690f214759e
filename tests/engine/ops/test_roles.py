import pytest
import torch
from torch import fx

from ace_studio.engine.ops.roles import is_convolution, is_product, op_role, stores_table
from ace_studio.records.recipes.plan import Precision


def node_of(target: torch._ops.OpOverload, *args: object) -> fx.Node:
    return fx.Graph().call_function(target, args)


@pytest.mark.parametrize(
    ("op", "data", "weight"), [("aten.linear.default", 0, 1), ("aten.addmm.default", 1, 2), ("aten.mm.default", 0, 1)]
)
def test_a_product_says_which_arguments_it_multiplies(op, data, weight):
    role = op_role(op)
    assert role is not None
    assert (role.data, role.weight) == (data, weight)


def test_an_activation_has_no_role():
    assert op_role("aten.relu.default") is None
    assert not is_product("aten.relu.default")


@pytest.mark.parametrize(("transposed", "axis"), [(False, 0), (True, 1)])
def test_a_general_convolution_has_its_channels_where_its_argument_says(transposed, axis):
    node = node_of(torch.ops.aten.convolution.default, None, None, None, [1], [0], [1], transposed)
    role = op_role(str(node.target))
    assert role is not None
    axes = role.weight_axes(node, torch.zeros(2, 3, 5))
    assert (axes.output, axes.is_blocked) == (axis, False)


def test_a_matrix_product_has_its_channels_in_the_last_axis_and_rows_that_groups_can_cut():
    node = node_of(torch.ops.aten.mm.default)
    role = op_role("aten.mm.default")
    assert role is not None
    axes = role.weight_axes(node, torch.zeros(4, 6))
    assert (axes.output, axes.is_blocked) == (1, True)


def test_transposed_convolutions_are_convolutions_and_products_are_not():
    assert is_convolution("aten.conv_transpose2d.input")
    assert is_convolution("onnx.Conv")
    assert not is_convolution("aten.linear.default")


@pytest.mark.parametrize("op", ["aten.embedding.default", "onnx.Gather"])
def test_integer_precisions_store_the_table_of_a_lookup_and_floats_do_not(op):
    assert stores_table(op, Precision.INT4_WEIGHT)
    assert not stores_table(op, Precision.BF16)
    assert not stores_table("aten.linear.default", Precision.INT8_WEIGHT)
