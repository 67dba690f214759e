"""The planned and the actual precision of every op, with the reasons."""

from __future__ import annotations

import pytest

from ace_studio.engine.flow import BoundOp, BoundPlan
from ace_studio.engine.pipeline.compress.op_reports import report_ops
from ace_studio.engine.targets.base import OpActual
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.results import OpSupport, SupportStatus

TABLE = GraphTable(
    op_id=("x", "linear"), kind=(OpKind.INPUT, OpKind.OP), op=("", "aten.linear.default"), module=("", "head"),
    shape=("1x4", "1x2"), dtype=("float32",) * 2, device=("cpu",) * 2, file=(-1,) * 2, line=(0,) * 2, flops=(0, 16),
    weight_bytes=(0, 32), output_bytes=(0, 8), edge_source=(0,), edge_target=(1,),
)  # fmt: skip
INT8 = Plan(default=Precision.INT8_STATIC)


def report(actual=(), *, assigned=Precision.INT8_STATIC, reason="", support=None):
    op = BoundOp(requested=Precision.INT8_STATIC, assigned=assigned, reason=reason, scheme=INT8.scheme)
    (found,) = report_ops(TABLE, BoundPlan(INT8, {"linear": op}), actual, support=support or {})
    return found


def ran(actual="int8-static", reason="it ran"):
    return OpActual(op_id="linear", actual=actual, device="cpu", reason=reason)


def test_only_ops_are_reported_with_the_plan_the_runtime_and_its_reason():
    found = report([ran()])
    assert (found.id, found.module, found.planned, found.actual) == ("linear", "head", "int8-static", "int8-static")
    assert found.reason == "it ran"


def test_an_op_that_the_runtime_does_not_report_is_unknown():
    found = report()
    assert found.actual == "unknown"
    assert found.reason == "the runtime does not report this op"


@pytest.mark.parametrize("words", ["it ran", "no kernel; it ran"])
def test_a_refused_precision_is_said_once_also_where_the_runtime_repeats_it(words):
    found = report([ran("fp32", words)], assigned=Precision.FP32, reason="no kernel")
    assert found.planned == "int8-static"
    assert found.reason == "no kernel; it ran"


def test_an_op_that_calls_pytorch_says_so():
    support = {"linear": OpSupport(id="linear", op="linear", status=SupportStatus.FALLBACK, instead="calls ATen")}
    assert report([ran()], support=support).reason == "it ran; calls ATen"
