"""A finished run as the rules of advice see it."""

from msgspec.structs import replace

from ace_studio.engine.advice import Facts
from ace_studio.records import results
from ace_studio.records.advice_applied import applied_recipe
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding

OPS = ("conv2d", "conv2d_1", "linear")


def table(
    ops=("aten.conv2d.default", "aten.conv2d.default", "aten.linear.default"), flops=(60_000_000, 30_000_000, 10)
):
    rows = range(3)
    return GraphTable(
        op_id=OPS, kind=(OpKind.OP,) * 3, op=ops, module=("stem", "body", "head"), shape=("",) * 3, dtype=("",) * 3,
        device=("cpu",) * 3, file=(-1,) * 3, line=(0,) * 3, flops=flops, weight_bytes=(100, 100, 800),
        output_bytes=(0,) * 3, edge_source=tuple(rows)[:2], edge_target=tuple(rows)[1:],
    )  # fmt: skip


def latency(p50=1.0):
    return results.Latency(p10=p50, p50=p50, p90=p50, n=3)


def op_report(op_id, **values):
    given = {
        "op": "aten.linear.default",
        "module": "",
        "shape": "",
        "device": "cpu",
        "planned": "fp32",
        "actual": "fp32",
    }
    return results.OpReport(id=op_id, **(given | values))


RUN = results.TargetRun(
    target="onnxruntime", status=results.RunStatus.OK, precision="int8-static", latency_ms=latency(), speedup=4.0,
    sqnr_db=12.0, size_bytes=1_000_000, verified=True,
)  # fmt: skip


FLOAT_RUN = replace(RUN, precision="fp32", speedup=1.5, sqnr_db=120.0)


RECIPE = Recipe(model=ModelChoice(source="m.py"))


EVERY = {str(one): "" for one in Precision}


HERE = (
    TargetReport(name="onnxruntime", label="ONNX Runtime", available=True, precisions=EVERY),
    TargetReport(name="openvino", label="OpenVINO", available=True, precisions=EVERY),
)


def facts(run=RUN, *, recipe=RECIPE, targets=(), graph=None, cores=1, library=True, **result):
    found = results.Result(
        status=results.ResultStatus.OK,
        fingerprint="f",
        environment={},
        baseline=results.Baseline(),
        **({"runs": (run,), "chosen": 0} | result),
    )
    return Facts(
        result=found, recipe=recipe, table=graph or table(), targets=targets, cores=cores, has_pruning_library=library
    )


def scan(*values):
    return tuple(
        results.OpSensitivity(id=op_id, precision="int8-static", sqnr_db=db)
        for op_id, db in zip(OPS, values, strict=True)
    )


def applies(card, given):
    """The recipe that the card makes; raises if the change does not fit."""
    return applied_recipe(given.recipe, given.result, card)


def captured(verdict):
    dims = (DimFinding(index=0, verdict=verdict, size=1), DimFinding(index=1, verdict=DimVerdict.STATIC, size=3))
    inputs = (InputFinding(name="x", dtype="float32", dims=dims),)
    return results.CaptureReport(rung="export", ops=3, seconds=1.0, inputs=inputs)
