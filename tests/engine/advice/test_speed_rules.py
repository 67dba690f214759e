"""Rules about speed and size: when each gives a card, what it estimates, and that its change fits the recipe."""

import pytest
import torch
from msgspec.structs import replace
from torch import nn

from ace_studio.engine.advice.speed_rules import (
    go_back_to_fp32,
    lower_the_precision,
    mend_the_break,
    merge_the_branches,
    move_fewer_bytes,
    parallel_branches,
    store_smaller_weights,
    take_channels_away,
    use_another_target,
    use_more_threads,
)
from ace_studio.engine.graph_table import build_graph_table
from ace_studio.records.advice import AdviceQuantity
from ace_studio.records.messages import TargetReport
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, MeasureChoice, Objective, TargetsChoice
from ace_studio.records.results import Bound, CaptureReport, GraphBreak, RunStatus
from tests.engine.advice.finished_run import (
    EVERY,
    FLOAT_RUN,
    HERE,
    RECIPE,
    RUN,
    applies,
    facts,
    latency,
    op_report,
    table,
)


def test_a_runtime_that_is_not_installed_comes_with_its_install_line():
    missing = TargetReport(name="openvino", label="OpenVINO", available=False, install="pip install openvino")
    inductor = replace(FLOAT_RUN, target="inductor")
    card = use_another_target(facts(inductor, targets=(missing,)))
    assert "pip install openvino" in card.do_first and card.estimated_gain == pytest.approx(1.8 / 1.5, abs=0.01)
    assert use_another_target(facts(replace(inductor, speedup=1.79), targets=(missing,))) is None


def test_a_model_that_gains_little_is_not_promised_what_others_gain():
    slow = replace(FLOAT_RUN, target="inductor", speedup=0.16)
    missing = TargetReport(name="openvino", label="OpenVINO", available=False, install="pip install openvino")
    assert use_another_target(facts(slow, targets=(missing,))).estimated_gain == pytest.approx(1.8 / 1.5, abs=0.01)


def test_a_runtime_that_was_left_out_of_the_recipe_can_be_applied():
    recipe = replace(RECIPE, targets=TargetsChoice(names=("inductor",)))
    given = facts(replace(RUN, target="inductor"), recipe=recipe, targets=HERE)
    card = use_another_target(given)
    assert card.kind == "target-openvino" and card.change and not card.do_first
    assert applies(card, given).targets.names == ("auto",)
    tried = (RUN, replace(RUN, target="openvino", status=RunStatus.FAILED))
    assert use_another_target(facts(recipe=recipe, targets=HERE, runs=tried)) is None


def test_a_plan_that_is_slower_than_fp32_there_is_advised_against():
    recipe = replace(
        RECIPE, plan=Plan(default=Precision.INT8_STATIC, rules=(PlanRule(match="id:linear", precision=Precision.BF16),))
    )
    slower = replace(RUN, float_speedup=0.5, float_speedup_low=0.4, float_speedup_high=0.6)
    given = facts(slower, recipe=recipe)
    card = go_back_to_fp32(given)
    assert card.estimated_gain == 2.0 and card.quantity is AdviceQuantity.LATENCY
    plan = applies(card, given).plan
    assert plan.default is Precision.FP32 and not plan.rules
    assert go_back_to_fp32(facts(replace(slower, float_speedup_high=1.05), recipe=recipe)) is None
    assert go_back_to_fp32(facts(replace(slower, float_speedup=None, float_speedup_high=None), recipe=recipe)) is None
    assert go_back_to_fp32(facts(slower, recipe=replace(recipe, goal=Goal(optimize=Objective.SIZE)))) is None


def test_a_lower_precision_is_advised_where_there_is_accuracy_to_give():
    recipe = replace(RECIPE, goal=Goal(max_drop=0.01))
    with_slack, without = replace(FLOAT_RUN, metric_drop=0.0), replace(FLOAT_RUN, metric_drop=0.009)
    given = facts(with_slack, recipe=recipe, targets=HERE)
    card = lower_the_precision(given)
    assert card.kind == "precision-int8-static" and "1.00% that is allowed only 0.00% is used" in card.why
    assert card.estimated_gain == pytest.approx(5.3 / 1.8, abs=0.01)
    assert applies(card, given).plan == Plan(default=Precision.INT8_STATIC)
    assert lower_the_precision(facts(without, recipe=recipe, targets=HERE)).kind == "precision-bf16"


