"""A finished run in a folder: small ONNX models as its artifacts, and the result that names them."""

from pathlib import Path

from msgspec.structs import replace

from ace_studio.records.results import Result, RunStatus, TargetRun, encode_result
from ace_studio.records.results.capture import CaptureReport
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding
from tests.cli.fake_engine import LATENCY, result

SIZES = (2, 64)


def onnx_model(path: Path, layers: int) -> None:
    """Square matrix products, one after the other."""
    import numpy
    from onnx import TensorProto, helper, numpy_helper, save

    wide = SIZES[1]
    weights = [numpy_helper.from_array(numpy.eye(wide, dtype="float32"), f"w{at}") for at in range(layers)]
    names = ["x", *(f"h{at}" for at in range(layers - 1)), "y"]
    nodes = [helper.make_node("MatMul", [names[at], f"w{at}"], [names[at + 1]]) for at in range(layers)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", wide]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def finding(name: str = "x", dtype: str = "float32", sizes: tuple[int, ...] = SIZES, **more) -> InputFinding:
    dims = tuple(DimFinding(index=at, verdict=DimVerdict.STATIC, size=size) for at, size in enumerate(sizes))
    return InputFinding(name=name, dtype=dtype, dims=dims, **more)


def run_of(target: str = "onnxruntime", precision: str = "fp32", artifact: str = "", **more) -> TargetRun:
    return TargetRun(
        target=target, status=RunStatus.OK, precision=precision, artifact=artifact or None, latency_ms=LATENCY, **more
    )


def result_of(*runs: TargetRun, inputs: tuple[InputFinding, ...] | None = None, **environment) -> Result:
    capture = CaptureReport(rung="export", ops=1, seconds=0.1, inputs=(finding(),) if inputs is None else inputs)
    return replace(result(), runs=runs, capture=capture, environment={"threads": 1, "device": "cpu", **environment})


def write_run(folder: Path, *precisions: str) -> Result:
    """A run with an ONNX artifact for each precision; the first has the most layers."""
    runs = []
    for at, precision in enumerate(precisions):
        name = f"artifacts/{at:02d}-onnxruntime-{precision}/model.onnx"
        (folder / name).parent.mkdir(parents=True)
        onnx_model(folder / name, 2 * (len(precisions) - at))
        runs.append(run_of(precision=precision, artifact=name))
    made = result_of(*runs)
    (folder / "result.json").write_bytes(encode_result(made))
    return made
