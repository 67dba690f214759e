import sys

import pytest
import torch

from ace_studio.engine.improve.gptq import gptq, gptq_rows
from ace_studio.engine.improve.job import ImproveJob
from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize import affine
from ace_studio.engine.quantize.fake_quantize import round_weight
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.records.recipes.plan import Plan, Precision, Scheme
from ace_studio.records.recipes.recipe import ImproveMethod
from tests.engine.improve.models import examples_of, improved_by, seeded


def test_gptq_helps_at_four_bits_where_inputs_go_together(block):
    mixing = torch.randn(6, 32, generator=seeded(5))
    examples = [[torch.randn(40, 6, generator=seeded(index)) @ mixing] for index in range(8)]
    found = improved_by(block, Plan(default=Precision.INT4_WEIGHT), [ImproveMethod.GPTQ], examples)
    (report,) = found.reports
    assert report.kept
    assert report.ops == 3


def test_gptq_gives_the_same_however_many_layers_it_looks_at_in_one_pass(block, monkeypatch):
    plan = bind_plan(Plan(default=Precision.INT4_WEIGHT), block.table, op_problem=lambda op, precision: "")
    job = ImproveJob(block, plan, examples_of(3, 32), RangeChoice(), Reporter())
    together = gptq(job, [])
    monkeypatch.setattr(sys.modules[gptq.__module__], "PRODUCT_BYTES", 1)
    apart = gptq(job, [])
    assert set(together.tensors) == {"up.weight", "gate.weight", "down.weight"}
    for name, value in together.tensors.items():
        torch.testing.assert_close(apart.tensors[name], value)


@pytest.mark.parametrize(("bits", "precision"), [(4, Precision.INT4_WEIGHT), (8, Precision.INT8_WEIGHT)])
@pytest.mark.parametrize("group_size", [0, 16, 32])
def test_weights_of_gptq_lie_on_the_grid_that_a_target_finds_for_them(bits, precision, group_size):
    rows = torch.randn(12, 40, generator=seeded(1))
    inputs = torch.randn(200, 40, generator=seeded(2)) @ torch.randn(40, 40, generator=seeded(3))
    scheme, axes = Scheme(group_size=group_size), WeightAxes(output=0, is_blocked=True)
    rounded = gptq_rows(rows, (inputs.t() @ inputs).double(), bits=bits, group_size=group_size)
    again = round_weight(rounded, axes, precision=precision, scheme=scheme)
    torch.testing.assert_close(again, rounded, rtol=1e-5, atol=1e-6)
    plain = round_weight(rows, axes, precision=precision, scheme=scheme)
    error = [float((inputs @ (one - rows).t()).square().sum()) for one in (rounded, plain)]
    assert error[0] < 0.8 * error[1]


def test_gptq_stays_on_the_device_of_the_rows(monkeypatch):
    monkeypatch.setattr(affine, "_check_range", lambda low, high: None)  # looks at values, and meta tensors have none
    rows, products = torch.empty(4, 8, device="meta"), torch.empty(8, 8, device="meta", dtype=torch.float64)
    assert gptq_rows(rows, products, bits=4, group_size=4).device.type == "meta"
