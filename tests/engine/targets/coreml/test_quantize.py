"""Which ops get 8 bits, and that the file holds our integers."""

import pytest
import torch
from torch import nn

from ace_studio.engine.targets.coreml.package import read_spec
from ace_studio.engine.targets.coreml.quantize import coreml_op_problem, quantized_graph
from ace_studio.records.recipes.plan import Precision
from tests.engine.captured import captured_of
from tests.engine.targets.conftest import bound, captured_model, make_job
from tests.engine.targets.coreml.conftest import WEIGHTS, needs_coreml, operations


def test_an_operator_without_8_bits_is_refused_with_the_reason():
    assert coreml_op_problem("aten.conv2d.default", Precision.INT8_WEIGHT) == ""
    assert coreml_op_problem("aten.embedding.default", Precision.INT8_STATIC) == ""
    assert "no 8-bit values around aten.softmax.int" in coreml_op_problem("aten.softmax.int", Precision.INT8_STATIC)
    assert "aten.add.Tensor has no weight" in coreml_op_problem("aten.add.Tensor", Precision.INT8_WEIGHT)


@needs_coreml
@pytest.mark.slow
def test_the_weights_in_the_file_are_our_integers(package):
    from coremltools.libmilstoragepython import _BlobStorageReader

    stored = [one for one in operations(read_spec(package)) if one.type.startswith("constexpr")]
    matrices = [one.weight.detach() for one in captured_model("mlp").module.modules() if isinstance(one, nn.Linear)]
    assert len(stored) == len(matrices) > 1
    reader = _BlobStorageReader(str(package / WEIGHTS))
    for one, matrix in zip(stored, matrices, strict=True):
        integers = one.attributes["quantized_data"]
        kept = (
            reader.read_int8_data(integers.blobFileValue.offset)
            if integers.HasField("blobFileValue")
            else list(memoryview(integers.immediateValue.tensor.bytes.values).cast("b"))
        )
        scales = matrix.abs().amax(1, keepdim=True) / 127
        expected = (matrix / scales).round().to(torch.int8)
        assert torch.equal(torch.tensor(kept, dtype=torch.int8).reshape(matrix.shape), expected)


def test_a_transposed_convolution_gets_a_scale_for_each_of_its_output_channels(tmp_path):
    captured = captured_of(nn.ConvTranspose2d(3, 5, 2).eval(), torch.randn(2, 3, 4, 4), torch.randn(3, 3, 4, 4))
    job = make_job(captured, bound("coreml", captured, Precision.INT8_WEIGHT), tmp_path)
    graph_module = quantized_graph(job).graph_module
    (widened,) = [node for node in graph_module.graph.nodes if "dequantize_per_channel" in str(node.target)]
    _, scales, _, axis = widened.args[:4]
    expected = captured.module.weight.detach().abs().amax((0, 2, 3)) / 127
    torch.testing.assert_close(getattr(graph_module, scales.target), expected, check_dtype=False)
    assert axis == 1
