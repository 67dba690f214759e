from __future__ import annotations

import pytest
import torch
from torch import nn

from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.targets.torch.read_back import executed_nodes, kernels_of
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.records.recipes.plan import Precision


class ProductBehindRelu(nn.Module):
    """A product of computed values whose input comes from an activation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.relu(x), x.transpose(-1, -2))


def test_a_product_in_eager_torch_is_its_own_kernel_and_takes_over_none_in_front_of_it():
    example = torch.randn(2, 4, 8)
    graph_module = flat_graph(torch.export.export(ProductBehindRelu().eval(), (example,)))
    product = next(node for node in graph_module.graph.nodes if node.target is torch.ops.aten.matmul.default)
    kernels = kernels_of(
        executed_nodes(graph_module, [example]), graph_module, {}, heavy=frozenset({product.meta[OP_ID]})
    )
    assert {kernel.op_ids: kernel.is_arithmetic for kernel in kernels} == {
        ("relu",): False,
        ("transpose",): False,
        ("matmul",): True,
    }


class WritesIntoItsInput(nn.Module):
    """A forward that changes the tensor that it was given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.add_(1))


def test_the_example_stays_as_it_is_if_the_graph_writes_into_it():
    example = torch.randn(2, 4)
    before = example.clone()
    graph_module = flat_graph(torch.export.export(WritesIntoItsInput().eval(), (example,)))
    executed_nodes(graph_module, [example])
    assert torch.equal(example, before)


@pytest.mark.parametrize("planned", [Precision.INT8_DYNAMIC, Precision.INT8_STATIC])
def test_a_kernel_of_8_bit_products_is_dynamic_or_static_as_its_op_was_planned(planned):
    graph_module = flat_graph(torch.export.export(nn.Linear(4, 2).eval(), (torch.randn(2, 4),)))
    run = [CompiledNode("torch.ops.onednn.qlinear_pointwise.default", ("linear",), torch.float32)]
    (kernel,) = kernels_of(run, graph_module, {"linear": planned}, heavy=frozenset({"linear"}))
    assert (kernel.op_ids, kernel.precision) == (("linear",), planned)
