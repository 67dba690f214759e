"""Runs made by hand for the tests of charts, colours and comparisons: numbers that a person can check."""

import msgspec
from msgspec.structs import replace

from ace_studio.records import results
from ace_studio.records.graph import OpKind
from tests.gui.graph_tables import layered_table

TABLE = layered_table(3)
REPORT = results.CaptureReport(rung="export", ops=1, seconds=1.0)
_CEILINGS = {
    "gflops": {"fp32": 50.0, "int8-static": 200.0},
    "gbytes_per_s": 10.0,
    "gbytes_per_s_at": {32_768: 40.0},
    "spread": 0.05,
    "threads": 1,
    "machine": "a machine",
}


def latency(p50):
    return results.Latency(p10=0.9 * p50, p50=p50, p90=1.2 * p50, n=20)


def reports_of(table, *, precision="int8-static", time_ms=0.1, kept=(), error_db=None):
    """A report per op: linears run, activations are fused into the op before, additions are folded."""
    found, last = [], ""
    for row in table.op_rows():
        op_id, op = table.op_id[row], table.op[row]
        actual, reason, took = precision, "ran it", time_ms
        if op_id in kept:
            actual, reason = "fp32", "too sensitive for int8"
        elif op.startswith(("aten.gelu", "aten.relu", "aten.act")):
            actual, reason, took = "fused", f"part of the QLinear kernel of {last} ({precision})", None
        elif op.startswith("aten.layer_norm"):
            actual, reason, took = "folded", f"folded into {last} in fp32", None
        found.append(
            results.OpReport(
                id=op_id, op=op, module=table.module[row], shape="", device="cpu", planned=precision, actual=actual,
                reason=reason, latency_ms=took, flops=table.flops[row] or None, bytes=4096,
                error_db=None if error_db is None else error_db - row,
            )
        )  # fmt: skip
        last = op_id if actual not in ("fused", "folded") else last
    return tuple(found)


def baseline_of(table, *, timed=True):
    ops = reports_of(table, precision="fp32", time_ms=0.4) if timed else ()
    profile = results.OpsProfile(
        ops_ms=0.4 * len(ops), latency_ms=10.0, uncovered_ms=10.0 - 0.4 * len(ops), timed_ops=len(ops), source="hooks"
    )
    return results.Baseline(
        latency_ms=latency(10.0), metric=0.9, size_bytes=40_000_000, ops=ops, profile=profile if timed else None
    )


def run_of(table, target="onnxruntime", *, p50=4.0, drop=0.002, sqnr=30.0, size=12_000_000, **reports):
    return results.TargetRun(
        target=target,
        status=results.RunStatus.OK,
        precision=reports.get("precision", "int8-static"),
        latency_ms=latency(p50),
        speedup=10.0 / p50,
        speedup_low=9.0 / p50,
        speedup_high=11.0 / p50,
        metric=None if drop is None else 0.9 * (1 - drop),
        metric_drop=drop,
        sqnr_db=sqnr,
        size_bytes=size,
        artifact="model.onnx",
        verified=True,
        ops=reports_of(table, **reports),
    )


def three_runs(table):
    """A fast one that loses most, a middle one, and a slow one that is worse than the middle one in both."""
    return (
        run_of(table, "onnxruntime", p50=2.0, drop=0.02, sqnr=18.0, size=10_000_000, error_db=40.0),
        run_of(table, "openvino", p50=4.0, drop=0.002, sqnr=32.0, size=12_000_000, error_db=60.0, kept=("linear_1",)),
        run_of(table, "inductor", p50=6.0, drop=0.004, sqnr=30.0, size=20_000_000, time_ms=None),
    )


def ranked_sensitivity(table, precision="int8-static"):
    ids = [table.op_id[row] for row, kind in enumerate(table.kind) if kind is OpKind.OP]
    return tuple(
        results.OpSensitivity(id=op_id, precision=precision, sqnr_db=12.0 + 5 * at) for at, op_id in enumerate(ids)
    )


def result_of(table, runs=None, **values):
    runs = three_runs(table) if runs is None else runs
    found = results.Result(
        status=results.ResultStatus.OK,
        fingerprint="f",
        environment={},
        baseline=baseline_of(table),
        runs=runs,
        chosen=1 if len(runs) > 1 else 0,
        goal_met=True,
        sensitivity=ranked_sensitivity(table),
        ceilings=msgspec.convert(_CEILINGS, results.Ceilings),
        worst=(results.WorstSample(run=1, sample=7, source="evaluation", error=0.5, sqnr_db=9.0, label="cat"),
               results.WorstSample(run=0, sample=3, source="evaluation", error=0.25)),
        seconds=12.0,
    )  # fmt: skip
    return replace(found, **values)


def show_result(desk, table, result=None):
    """Put a result into the document as a finished run does."""
    result = result_of(table) if result is None else result
    desk.session._state.change(
        baseline=result.baseline,
        runs=result.runs,
        run_numbers=tuple(range(len(result.runs))),
        result=result,
        selection=replace(desk.document.selection, run=result.chosen),
        ran_with=desk.document.recipe,
    )
    desk.settle()
    return result
