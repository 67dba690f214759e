"""What the types in a file mean, and which of its ops a delegate runs."""

import pytest

from ace_studio.engine.targets.litert.model_file import FileOp, FileTensor, computed_in, delegated_ops

X, STORED = FileTensor("x", "FLOAT32", is_constant=False), FileTensor("w", "INT8", is_constant=True)
Y, X8, Y8 = (
    FileTensor(name, kind, is_constant=False) for name, kind in (("y", "FLOAT32"), ("x8", "INT8"), ("y8", "INT8"))
)
WIDE = FileTensor("wide", "FLOAT32", is_constant=False)
FLOAT_WEIGHT = FileTensor("float", "FLOAT32", is_constant=True)


@pytest.mark.parametrize(
    ("inputs", "result", "word"),
    [
        ((X8, STORED), Y8, "int8-static"),
        ((X, STORED), Y, "int8-dynamic"),
        ((X, WIDE), Y, "int8-weight"),
        ((X, FLOAT_WEIGHT), Y, "fp32"),
        ((X, STORED), FileTensor("places", "INT32", is_constant=False), "unknown"),
    ],
)
def test_the_types_of_a_product_s_tensors_say_what_it_computes_in(inputs, result, word):
    makers = {"wide": FileOp(0, "DEQUANTIZE", (STORED,), (WIDE,))}
    assert computed_in(FileOp(1, "CONV_2D", inputs, (result,)), makers) == word


def test_a_product_with_a_weight_that_was_computed_in_8_bits_is_not_called_weight_only():
    makers = {"wide": FileOp(0, "DEQUANTIZE", (X8,), (WIDE,))}
    assert computed_in(FileOp(1, "FULLY_CONNECTED", (X, WIDE), (Y,)), makers) == "fp32"


def test_ops_between_a_delegate_s_inputs_and_outputs_are_delegated():
    def op(index, name, inputs, outputs):
        return {"index": index, "op_name": name, "inputs": inputs, "outputs": outputs}

    chain = [
        op(0, "RESHAPE", [0], [1]),
        op(1, "CONV_2D", [1, 10], [2]),
        op(2, "ADD", [2], [3]),
        op(3, "GATHER", [3], [4]),
    ]
    assert delegated_ops(chain) == frozenset()
    assert delegated_ops([*chain, op(4, "DELEGATE", [1, 10], [3])]) == {1, 2}
