"""Which parallel branches one convolution could replace, and the card about them."""

import pytest
import torch
from msgspec.structs import replace
from torch import nn

from ace_studio.engine.advice.branches import parallel_branches
from ace_studio.engine.advice.speed_rules import merge_the_branches
from ace_studio.engine.graph_table import build_graph_table
from tests.engine.advice.finished_run import RUN, facts, op_report


class Block(nn.Module):
    """A block as RepVGG trains it: a wide and a narrow convolution and the input itself, each with its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.Conv2d(4, 4, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(3))

    def forward(self, x):
        parts = self.wide(x), self.narrow(x), x
        first, second, third = (norm(part) for norm, part in zip(self.norms, parts, strict=True))
        return torch.relu(first + second + third)


class Residual(Block):
    """One convolution beside the input, and a branch with an activation: neither is worth merging."""

    def forward(self, x):
        x = x + self.norms[0](self.wide(x))
        return x + self.norms[1](torch.relu(self.narrow(x)))


class ReadTwice(Block):
    """A branch whose result is read elsewhere too has to stay."""

    def forward(self, x):
        first, second = self.wide(x), self.narrow(x)
        return first + second, second


class BesideOther(Block):
    """Two branches of one value and something else are added."""

    def forward(self, x):
        return (torch.sigmoid(x) + self.wide(x)) + self.narrow(x)


def table_of(module):
    with torch.no_grad():
        return build_graph_table(torch.export.export(module.eval(), (torch.randn(1, 4, 8, 8),)), module=module)


def kinds(table):
    ops = dict(zip(table.op_id, table.op, strict=True))
    return [sorted(ops[op_id].split(".")[1] for op_id in group) for group in parallel_branches(table)]


@pytest.mark.parametrize(
    ("module", "found"),
    [
        (Block(), [["add"] * 2 + ["batch_norm"] * 3 + ["conv2d"] * 2]),
        (nn.Sequential(Block(), Block()), [["add"] * 2 + ["batch_norm"] * 3 + ["conv2d"] * 2] * 2),
        (Residual(), []),
        (ReadTwice(), []),
        (BesideOther(), [["add", "conv2d", "conv2d"]]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_only_what_one_convolution_could_do_is_found(module, found):
    assert kinds(table_of(module)) == found


def test_the_card_promises_what_all_but_the_dearest_op_of_each_block_takes():
    graph = table_of(nn.Sequential(Block(), Block()))
    shares = {"conv2d": 0.3, "conv2d_1": 0.1, "conv2d_2": 0.3, "conv2d_3": 0.1, "add": 0.1, "relu": 0.1}
    run = replace(RUN, ops=tuple(op_report(op_id, share=share) for op_id, share in shares.items()))
    card = merge_the_branches(facts(run, graph=graph))
    assert card.kind == "merge-branches" and "2 blocks" in card.title and "30%" in card.why
    assert card.estimated_gain == pytest.approx(1 / 0.7, abs=0.01)
    assert merge_the_branches(facts(replace(run, ops=()), graph=graph)) is None
    assert merge_the_branches(facts(run)) is None
