"""Cost formulas, against torch's own counter and against sums done by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ace_studio.engine.graph_table import build_graph_table
from ace_studio.engine.ops.costs import OpCall, count_flops
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import operator_name
from tests import tiny_models

COUNTED_BY_TORCH = {
    "conv1d", "conv2d", "conv3d", "conv_transpose2d", "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum",
    "scaled_dot_product_attention",
}  # fmt: skip
"""torch counts matrix products, convolutions and attention, and nothing else."""


def table_of(module: nn.Module, *args: Any, **kwargs: Any) -> GraphTable:
    with torch.no_grad():
        program = torch.export.export(module.eval(), args, kwargs, strict=False)
    return build_graph_table(program, module=module)


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 5))
        self.b = nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.addmm(self.b, x, self.w)
        y = torch.bmm(y.expand(3, -1, -1), y.t().expand(3, -1, -1))
        return torch.matmul(y, y) + torch.einsum("bij,bjk->bik", y, y)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Conv1d(4, 8, 3, stride=2)
        self.grouped = nn.Conv2d(8, 8, 3, groups=4, padding=1, dilation=1)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.grouped(self.line(x).unsqueeze(-1).expand(-1, -1, -1, 5)))


class Attends(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize(
    ("module", "args"),
    [
        (tiny_models.conv_net().module, tiny_models.conv_net().examples[1]),
        (tiny_models.mlp().module, tiny_models.mlp().examples[1]),
        (Products(), (torch.randn(7, 6),)),
        (Convolutions(), (torch.randn(2, 4, 11),)),
        (Attends(), (torch.randn(2, 3, 7, 8), torch.randn(2, 3, 9, 8), torch.randn(2, 3, 9, 8))),
        (nn.Linear(5, 3), (torch.randn(2, 4, 5),)),
    ],
)
def test_products_are_counted_as_torch_counts_them(module: nn.Module, args: tuple[Tensor, ...]) -> None:
    table = table_of(module, *args)
    ours = sum(table.flops[row] for row in table.op_rows() if operator_name(table.op[row]) in COUNTED_BY_TORCH)
    # The CPU's own attention kernel has no formula in torch's counter; the plain one is made of products that have.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        module(*args)
    assert ours == counter.get_total_flops()
    assert ours > 0


def test_text_models_are_counted_as_torch_counts_them() -> None:
    tiny = tiny_models.text_model()
    table = table_of(tiny.module, **tiny.examples[1])
    ours = sum(table.flops[row] for row in table.op_rows() if operator_name(table.op[row]) in COUNTED_BY_TORCH)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        tiny.module(**tiny.examples[1])
    assert ours == counter.get_total_flops()


def test_a_recurrent_cell_counts_both_of_its_products() -> None:
    table = table_of(nn.LSTMCell(8, 16), torch.randn(4, 8), (torch.randn(4, 16), torch.randn(4, 16)))
    row = table.op.index("aten.lstm_cell.default")
    assert table.flops[row] == 2 * 4 * 64 * (8 + 16)


@pytest.mark.parametrize(
    ("function", "flops"),
    [
        (lambda x: x + x, 24),
        (torch.relu, 24),
        (lambda x: x.sum(-1), 24),
        (lambda x: F.softmax(x, -1), 120),
        (lambda x: F.max_pool2d(x.reshape(1, 1, 4, 6), 2), 24),
        (lambda x: F.avg_pool2d(x.reshape(1, 1, 4, 6), (2, 3)), 24),
        (lambda x: x.reshape(24).unsqueeze(0).clone(), 0),
    ],
)
def test_small_ops_are_counted_per_element(function: Any, flops: int) -> None:
    class Wrapped(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return function(x)

    assert sum(table_of(Wrapped(), torch.randn(4, 6)).flops) == flops


def test_an_op_that_nobody_knows_costs_nothing_rather_than_an_error() -> None:
    assert count_flops(OpCall(op="mine.strange.default", inputs={}, outputs=((2, 3),))) == 0
    assert count_flops(OpCall(op="aten.linear.default", inputs={}, outputs=((2, 3),))) == 0
