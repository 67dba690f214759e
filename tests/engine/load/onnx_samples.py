"""ONNX files to open, written node by node: no exporter is needed."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_classifier(path: Path, *, opset: int = 18) -> Path:
    """x [N, 3, 8, 8] -> scores [N, 5]: a convolution, a batch norm, a ReLU, a mean and a product, in named modules."""
    weights = {
        "stem.weight": numbers(4, 3, 3, 3),
        "scale": numbers(4, seed=1),
        "shift": numbers(4, seed=2),
        "mean": numbers(4, seed=3),
        "var": np.abs(numbers(4, seed=4)) + 0.5,
        "head.weight": numbers(4, 5, seed=5),
        "head.bias": numbers(5, seed=6),
    }
    nodes = [
        helper.make_node("Conv", ["x", "stem.weight"], ["c"], "/stem/stem.0/Conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], "/stem/stem.1/BatchNormalization"
        ),
        helper.make_node("Relu", ["n"], ["r"], "/stem/stem.2/Relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "/GlobalAveragePool"),
        helper.make_node("Flatten", ["p"], ["f"], "/Flatten"),
        helper.make_node("Gemm", ["f", "head.weight", "head.bias"], ["scores"], "/head/Gemm"),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def write_old_classifier(path: Path) -> Path:
    """The classifier as exporters before IR version 4 wrote it: every weight is listed among the inputs."""
    model = onnx.load(write_classifier(path, opset=9))
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    model.ir_version = 3
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def write_embedding(path: Path) -> Path:
    """input.ids [batch, length] and attention_mask of the same sizes -> two results."""
    nodes = [
        helper.make_node("Gather", ["table", "input.ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "middle"], ["pooled"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "",
        [
            helper.make_tensor_value_info("input.ids", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "length"]),
        ],
        [
            helper.make_tensor_value_info("kept", TensorProto.FLOAT, ["batch", "length", 6]),
            helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", 6]),
        ],
        [
            numpy_helper.from_array(numbers(200, 6), "table"),
            numpy_helper.from_array(np.array([-1]), "last"),
            numpy_helper.from_array(np.array([1]), "middle"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path
