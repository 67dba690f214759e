"""Simulations know what a target rounds: they foretell the fidelity of what is built."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import tensor_leaves
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.fidelity import fidelity_db
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.pt2e import is_torchao_installed
from ace_studio.engine.quantize.simulate import PAIRS, READS, RESULTS, Simulator, float_graph
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.executorch.quantize import quantize_for_xnnpack
from ace_studio.engine.targets.shared.int8_styles import most_rounding
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import Plan, Precision, WeightGranularity
from tests.engine.targets.conftest import MODELS, bound, captured_model, make_job
from tests.engine.targets.onnx_cases import capture, job_for
from tests.tiny_models import TinyModel

INT8 = Plan(default=Precision.INT8_STATIC)
PLAIN = RangeChoice()
NEAR_DB = 0.5 if int8_weight_bits() == 8 else 5.0
"""ONNX Runtime's quantizer has another grid of 7 bits than the simulation."""


def _foretold(captured, plan, style):
    graph = float_graph(captured)
    examples = [one.tensors() for one in captured.examples]
    simulator = Simulator(graph, ranges=observe_ranges(graph.graph_module, examples), style=style)
    return simulator.fidelity_db(plan, examples)


def _found(captured, run):
    """As the simulator has it: over all examples, the worst output."""
    with torch.no_grad():
        wide, built = ([tensor_leaves(one.call(each)) for one in captured.examples] for each in (captured.module, run))
    return fidelity_db(wide, built)


@pytest.mark.parametrize(
    "target", [name for name in ("onnxruntime", "executorch", "litert") if TARGETS[name].available().ok]
)
@pytest.mark.parametrize("model", list(MODELS))
def test_what_is_built_is_as_good_as_foretold(target, model, lower):
    if target == "litert" and model == "text_model":
        pytest.skip("it refuses two dynamic sizes")
    captured = captured_model(model)
    lowered = lower(target, Precision.INT8_STATIC, model)
    plan = bound(target, captured, Precision.INT8_STATIC)
    foretold = _foretold(captured, plan, TARGETS[target].int8_style(INT8, PLAIN))
    assert foretold == pytest.approx(_found(captured, lowered), abs=NEAR_DB)


@pytest.mark.skipif(not is_torchao_installed(), reason="needs torchao")
@pytest.mark.parametrize("granularity", list(WeightGranularity))
def test_the_graph_that_xnnpack_gets_is_as_good_as_foretold(granularity, tmp_path):
    captured = captured_model("conv_net")
    plan = bind_plan(
        Plan(default=Precision.INT8_STATIC, weights=granularity),
        captured.table,
        op_problem=TARGETS["executorch"].op_problem,
    )
    rewritten = quantize_for_xnnpack(flat_graph(captured.program), make_job(captured, plan, tmp_path))
    found = _found(captured, lambda *tensors: rewritten.graph_module(*tensors)[0])
    assert _foretold(captured, plan, RESULTS) == pytest.approx(found, abs=0.5)


class MaskedAttention(nn.Module):
    """One head over x [n, 6, 8] that looks at the first places of each element only; keep [n]."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        padding = (torch.arange(6) >= keep[:, None])[:, None]
        scores = (self.query(x) @ self.key(x).transpose(-1, -2)).masked_fill(padding, float("-inf"))
        return self.head((scores.softmax(-1) @ self.value(x)).relu())


@pytest.mark.skipif(not TARGETS["onnxruntime"].available().ok, reason="needs ONNX Runtime")
def test_a_masked_attention_is_as_good_as_foretold() -> None:
    torch.manual_seed(0)
    examples = tuple((torch.randn(n, 6, 8), torch.randint(1, 7, (n,))) for n in (2, 5, 3))
    captured = capture(TinyModel(MaskedAttention().eval(), examples))
    job = job_for(TARGETS["onnxruntime"], captured, Precision.INT8_STATIC)
    foretold = _foretold(captured, job.plan, PAIRS)
    assert foretold == pytest.approx(_found(captured, TARGETS["onnxruntime"].lower(job)), abs=NEAR_DB)


class CausalScores(nn.Module):
    """Scores with a stored mask of large negative numbers added to the very product; x [n, 6, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(6, 4)
        self.register_buffer("mask", torch.full((6, 6), -1e9).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(-1, -2) + self.mask
        return self.head(scores.softmax(-1))


@pytest.mark.parametrize("target", [one for one in ("onnxruntime", "openvino") if TARGETS[one].available().ok])
def test_a_stored_mask_that_is_added_to_a_product_takes_no_grid(target: str) -> None:
    torch.manual_seed(0)
    captured = capture(TinyModel(CausalScores().eval(), tuple((torch.randn(n, 6, 8),) for n in (2, 5, 3))))
    job = job_for(TARGETS[target], captured, Precision.INT8_STATIC)
    foretold = _foretold(captured, job.plan, TARGETS[target].int8_style(INT8, PLAIN))
    assert foretold > 25.0
    assert foretold == pytest.approx(_found(captured, TARGETS[target].lower(job)), abs=2 * NEAR_DB)


def test_what_is_found_once_for_all_targets_follows_the_one_that_rounds_most():
    def most(*names):
        return most_rounding(TARGETS[name].int8_style(INT8, PLAIN) for name in names)

    assert most("inductor", "onnxruntime", "executorch") is PAIRS
    assert most("inductor", "executorch") is RESULTS
    assert most() is READS
