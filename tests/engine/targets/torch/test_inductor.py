"""Times of compiled code, given to ops: libraries by order, loops by what they do, quantizing to its reader."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import nn

import ace_studio
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import LoweringJob, OpActual
from ace_studio.engine.targets.torch.inductor import compiler_errors, with_times
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.engine.torch_private.kernels import TimedCall, WrittenCode, listening_to_code, time_calls
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.captured import captured_of


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        y = torch.relu(self.one(x))
        return (self.two(y) + x).flatten(1)


def exported() -> torch.fx.GraphModule:
    program = torch.export.export(Chain().eval(), (torch.zeros(2, 64),))
    graph_module = program.module(check_guards=False)
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and "_guards" not in node.name:
            node.meta[OP_ID] = node.name
    return graph_module


ACTUALS = [
    OpActual(op_id="linear", actual="fp32"),
    OpActual(op_id="relu", actual="fused", fused_into="linear"),
    OpActual(op_id="linear_1", actual="fp32"),
    OpActual(op_id="add", actual="fp32"),
    OpActual(op_id="flatten", actual="fp32"),
]
NODES = [
    CompiledNode("onednn.qlinear_pointwise.default fused", ("relu",), torch.float32),
    CompiledNode("onednn.qlinear_pointwise.default", ("linear_1",), torch.float32),
]
LOOPS = [("cpp_a", ("gone",)), ("cpp_b", ("flatten", "add"))]
CALLS = [
    TimedCall("cpp_a", 0.5, True),
    TimedCall("onednn.qlinear_pointwise.tensor", 2.0, False),
    TimedCall("onednn.qlinear_pointwise.tensor", 3.0, False),
    TimedCall("cpp_b", 1.0, True),
    TimedCall("aten.unknown.default", 9.0, False),
]


def timed() -> dict[str, OpActual]:
    found = with_times(ACTUALS, CALLS, loops=LOOPS, nodes=NODES, graph_module=exported())
    return {one.op_id: one for one in found}


def test_all_that_is_missing_is_installed_by_one_line(monkeypatch):
    module = importlib.import_module("ace_studio.engine.targets.torch.inductor")
    monkeypatch.setattr(module, "is_torchao_installed", lambda: False)
    monkeypatch.setattr(module, "compiler_problem", lambda: "")
    found = TARGETS["inductor"].available()
    assert found.ok and found.install == module.INSTALL_LINE
    monkeypatch.setattr(module, "compiler_problem", lambda: "no C++ compiler")
    found = TARGETS["inductor"].available()
    assert not found.ok and found.install == f"apt-get install g++ && {module.INSTALL_LINE}"


def test_calls_of_one_operator_belong_to_its_nodes_in_their_order():
    found = timed()
    assert found["linear_1"].latency_ms == 3.0
    assert found["relu"].latency_ms is None


def test_a_loop_that_does_no_op_is_counted_at_the_call_behind_it():
    assert timed()["linear"].latency_ms == 2.5


def test_ops_of_one_loop_are_done_by_the_last_that_computes():
    found = timed()
    assert found["add"].latency_ms == 1.0
    assert found["flatten"].fused_into == "add"


def test_a_call_that_nobody_knows_is_given_to_nobody():
    assert sum(one.latency_ms or 0.0 for one in timed().values()) == 6.5


def test_nothing_is_timed_where_runs_differ():
    assert time_calls(WrittenCode(), lambda: None) == []


def test_listening_leaves_the_compiler_as_it_was():
    CppScheduling = importlib.import_module("torch._inductor.codegen.cpp").CppScheduling  # noqa: N806 - a class
    before = CppScheduling.define_kernel
    with listening_to_code():
        assert CppScheduling.define_kernel is not before
    assert CppScheduling.define_kernel is before


@pytest.mark.slow
def test_the_ops_of_a_compiled_model_explain_its_latency():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.Softmax(-1)).eval()
    examples = [torch.randn(n, 256) for n in (64, 65)]
    report = ace_studio.compile(module, tracing_inputs=examples, target="inductor", default="fp32", rounds=5).report
    (run,) = report.runs
    heavy = [op for op in run.ops if "linear" in op.op]
    assert all(op.latency_ms > 0 for op in heavy)
    assert sum(op.share for op in heavy) > 0.3
    # The two are measured one after the other, so a busy machine may change its mind in between.
    assert 0.1 * run.profile.latency_ms < run.profile.ops_ms < 3 * run.profile.latency_ms


def test_only_a_compiler_that_does_not_work_is_put_into_our_words():
    with pytest.raises(AceError) as caught, compiler_errors("Inductor"):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found")
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert "g++" in caught.value.problem.remedy
    with pytest.raises(RuntimeError, match="no kernel"), compiler_errors("Inductor"):
        raise RuntimeError("no kernel")


class Recurrent(nn.Module):
    """An LSTM with batch_first gives a tensor that is not contiguous."""

    def __init__(self):
        super().__init__()
        self.rows, self.last = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 24)

    def forward(self, x):
        return self.last(self.rows(x)[0])


def test_a_linear_layer_behind_a_recurrent_one_runs_in_8_bits_at_dynamic_sizes(tmp_path):
    torch.manual_seed(0)
    module = Recurrent().eval()
    captured = captured_of(module, torch.randn(2, 5, 16), torch.randn(3, 7, 16))
    target = TARGETS["inductor"]
    plan = bind_plan(Plan(default=Precision.INT8_STATIC), captured.table, op_problem=target.op_problem)
    job = LoweringJob(
        captured=captured, plan=plan, calibration=lambda: captured.examples, threads=1, device=torch.device("cpu"),
        folder=tmp_path,
    )  # fmt: skip
    lowered = target.lower(job)
    assert "int8-static" in {str(one.actual) for one in lowered.read_back()}
    x = torch.randn(4, 9, 16)
    with torch.no_grad():
        assert sqnr_db([module(x)], [lowered(x)]) > 25
