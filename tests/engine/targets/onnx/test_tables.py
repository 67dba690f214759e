"""Tables of lookups: 8 bits at every integer precision, small in the file, told as what they are, and to be kept."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")
pytest.importorskip("nncf")

import torch
from torch import Tensor, nn

from ace_studio.engine.export import artifact_bytes
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import PlanRule, Precision
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel

ROWS, WIDTH = 500, 24


class Words(nn.Module):
    """A table of 500 x 24 read by two lookups, whose rows are of very different size, and two small layers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)
        self.table.weight.data *= torch.logspace(-2, 1, ROWS)[:, None]
        self.first, self.last = nn.Linear(WIDTH, 32), nn.Linear(32, 4)

    def forward(self, tokens: Tensor, others: Tensor) -> Tensor:
        mixed = self.table(tokens) * self.table(others).tanh()
        return self.last(torch.relu(self.first(mixed)))


@pytest.fixture(scope="module")
def words():
    torch.manual_seed(0)
    examples = tuple(tuple(torch.randint(0, ROWS, (n, 6)) for _ in range(2)) for n in (2, 3))
    return capture(TinyModel(Words().eval(), examples))


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
@pytest.mark.parametrize(
    "precision", [Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.INT4_WEIGHT]
)
def test_an_integer_precision_stores_the_table_in_8_bits(words, name, precision, tmp_path):
    target = TARGETS[name]
    lowered = target.lower(job_for(target, words, precision))
    path = lowered.save(tmp_path)
    assert artifact_bytes(path) < 3.2 * ROWS * WIDTH + 20_000
    example = words.examples[0]
    assert sqnr_db(words.module(*example.args), lowered(*example.args)) > (12 if "4" in precision[:5] else 25)
    flat = target.load(path, threads=1)(*example.tensors())[0]
    torch.testing.assert_close(flat, lowered(*example.args), rtol=1e-3, atol=1e-4)
    table = next(one for one in lowered.read_back() if one.op_id == "embedding")
    is_widened = name == "openvino" and precision is Precision.INT8_STATIC
    assert table.actual == (Precision.FP32 if is_widened else Precision.INT8_WEIGHT)
    assert precision is Precision.INT8_WEIGHT or "8 bits" in table.reason


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_rule_keeps_the_table_float(words, name, tmp_path):
    target = TARGETS[name]
    rules = (PlanRule(match="op:aten.embedding.default", precision=Precision.FP32),)
    lowered = target.lower(job_for(target, words, Precision.INT8_STATIC, rules=rules))
    assert artifact_bytes(lowered.save(tmp_path)) > 4 * ROWS * WIDTH
    assert next(one for one in lowered.read_back() if one.op_id == "embedding").actual == Precision.FP32


def test_a_table_alone_is_rounded_as_the_simulation_says(words):
    from ace_studio.engine.plan import bind_plan
    from ace_studio.engine.quantize.simulate import PAIRS, Simulator, float_graph
    from ace_studio.records.recipes.plan import Plan

    target = TARGETS["onnxruntime"]
    rules = (PlanRule(match="op:aten.embedding.default", precision=Precision.INT8_WEIGHT),)
    lowered = target.lower(job_for(target, words, rules=rules))
    plan = bind_plan(Plan(rules=rules), words.table, op_problem=target.op_problem)
    simulator = Simulator(float_graph(words), ranges={}, style=PAIRS)
    example = words.examples[0]
    simulated = simulator.outputs(plan, example.tensors())[0]
    torch.testing.assert_close(lowered(*example.args), simulated, rtol=1e-3, atol=1e-4)
    assert sqnr_db(words.module(*example.args), simulated) < 60


def test_a_scan_has_a_row_for_the_table_at_every_integer_precision(words):
    from ace_studio.engine.sensitivity import Scan, ScanRequest

    precisions = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
    samples = [example.tensors() for example in words.examples]
    noise = Scan(ScanRequest(words, samples, precisions)).run()
    for precision in precisions:
        assert {"embedding", "embedding_1", "linear"} <= set(noise[precision])
        assert 0.0 < noise[precision]["embedding"] < 1e-2
