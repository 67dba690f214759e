"""The peers: each compresses a module as its own documentation says, and leaves it on disk for `opening`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.peers.opening import Left, write_module
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


def nncf_weights(row: PeerRow, folder: Path, *, mode: str) -> Left:
    """``nncf.compress_weights`` over ``ov.convert_model``, as NNCF's page on weight compression shows it."""
    import nncf
    import openvino

    model = openvino.convert_model(row.module, example_input=largest(row))
    return _saved_openvino(nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode]), folder)


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
    "OpenVINO float": openvino_float,
    "ONNX Runtime float": onnxruntime_float,
    "torchao PT2E int8": torchao_pt2e,
    "torchao dynamic int8": torchao_dynamic,
    "torchao int8 weights": torchao_weights,
}
"""Every peer; which ones a row is tried with follows from its kind."""
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
        return FOR_DECODERS
    return FOR_TRANSFORMERS if row.is_transformer else FOR_NETWORKS
