import pytest

from ace_studio.records.ops import WEIGHTED, OpFamily, family_of, is_weighted, operator_name


@pytest.mark.parametrize(
    ("op", "name"),
    [("aten.conv2d.default", "conv2d"), ("onnx.Conv", "Conv"), ("getitem", "getitem"), ("prims.sum.default", "sum")],
)
def test_the_name_of_an_operator_leaves_out_namespace_and_overload(op, name):
    assert operator_name(op) == name


@pytest.mark.parametrize(
    "op",
    ["aten.conv_transpose3d.input", "aten.baddbmm.default", "aten.rnn_tanh.input", "onnx.Gemm", "onnx.ConvTranspose"],
)
def test_convolutions_products_and_recurrence_hold_the_arithmetic(op):
    assert is_weighted(op)


@pytest.mark.parametrize(
    "op", ["aten.relu.default", "aten.embedding.default", "onnx.Softmax", "my_library.linear.default"]
)
def test_neither_activations_nor_a_users_own_operator_count_as_arithmetic(op):
    assert not is_weighted(op)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("conv2d", OpFamily.PRODUCT),
        ("max_pool2d", OpFamily.REDUCTION),
        ("max", OpFamily.REDUCTION),
        ("scaled_dot_product_attention", OpFamily.ATTENTION),
        ("mul", OpFamily.OTHER),
        ("transpose", OpFamily.SHAPE),
        ("tanh", OpFamily.ACTIVATION),
        ("GlobalAveragePool", OpFamily.REDUCTION),
        ("LayerNormalization", OpFamily.NORM),
        ("Gather", OpFamily.LOOKUP),
    ],
)
def test_ops_belong_to_families_by_the_longest_start_of_their_name(name, family):
    assert family_of(name) is family


def test_what_holds_the_arithmetic_is_coloured_as_arithmetic():
    assert {family_of(name) for name in WEIGHTED} == {OpFamily.PRODUCT, OpFamily.ATTENTION}
