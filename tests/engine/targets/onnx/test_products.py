"""Products written in every way: those with a stored matrix run in 8 bits, and of the others it is said why not."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx.products import as_matmuls, drop_unused_constants, store_transposed, unfit
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel, _random

TARGET = TARGETS["onnxruntime"]


def _model(kind, inputs, weight, *, rank, **settings):
    node = helper.make_node(kind, inputs, ["y"], name="product", **settings)
    bias = numpy_helper.from_array(np.linspace(-1, 1, weight.shape[-1], dtype=np.float32), "b")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [f"d{index}" for index in range(rank)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w"), *([bias] if "b" in inputs else [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _run(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("equation", "weight", "x"),
    [
        ("btd,ed->bte", (5, 6), (2, 3, 6)),
        ("btd,dhk->bthk", (6, 2, 4), (2, 3, 6)),
        ("bthk,hkd->btd", (2, 4, 6), (2, 3, 2, 4)),
        ("btd,de->bet", (6, 5), (2, 3, 6)),
        ("dbt,de->bte", (6, 5), (6, 2, 3)),
    ],
)
def test_an_einsum_with_a_stored_factor_becomes_a_matrix_product_of_the_same_value(equation, weight, x):
    generator = np.random.default_rng(0)
    stored, given = (generator.normal(size=size).astype(np.float32) for size in (weight, x))
    model = _model("Einsum", ["x", "w"], stored, rank=len(x), equation=equation)
    wanted = _run(model, given)
    assert as_matmuls(model, {"product"}) == ["product"]
    assert "Einsum" not in {node.op_type for node in model.graph.node}
    np.testing.assert_allclose(_run(model, given), wanted, rtol=1e-4, atol=1e-5)


def test_the_factors_of_a_gemm_go_into_the_weight_and_the_bias():
    weight = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    model = _model("Gemm", ["x", "w", "b"], weight, rank=2, transB=1, alpha=0.5, beta=2.0)
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.arange(5, dtype=np.float32), "b"))
    x = np.random.default_rng(1).normal(size=(3, 6)).astype(np.float32)
    wanted = _run(model, x)
    assert as_matmuls(model, {"product"})
    np.testing.assert_allclose(_run(model, x), wanted, rtol=1e-4, atol=1e-5)


def test_a_product_that_the_kernels_cannot_take_says_why_and_stays_as_it_is():
    square = np.ones((3, 3), np.float32)
    for inputs, weight, words in (
        (["w", "x"], square, "comes first"),
        (["x", "w"], np.ones((2, 3, 3), np.float32), "3 dimension"),
        (["x", "x"], square, "both factors"),
    ):
        model = _model("MatMul", inputs, weight, rank=3)
        constants = {tensor.name: tensor for tensor in model.graph.initializer}
        assert words in unfit(model.graph.node[0], constants)
        assert as_matmuls(model, {"product"}) == []


class Layer(nn.Module):
    """A linear layer as one of several expressions; x [b, t, 16]."""

    def __init__(self, compute, *shape):
        super().__init__()
        self.compute = compute
        self.weight = nn.Parameter(_random(*shape) / 4)

    def forward(self, x):
        return self.compute(x, self.weight)


def _captured(compute, *shape):
    return capture(TinyModel(Layer(compute, *shape).eval(), [(_random(2, 3, 16),), (_random(3, 5, 16, seed=1),)]))


@pytest.mark.parametrize(
    ("compute", "shape"),
    [
        (lambda x, w: torch.einsum("btd,dhk->bthk", x, w).flatten(2), (16, 4, 8)),
        (lambda x, w: torch.addmm(w[0], x.flatten(0, 1), w.t(), alpha=0.5, beta=2.0), (16, 16)),
    ],
)
def test_a_linear_layer_by_another_name_is_8_bit_on_the_fly(compute, shape):
    captured = _captured(compute, *shape)
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_DYNAMIC))
    assert "int8-dynamic" in {one.actual for one in lowered.read_back()}
    assert min(sqnr_db(one.call(captured.module), one.call(lowered)) for one in captured.examples) > 30.0


def test_where_nothing_can_be_quantized_every_reason_is_said():
    def attention(x, w):
        mixed = nn.functional.conv1d(x.transpose(1, 2), w).transpose(1, 2)
        return torch.softmax(mixed @ x.transpose(1, 2), -1) @ x

    captured = _captured(attention, 16, 16, 1)
    with pytest.raises(AceError) as raised:
        TARGET.lower(job_for(TARGET, captured, Precision.INT8_DYNAMIC))
    why = raised.value.problem.why
    assert "matmul, matmul_1: both factors of MatMul are computed" in why
    assert "conv1d: ConvInteger" in why


def test_a_batch_of_stored_matrices_stays_float_and_says_so():
    captured = _captured(lambda x, w: torch.matmul(x.unsqueeze(1), w).sum(1) + x @ w[0], 3, 16, 16)
    lowered = TARGET.lower(job_for(TARGET, captured, Precision.INT8_DYNAMIC))
    reasons = {one.op_id: (one.actual, one.reason) for one in lowered.read_back()}
    assert reasons["matmul"][0] == "fp32"
    assert "3 dimension" in reasons["matmul"][1]
    assert reasons["matmul_1"][0] == "int8-dynamic"


@pytest.mark.parametrize(("others", "readers", "left"), [((), (), 0), (("Relu",), (), 2), (("Relu",), ("a",), 1)])
def test_a_weight_is_stored_as_it_is_read_unless_others_read_it_as_it_is(others, readers, left):
    make = helper.make_node
    nodes = [node for name in "ab" for node in (
        make("Transpose", ["w"], [f"t{name}"], name=f"t{name}", perm=[1, 0]),
        make("MatMul", ["x", f"t{name}"], [f"y{name}"], name=name),
    )]  # fmt: skip
    nodes += [make(kind, ["w"], ["z"], name="z") for kind in others]
    names = ["ya", "yb", *["z"][: len(others)]]
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    before = _run(model, np.ones((1, 2), np.float32))
    assert store_transposed(model, readers) is (left < 2)
    assert sum(node.op_type == "Transpose" for node in model.graph.node) == left
    assert len(model.graph.initializer) == 1 + bool(others and readers)
    np.testing.assert_array_equal(_run(model, np.ones((1, 2), np.float32)), before)


def test_what_only_the_branch_of_an_if_reads_stays():
    def branch(name, weight):
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node("MatMul", ["x", weight], [name])], name, [], [result])

    nodes = [
        helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "turned"], ["first"]),
        helper.make_node("If", ["which"], ["y"], then_branch=branch("yes", "turned"), else_branch=branch("no", "v")),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("which", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("first", "y")],
        [numpy_helper.from_array(np.eye(3, dtype=np.float32) * one, name) for one, name in enumerate("wv", start=1)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    assert store_transposed(model)
    drop_unused_constants(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.ones((2, 3), np.float32)
    for which, expected in ((True, x), (False, 2 * x)):
        assert np.array_equal(session.run(["y"], {"x": x, "which": np.array(which)})[0], expected)
