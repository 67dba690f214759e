"""The peers: each compresses a module as its own documentation says, and leaves it on disk for `opening`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace
from torch.utils import _pytree as pytree

from tests.benchmarks.peers.opening import Left, openvino_run, write_module
from tests.benchmarks.peers.row import Inputs, PeerRow


def dynamic_shapes(row: PeerRow) -> Any:
    """Which sizes change between the examples, in the words of torch.export; None if none does."""
    first, *others = row.tracing or row.held_out
    found = tuple(
        {
            dim: torch.export.Dim.DYNAMIC
            for dim in range(value.dim())
            if any(value.shape[dim] != other[at].shape[dim] for other in others)
        }
        for at, value in enumerate(first)
    )
    return found if any(found) else None


def largest(row: PeerRow) -> Inputs:
    """The example to trace with."""
    return max(row.tracing or row.held_out, key=lambda call: sum(value.numel() for value in call))


# --- OpenVINO with NNCF ---


def nncf_openvino(row: PeerRow, folder: Path) -> Left:
    """``nncf.quantize`` over ``ov.convert_model``, as NNCF's page on post-training quantization shows it."""
    import nncf
    import openvino

    model = openvino.convert_model(row.module, example_input=largest(row))
    feed = nncf.Dataset(list(row.calibration), lambda call: tuple(value.numpy() for value in call))
    kind = {"model_type": nncf.ModelType.TRANSFORMER} if row.is_transformer else {}
    return _saved_openvino(nncf.quantize(model, feed, subset_size=len(row.calibration), **kind), folder)


def openvino_float(row: PeerRow, folder: Path) -> Left:
    """``ov.convert_model`` and nothing else."""
    import openvino

    return _saved_openvino(openvino.convert_model(row.module, example_input=largest(row)), folder)


def openvino_bf16(row: PeerRow, folder: Path) -> Left:
    """``ov.convert_model``, opened with the hint for bfloat16 where the processor has it."""
    return replace(openvino_float(row, folder), kind="bare openvino bf16")


def nncf_accuracy(row: PeerRow, folder: Path) -> Left:
    """``nncf.quantize_with_accuracy_control`` with a drop of at most 1 %, for a row that has a metric.

    Raises: ValueError if the row has none.
    """
    import nncf
    import openvino

    if row.score is None:
        raise ValueError("accuracy control needs a metric, and this row has none")
    model = openvino.convert_model(row.module, example_input=largest(row))
    feed = nncf.Dataset(list(row.calibration), lambda call: tuple(value.numpy() for value in call))
    score = row.score

    def validate(compiled: Any, _data: Any) -> float:
        return float(score(lambda *tensors: _nested(row, openvino_run(compiled)(*tensors))))

    kind = {"model_type": nncf.ModelType.TRANSFORMER} if row.is_transformer else {}
    found = nncf.quantize_with_accuracy_control(
        model, feed, feed, validate, max_drop=0.01, drop_type=nncf.DropType.RELATIVE,
        subset_size=len(row.calibration), **kind,
    )  # fmt: skip
    return _saved_openvino(found, folder)


def _nested(row: PeerRow, outputs: Sequence[torch.Tensor]) -> Any:
    """Flat outputs in the nesting that the module gives."""
    with torch.no_grad():
        _, nesting = pytree.tree_flatten(row.module(*row.held_out[0]))
    return pytree.tree_unflatten(list(outputs), nesting)


def nncf_weights(
    row: PeerRow, folder: Path, *, mode: str, group_size: int | None = None, is_estimated: bool = False
) -> Left:
    """``nncf.compress_weights`` over ``ov.convert_model``, as NNCF's page on weight compression shows it.

    ``is_estimated``: with scale estimation on the calibration data.
    """
    import nncf
    import openvino

    model = openvino.convert_model(row.module, example_input=largest(row))
    feed = nncf.Dataset(list(row.calibration), lambda call: tuple(value.numpy() for value in call))
    more = {"dataset": feed, "scale_estimation": True} if is_estimated else {}
    found = nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode], group_size=group_size, **more)
    return _saved_openvino(found, folder)


def _saved_openvino(model: Any, folder: Path) -> Left:
    import openvino

    path = folder / "model.xml"
    openvino.save_model(model, str(path), compress_to_fp16=False)
    return Left(kind="bare openvino", path=str(path))


# --- ONNX Runtime ---


def _exported(row: PeerRow, folder: Path) -> tuple[Path, list[str]]:
    path = folder / "plain.onnx"
    program = torch.onnx.export(
        row.module, largest(row), dynamo=True, dynamic_shapes=dynamic_shapes(row), verbose=False
    )
    assert program is not None
    program.save(str(path), external_data=False)
    return path, [value.name for value in program.model.graph.inputs]


def onnxruntime_float(row: PeerRow, folder: Path) -> Left:
    """``torch.onnx.export`` and nothing else."""
    return Left(kind="bare onnxruntime", path=str(_exported(row, folder)[0]))


