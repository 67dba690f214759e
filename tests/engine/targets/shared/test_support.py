"""Operators that a target cannot take are known before anything is built, with their place and what happens instead."""

from __future__ import annotations

import importlib.util
import time

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.ops.everyday import EVERYDAY_OPS
from ace_studio.engine.pipeline.compress.candidates import unsupported_op
from ace_studio.engine.targets import TARGETS, report_support
from ace_studio.engine.targets.onnx.program import export_onnx
from ace_studio.engine.torch_private.inductor import compiler_tables
from ace_studio.engine.torch_private.onnx import onnx_translations
from ace_studio.engine.torch_private.operators import functional_form
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import CaptureReport, SupportStatus
from tests.engine.captured import captured_of
from tests.tiny_models import conv_net

needs_onnx = pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="the ONNX exporter is missing")
needs_openvino = pytest.mark.skipif(importlib.util.find_spec("openvino") is None, reason="OpenVINO is missing")


@torch.library.custom_op("ace_tests::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    return x * 2


@doubled.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return doubled(x)


class WithCustomOp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.inner = Inner()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self.linear(x)).relu()


class Calls(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def capture(module: nn.Module, *examples: Example) -> CapturedModel:
    return captured_of(module.eval(), *(examples or (torch.randn(3, 4, 4),)))


def statuses(captured: CapturedModel, target: str) -> dict[str, SupportStatus]:
    return {one.op: one.status for one in TARGETS[target].support(captured)}


@pytest.fixture(scope="module")
def custom() -> CapturedModel:
    return capture(WithCustomOp())


CUSTOM = "ace_tests.doubled.default"


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("eager", SupportStatus.NATIVE),
        ("inductor", SupportStatus.FALLBACK),
        pytest.param("onnxruntime", SupportStatus.UNSUPPORTED, marks=needs_onnx),
        pytest.param("openvino", SupportStatus.UNSUPPORTED, marks=[needs_onnx, needs_openvino]),
    ],
)
def test_an_operator_of_the_users_own_is_told_apart_per_target(custom, target, status) -> None:
    found = statuses(custom, target)
    assert found[CUSTOM] is status
    assert found["aten.linear.default"] is SupportStatus.NATIVE


@needs_onnx
def test_a_target_that_cannot_take_an_op_fails_before_it_is_built_with_the_line_and_what_could(custom) -> None:
    report = CaptureReport(rung="export", ops=3, seconds=0.1, support=report_support(custom, TARGETS.values()))
    problem = unsupported_op(TARGETS["onnxruntime"], report, custom.table)
    assert problem is not None
    assert problem.code is ErrorCode.UNSUPPORTED
    assert CUSTOM in problem.what
    assert "test_support.py:" in problem.where
    assert "module inner" in problem.where
    assert "eager, inductor" in problem.remedy
    assert unsupported_op(TARGETS["inductor"], report, custom.table) is None


CASES = {
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4)), SupportStatus.UNSUPPORTED),
    "lgamma": (lambda x: torch.lgamma(x.abs()), SupportStatus.UNSUPPORTED),
    "mode": (lambda x: x.mode(-1)[0], SupportStatus.UNSUPPORTED),
    "in place": (lambda x: x.clone().add_(1).clamp_min_(0), SupportStatus.NATIVE),
    "celu": (torch.celu, SupportStatus.NATIVE),
    "rot90": (lambda x: x.rot90(1, [1, 2]), SupportStatus.DECOMPOSED),
    "cumulative sum": (lambda x: x.cumsum(-1), SupportStatus.NATIVE),
}


@needs_onnx
@pytest.mark.parametrize("name", CASES)
def test_the_verdict_on_onnx_agrees_with_the_exporter(name) -> None:
    function, expected = CASES[name]
    captured = capture(Calls(function))
    found = {one.status for one in TARGETS["onnxruntime"].support(captured)}
    assert expected in found
    if expected is SupportStatus.UNSUPPORTED:
        with pytest.raises(AceError, match="cannot translate"):
            export_onnx(captured)
    else:
        assert SupportStatus.UNSUPPORTED not in found
        export_onnx(captured)


@needs_onnx
@needs_openvino
def test_an_onnx_operator_that_openvino_has_no_rule_for_is_found() -> None:
    captured = capture(Calls(torch.linalg.det))
    assert statuses(captured, "onnxruntime")["aten.linalg_det.default"] is SupportStatus.NATIVE
    (found,) = [one for one in TARGETS["openvino"].support(captured) if one.status is SupportStatus.UNSUPPORTED]
    assert "ONNX's Det" in found.instead


def test_inductor_names_the_ops_that_run_as_pytorchs_own_kernels() -> None:
    captured = capture(Calls(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4))))
    found = {one.op: one for one in TARGETS["inductor"].support(captured)}
    one = found["aten.linalg_cholesky.default"]
    assert one.status is SupportStatus.FALLBACK
    assert "PyTorch's own kernel" in one.instead


def test_an_everyday_model_is_native_everywhere_and_counted() -> None:
    model = conv_net()
    captured = capture(model.module, *map(Example.of, model.examples))
    for one in report_support(captured, TARGETS.values()):
        assert one.counts == {"native": captured.table.op_count}, one.target
        assert one.ops == ()


@needs_onnx
def test_the_work_of_judging_grows_no_faster_than_the_ops() -> None:
    class Deep(nn.Module):
        def __init__(self, pairs: int) -> None:
            super().__init__()
            self.pairs = pairs

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(self.pairs):
                x = torch.celu(x).lerp(x, 0.3)
            return x

    def seconds_for(pairs: int) -> float:
        captured = capture(Deep(pairs))
        assert captured.table.op_count == 2 * pairs
        seconds = []
        for _ in range(6):  # the first call imports the compilers' tables; the fastest is the one least disturbed
            start = time.perf_counter()
            report_support(captured, TARGETS.values())
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    # Work that grew with the square of the ops would take about a hundred times as long.
    assert seconds_for(250) < 30 * seconds_for(25)


@needs_onnx
def test_every_everyday_operator_is_in_the_compilers_own_tables() -> None:
    inductor, onnx = compiler_tables(), onnx_translations()
    for name in EVERYDAY_OPS - {"getitem"}:
        _, packet, overload = name.split(".")
        op = functional_form(getattr(getattr(torch.ops.aten, packet), overload))
        is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
        assert inductor.writes(op) or op in inductor.decompositions or is_composite, name
        assert onnx.has(op) or op in onnx.decompositions or is_composite, name
