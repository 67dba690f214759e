"""What float nodes of a quantized ONNX model read, and where biases are added."""

import math

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime
import torch
from torch import nn

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx.program import export_onnx
from ace_studio.engine.targets.onnx.quantize import quantize_program, read_float_values
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import capture, captured_easy, job_for, sqnr_db
from tests.tiny_models import TinyModel, _random

TARGET = TARGETS["onnxruntime"]


class Gated(nn.Module):
    """A linear layer on three dimensions whose input is read in float too."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        x = x.tanh()
        return x * 0.5 + self.layer(x)


def _built(captured, folder):
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    model = onnx.load(lowered.save(folder))
    return lowered, model, {value: node.op_type for node in model.graph.node for value in node.output}


def test_a_bias_is_added_in_float_to_a_product_that_gives_float(tmp_path):
    lowered, model, makers = _built(captured_easy("text_model"), tmp_path)
    constants = {tensor.name for tensor in model.graph.initializer}
    biases = [node for node in model.graph.node if node.op_type == "Add" and constants.intersection(node.input)]
    assert biases
    assert {makers.get(name) for node in biases for name in node.input} <= {"MatMul", None}
    assert "int8-static" in {one.actual for one in lowered.read_back() if "linear" in one.op_id}


def test_a_float_op_reads_what_a_float_op_made_and_not_what_a_pair_leaves_of_it(tmp_path):
    captured = capture(TinyModel(Gated().eval(), [(_random(1, 4, 16),), (_random(3, 4, 16, seed=1),)]))
    lowered, model, makers = _built(captured, tmp_path)
    (half,) = (node for node in model.graph.node if node.op_type == "Mul")
    (product,) = (node for node in model.graph.node if node.op_type == "MatMul")
    assert makers[half.input[0]] == "Tanh"
    assert makers[product.input[0]] == "DequantizeLinear"
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 40.0
    made = {value.name for value in (*model.graph.input, *model.graph.initializer)}
    for node in model.graph.node:
        assert made.issuperset(node.input), "the format wants every node behind those that it reads"
        made.update(node.output)


@pytest.mark.parametrize("batches", [(2, 2), (1, 3)])
def test_a_product_with_a_bias_is_an_integer_kernel_whether_the_sizes_are_known_or_free(batches, tmp_path):
    examples = [(_random(batch, 4, 16, seed=batch),) for batch in batches]
    captured = capture(TinyModel(Gated().eval(), examples))
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_STATIC))
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "as_run.onnx")
    onnxruntime.InferenceSession(lowered.save(tmp_path), options, providers=["CPUExecutionProvider"])
    run = {node.op_type for node in onnx.load(tmp_path / "as_run.onnx").graph.node}
    assert "MatMulIntegerToFloat" in run
    assert not run & {"Gemm", "MatMul"}


class Tied(nn.Module):
    """A head that shares its weight with the embedding, and one layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(128, 64)
        self.layer = nn.Linear(64, 64)
        self.head = nn.Linear(64, 128, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.layer(self.layer(self.table(x)).tanh()).tanh())


@pytest.mark.parametrize("precision", [Precision.INT8_STATIC, Precision.INT8_DYNAMIC])
def test_layers_that_share_a_weight_run_in_8_bits_and_store_no_float_of_it(precision, tmp_path):
    captured = capture(TinyModel(Tied().eval(), [(torch.arange(12).reshape(2, 6),), (torch.arange(12).reshape(2, 6),)]))
    lowered = TARGET.lower(job_for(TARGET, captured, precision))
    actual = {one.op_id: one.actual for one in lowered.read_back()}
    assert [actual[name] for name in ("linear", "linear_1", "linear_2")] == [precision] * 3
    stored = onnx.load(lowered.save(tmp_path)).graph.initializer
    assert max(math.prod(one.dims) for one in stored if one.data_type == onnx.TensorProto.FLOAT) < 64 * 64
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 25.0


def test_a_grouped_transposed_convolution_with_a_bias_is_built_for_int8_static(tmp_path):
    layers = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ConvTranspose2d(8, 8, 4, stride=2, groups=2), nn.Conv2d(8, 16, 3))
    captured = capture(TinyModel(layers.eval(), [(_random(1, 4, 8, 8),), (_random(3, 4, 8, 8, seed=1),)]))
    lowered, _, makers = _built(captured, tmp_path)
    assert "ConvTranspose" in makers.values()
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 30.0


def test_what_8_bit_nodes_made_is_read_as_they_made_it():
    make = onnx.helper.make_node
    nodes = [
        make("Conv", ["x", "w"], ["y"], name="conv"),
        make("QuantizeLinear", ["y", "s", "z"], ["q"], name="q"),
        make("DequantizeLinear", ["q", "s", "z"], ["d"], name="d"),
        make("Sigmoid", ["d"], ["out"], name="sigmoid"),
    ]
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)  # noqa: E731
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [value("x")], [value("out")]))
    read_float_values(model, frozenset({"conv"}))
    assert model.graph.node[3].input[0] == "d"
    read_float_values(model, frozenset())
    assert model.graph.node[3].input[0] == "y"


def test_what_the_quantizer_made_before_is_not_quantized_again():
    captured = captured_easy("text_model")
    program = export_onnx(captured)
    pair = onnx.helper.make_node("QuantizeLinear", ["y", "s", "z"], ["q"], name="y_QuantizeLinear")
    program.model.graph.node.append(pair)
    with pytest.raises(AceError, match="quantized already"):
        quantize_program(program, job_for(TARGET, captured, Precision.INT8_STATIC), lambda _: None)


class Ensemble(nn.Module):
    """One input times a stack of matrices, as ensembles under ``vmap`` have it."""

    def __init__(self):
        super().__init__()
        self.stack = nn.Parameter(_random(3, 16, 8))

    def forward(self, x):
        return (x @ self.stack).relu().mean(0)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_product_with_a_stack_of_matrices_is_quantized(name):
    if name == "openvino":
        pytest.importorskip("nncf")
    captured = capture(TinyModel(Ensemble().eval(), [(_random(2, 16),), (_random(5, 16, seed=1),)]))
    lowered = TARGETS[name].lower(job_for(TARGETS[name], captured, Precision.INT8_STATIC))
    assert "int8-static" in {one.actual for one in lowered.read_back()}
    for example in captured.examples:
        assert sqnr_db(example.call(captured.module), example.call(lowered)) > 30