def test_a_precision_that_no_target_here_can_do_is_not_advised():
    cannot = TargetReport(
        name="openvino", label="OpenVINO", available=True, precisions=dict.fromkeys(EVERY, "no such kernels")
    )
    assert lower_the_precision(facts(FLOAT_RUN, targets=(cannot,))) is None


def test_layers_that_wait_for_memory_get_smaller_weights():
    ops = (op_report("linear", share=0.8, bound=Bound.MEMORY, bytes=8_000_000),)
    given = facts(replace(FLOAT_RUN, ops=ops), targets=HERE)
    card = move_fewer_bytes(given)
    assert card.change == {"plan": {"default": "int8-weight"}} and "80% of the time" in card.why
    assert card.estimated_gain == pytest.approx(1 / (1 - 0.8 * 0.75), abs=0.01)
    others = {"bound": Bound.COMPUTE, "bytes": 8_000_000}, {"bound": Bound.MEMORY, "bytes": 20_000}
    for values in others:
        ops = (op_report("linear", share=0.8, **values),)
        assert move_fewer_bytes(facts(replace(FLOAT_RUN, ops=ops), targets=HERE)) is None


def test_the_smallest_weights_are_for_those_who_want_size():
    recipe = replace(RECIPE, goal=Goal(optimize=Objective.SIZE))
    card = store_smaller_weights(facts(recipe=recipe, targets=HERE))
    assert card.quantity is AdviceQuantity.SIZE and "80% of the weights" in card.why
    assert card.estimated_gain == pytest.approx(1 / (1 - 0.8 * (1 - 0.5625)), abs=0.01)
    assert store_smaller_weights(facts(targets=HERE)) is None


def test_pruning_is_advised_for_networks_with_channels_and_says_what_it_needs():
    given = facts()
    card = take_channels_away(given)
    assert applies(card, given).prune.method == "structured" and "ace-studio[prune]" not in card.do_first
    assert "ace-studio[prune]" in take_channels_away(facts(library=False)).do_first
    assert take_channels_away(facts(graph=table(flops=(10, 10, 10)))) is None
    assert take_channels_away(facts(recipe=applies(card, given))) is None


def test_pruning_is_counted_in_bytes_where_bytes_are_what_is_missed():
    assert take_channels_away(facts()).quantity is AdviceQuantity.LATENCY
    large = replace(RUN, size_bytes=5_000_000)
    card = take_channels_away(facts(large, recipe=replace(RECIPE, goal=Goal(max_size_mb=4.0))))
    assert card.quantity is AdviceQuantity.SIZE
    assert card.estimated_gain == pytest.approx(1 / 0.49, abs=0.01)  # 0.7 of the channels on both sides of a weight
    assert "a file 2.0 times smaller" in card.estimate


def test_more_threads_are_advised_where_there_are_cores():
    given = facts(cores=4)
    card = use_more_threads(given)
    assert applies(card, given).measure.threads == "all" and card.estimated_gain == pytest.approx(4**0.7, abs=0.01)
    assert use_more_threads(facts(cores=1)) is None
    assert use_more_threads(facts(cores=4, recipe=replace(RECIPE, measure=MeasureChoice(threads="all")))) is None


def test_more_threads_are_not_advised_for_short_calls_nor_where_speed_is_not_what_is_missing():
    assert use_more_threads(facts(replace(RUN, latency_ms=latency(0.05)), cores=4)) is None
    for goal in (Goal(max_size_mb=0.5), Goal(min_sqnr_db=30.0), Goal(optimize=Objective.SIZE)):
        assert use_more_threads(facts(cores=4, recipe=replace(RECIPE, goal=goal))) is None


def test_the_break_that_costs_most_is_named():
    breaks = tuple(GraphBreak(file="/a/model.py", line=line, reason="why", ops_left_eager=line) for line in (3, 9))
    capture = CaptureReport(rung="partial", ops=90, seconds=1.0, graph_breaks=breaks, ops_left_eager=12)
    card = mend_the_break(facts(capture=capture))
    assert "model.py:9" in card.title and "12 of 102" in card.why and card.do_first


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
