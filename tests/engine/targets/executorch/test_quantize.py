"""Which operators XNNPACK gets in 8 bits, and why not the others."""

from ace_studio.engine.targets.executorch.quantize import executorch_op_problem
from ace_studio.records.recipes.plan import Precision


def test_what_xnnpack_has_no_kernel_for_is_refused_with_the_reason():
    assert executorch_op_problem("aten.linear.default", Precision.INT8_DYNAMIC) == ""
    assert "linear ops only" in executorch_op_problem("aten.conv2d.default", Precision.INT8_DYNAMIC)
    assert "no int8 kernel of aten.softmax.int" in executorch_op_problem("aten.softmax.int", Precision.INT8_STATIC)
    assert executorch_op_problem("aten.add.Tensor", Precision.INT8_STATIC) == ""
