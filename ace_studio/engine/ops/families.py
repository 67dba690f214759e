"""Families of torch operators that passes over a graph treat alike, as ``str(node.target)`` names them.

Overloads matter here; families by plain name, of ONNX operators too, are in `ace_studio.records.ops`.
"""


def aten_ops(names: str) -> frozenset[str]:
    """``{"aten.relu.default"}`` of ``"relu.default"``; several names are parted by spaces."""
    return frozenset(f"aten.{name}" for name in names.split())


ADDING_OPS = aten_ops("add.Tensor add_.Tensor")
"""Additions of two tensors, or of a tensor and a number."""
LINEAR_OPS = aten_ops("linear.default addmm.default mm.default matmul.default")
"""Products whose weight can be one stored matrix; that of ``bmm`` has three dimensions."""
RELUS = aten_ops("relu.default relu_.default")
LEAKY_RELUS = aten_ops("leaky_relu.default leaky_relu_.default")
CLAMPS = RELUS | aten_ops("relu6.default hardtanh.default hardtanh_.default clamp.default clamp_min.default")
"""Ops that the bounds of an 8-bit grid can do."""
IDENTITIES = aten_ops("alias.default clone.default contiguous.default detach.default dropout.default")
"""Ops that give the values that they read, in eval mode."""
MAX_POOLS = aten_ops("max_pool1d.default max_pool2d.default")
AVERAGE_POOLS = aten_ops("avg_pool1d.default avg_pool2d.default")
ADAPTIVE_POOLS = aten_ops("adaptive_avg_pool1d.default adaptive_avg_pool2d.default")

LAYOUT_OPS = IDENTITIES | aten_ops(
    "cat.default chunk.default expand.default expand_as.default flatten.using_ints"
    " movedim.int permute.default repeat.default reshape.default _unsafe_view.default select.int slice.Tensor"
    " split.Tensor split_with_sizes.default squeeze.default squeeze.dim squeeze.dims stack.default t.default"
    " transpose.int unbind.int unflatten.int unsqueeze.default view.default view_as.default pad.default"
    " constant_pad_nd.default embedding.default index_select.default pixel_shuffle.default upsample_nearest2d.vec"
)
"""Ops that only move or repeat values, without computing any."""
