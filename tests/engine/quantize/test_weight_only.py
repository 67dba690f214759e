"""Weights in 8 and 4 bits: the packed kernels compute what the grids say, at every size, and the program shrinks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.apply import RewrittenGraph, apply_plan
from ace_studio.engine.quantize.fake_quantize import round_weight
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.weight_only import kernel_group, pack_weights, packed_nibbles, weight_only_problem
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision, Scheme
from tests.engine.captured import captured_of

BF16_DB = 45.0
"""What activations in bfloat16 cost at most."""


class Decoder(nn.Module):
    """A table, a layer with a bias on [n, t, k], a product written as addmm, and a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 40)
        self.up = nn.Linear(40, 72)
        self.down = nn.Parameter(torch.randn(72, 40) / 8)
        self.shift = nn.Parameter(torch.randn(40))
        self.mix = nn.Conv1d(40, 40, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        wide = torch.relu(self.up(self.table(tokens)))
        rows = torch.addmm(self.shift, wide.flatten(0, 1), self.down)
        return self.mix(rows.unflatten(0, tokens.shape).transpose(1, 2))


@pytest.fixture(scope="module")
def captured() -> CapturedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Decoder().eval()
    return captured_of(module, *(torch.randint(0, 50, shape) for shape in ((2, 5), (3, 7))))


def rewritten(captured: CapturedModel, plan: Plan) -> RewrittenGraph:
    bound = bind_plan(plan, captured.table, op_problem=TARGETS["eager"].op_problem)
    return apply_plan(captured, bound, calibration=lambda: captured.examples, reporter=Reporter())


def stored_bytes(module: nn.Module) -> int:
    return sum(one.numel() * one.element_size() for one in module.state_dict().values())


def targets_of(found: RewrittenGraph) -> list[str]:
    return [str(node.target) for node in found.graph_module.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize(
    ("precision", "kernel", "at_least_db", "at_most"),
    [
        (Precision.INT8_WEIGHT, "aten._weight_int8pack_mm.default", 35.0, 0.5),
        (Precision.INT4_WEIGHT, "aten._weight_int4pack_mm_for_cpu.default", 14.0, 0.65),
    ],
)
def test_the_program_shrinks_and_stays_close_at_every_size(captured, precision, kernel, at_least_db, at_most) -> None:
    found = rewritten(captured, Plan(default=precision))
    assert targets_of(found).count(kernel) == 2
    assert stored_bytes(found.graph_module) <= at_most * stored_bytes(captured.module)
    for example in captured.examples:
        with torch.no_grad():
            reference = example.call(captured.module)
            result = found.graph_module(*example.tensors())
        assert sqnr_db([reference], list(result)) >= at_least_db


def test_four_bit_weights_are_those_of_the_simulated_grid() -> None:
    torch.manual_seed(0)
    weight, x = torch.randn(24, 80), torch.randn(5, 80)
    packed, scales = packed_nibbles(weight, group_size=32)
    assert packed.shape == (32, 48)
    padded = torch.nn.functional.pad(x, (0, 16)).bfloat16()
    got = torch.ops.aten._weight_int4pack_mm_for_cpu(padded, packed, 32, scales)[:, :24].float()
    axes = WeightAxes(output=0, is_blocked=True)
    grid = round_weight(weight, axes, precision=Precision.INT4_WEIGHT, scheme=Scheme(group_size=32))
    assert sqnr_db([x @ grid.T], [got]) > BF16_DB
    assert sqnr_db([x @ weight.T], [got]) < BF16_DB / 2  # what is compared is the grid, not the weight itself


def test_a_larger_group_takes_less_room_and_keeps_less(captured) -> None:
    sizes, fidelities = [], []
    for group in (32, 128):
        found = rewritten(captured, Plan(default=Precision.INT4_WEIGHT, group_size=group))
        operands = [node.args[2] for node in found.graph_module.graph.nodes if "int4pack" in str(node.target)]
        assert operands == [group, group]
        sizes.append(sum(one.numel() for name, one in found.graph_module.state_dict().items() if "scales" in name))
        example = captured.example
        with torch.no_grad():
            reference, result = example.call(captured.module), found.graph_module(*example.tensors())
        fidelities.append(sqnr_db([reference], list(result)))
    assert sizes[1] < sizes[0]
    assert fidelities[1] < fidelities[0]


@pytest.mark.parametrize(("asked", "taken"), [(0, 256), (1, 32), (32, 32), (100, 64), (128, 128), (999, 256)])
def test_the_group_is_one_that_the_kernel_has(asked, taken) -> None:
    assert kernel_group(asked) == taken


def test_another_group_than_asked_for_is_told(captured) -> None:
    found = rewritten(captured, Plan(default=Precision.INT4_WEIGHT, group_size=100))
    assert "groups of 64" in found.refused["linear"]
    assert "not 100" in found.refused["linear"]


@pytest.mark.parametrize("precision", [Precision.INT4_WEIGHT, Precision.INT8_DYNAMIC])
def test_a_table_has_8_bits_at_any_integer_precision(captured, precision) -> None:
    bound = bind_plan(Plan(default=precision), captured.table, op_problem=TARGETS["inductor"].op_problem)
    found = apply_plan(captured, bound, calibration=lambda: captured.examples, reporter=Reporter())
    tables = [one for one in found.graph_module.state_dict().values() if tuple(one.shape) == (50, 40)]
    assert [one.dtype for one in tables] == [torch.int8]
    assert "8 bits" in found.refused["embedding"]
    assert bound.precision_of("embedding") is precision


def test_a_rule_packs_one_op_and_leaves_the_others(captured) -> None:
    plan = Plan(rules=(PlanRule(match="module:up", precision=Precision.INT4_WEIGHT),))
    names = targets_of(rewritten(captured, plan))
    assert names.count("aten._weight_int4pack_mm_for_cpu.default") == 1
    assert "aten.addmm.default" in names


def test_ops_that_cannot_keep_packed_weights_say_why(captured) -> None:
    assert "unpacked at every call" in weight_only_problem("aten.conv1d.default", Precision.INT8_WEIGHT)
    assert "no stored weight" in weight_only_problem("aten.relu.default", Precision.INT4_WEIGHT)


def test_a_computed_weight_is_refused_with_the_reason() -> None:
    class Computed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.matmul(x, x.transpose(0, 1))

    program = torch.export.export(Computed().eval(), (torch.randn(3, 4),))
    from ace_studio.engine.quantize.flat_graph import flat_graph

    refused = pack_weights(flat_graph(program), {"matmul": Precision.INT8_WEIGHT}, group_size=lambda _: 32)
    assert refused == {"matmul": "its weight is computed, not stored"}