def onnxruntime_static(row: PeerRow, folder: Path) -> Left:
    """``quantize_static`` behind ``quant_pre_process``: QDQ, 8-bit unsigned activations, weights per channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain, names = _exported(row, folder)
    prepared, path = folder / "prepared.onnx", folder / "static.onnx"
    quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest: Iterator[Inputs] = iter(row.calibration)

        def get_next(self) -> dict[str, Any] | None:
            call = next(self.rest, None)
            return None if call is None else {name: value.numpy() for name, value in zip(names, call, strict=True)}

    quantize_static(
        str(prepared), str(path), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    return Left(kind="bare onnxruntime", path=str(path))


def onnxruntime_dynamic(row: PeerRow, folder: Path) -> Left:
    """``quantize_dynamic``, which ONNX Runtime's page recommends for transformers."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain, _ = _exported(row, folder)
    path = folder / "dynamic.onnx"
    quantize_dynamic(str(plain), str(path), weight_type=QuantType.QInt8, per_channel=True)
    return Left(kind="bare onnxruntime", path=str(path))


def onnxruntime_nbits(row: PeerRow, folder: Path) -> Left:
    """``MatMulNBitsQuantizer`` with 4 bits, as ONNX Runtime's page on weight-only quantization shows it."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    plain, _ = _exported(row, folder)
    path = folder / "nbits.onnx"
    quantizer = MatMulNBitsQuantizer(onnx.load(plain), block_size=32, is_symmetric=True, accuracy_level=4)
    quantizer.process()
    quantizer.model.save_model_to_file(str(path), False)
    return Left(kind="bare onnxruntime", path=str(path))


def onnxruntime_fused(row: PeerRow, folder: Path) -> Left:
    """``onnxruntime.transformers.optimizer``, the tool for transformers that its page recommends, at fp32."""
    from onnxruntime.transformers import optimizer

    plain, _ = _exported(row, folder)
    path = folder / "fused.onnx"
    optimizer.optimize_model(str(plain), model_type="bert", opt_level=1).save_model_to_file(str(path))
    return Left(kind="bare onnxruntime", path=str(path))


# --- torchao ---


def torchao_pt2e(row: PeerRow, folder: Path) -> Left:
    """PT2E with the x86 quantizer and Inductor with freezing, as PyTorch's tutorial for x86 shows it.

    What it leaves is what it starts from: the converted graph cannot be pickled, and exported once more it is slower.
    """
    path = folder / "pt2e.pt"
    torch.save([row.module, largest(row), dynamic_shapes(row), list(row.calibration)], path)
    return Left(kind="torchao PT2E", path=str(path))


def torchao_dynamic(row: PeerRow, folder: Path) -> Left:
    """``quantize_`` with dynamic 8-bit activations and 8-bit weights, then ``torch.compile``: when it is opened."""
    return write_module(row.module, folder / "model.pt", kind="torchao dynamic")


def torchao_weights(row: PeerRow, folder: Path) -> Left:
    """``quantize_`` with 8-bit weights, then ``torch.compile``: when it is opened."""
    return write_module(row.module, folder / "model.pt", kind="torchao weights")


Build = Callable[[PeerRow, Path], Left]

PEERS: dict[str, Build] = {
    "NNCF + OpenVINO int8": nncf_openvino,
    "NNCF + OpenVINO int8 weights": lambda row, folder: nncf_weights(row, folder, mode="INT8_ASYM"),
    "NNCF + OpenVINO int4 weights": lambda row, folder: nncf_weights(row, folder, mode="INT4_SYM"),
    "ONNX Runtime static int8": onnxruntime_static,
    "ONNX Runtime dynamic int8": onnxruntime_dynamic,
    "ONNX Runtime int4 weights": onnxruntime_nbits,
    "NNCF + OpenVINO with accuracy control": nncf_accuracy,
    "OpenVINO float": openvino_float,
    "OpenVINO bf16": openvino_bf16,
    "ONNX Runtime fused": onnxruntime_fused,
    "ONNX Runtime float": onnxruntime_float,
    "torchao PT2E int8": torchao_pt2e,
    "torchao dynamic int8": torchao_dynamic,
    "torchao int8 weights": torchao_weights,
}
"""Every peer; which ones a row is tried with follows from its kind."""
FLOATS = ("OpenVINO float", "OpenVINO bf16", "ONNX Runtime float")
"""What every row is tried with: a peer that compresses nothing may be the fastest at a high fidelity."""
FOR_NETWORKS = ("NNCF + OpenVINO int8", "ONNX Runtime static int8", "torchao PT2E int8")
FOR_TRANSFORMERS = (
    "NNCF + OpenVINO int8",
    "ONNX Runtime static int8",
    "ONNX Runtime dynamic int8",
    "torchao dynamic int8",
)
FOR_DECODERS = (
    "NNCF + OpenVINO int8 weights",
    "NNCF + OpenVINO int4 weights",
    "ONNX Runtime dynamic int8",
    "ONNX Runtime int4 weights",
    "torchao dynamic int8",
    "torchao int8 weights",
)


def peers_of(row: PeerRow) -> Sequence[str]:
    """Names of the peers that their own pages recommend for a model of this kind."""
    if row.name == "decoder_step":
        return (*FOR_DECODERS, *FLOATS)
    names = (*FOR_TRANSFORMERS, "ONNX Runtime fused") if row.is_transformer else FOR_NETWORKS
    controlled = ("NNCF + OpenVINO with accuracy control",) if row.score is not None else ()
    return (*names, *controlled, *FLOATS)
