"""Operators that every target supports, as they are or under other names.

Asking the compilers would cost seconds of imports at every capture. A test compares the list with the compilers' own
tables.
"""

_NAMES = """
__and__.Tensor abs.default adaptive_avg_pool1d.default adaptive_avg_pool2d.default add.Scalar add.Tensor add_.Tensor
addmm.default alias.default amax.default amin.default arange.default arange.start arange.start_step argmax.default
avg_pool2d.default batch_norm.default bitwise_not.default bmm.default broadcast_to.default cat.default ceil.default
chunk.default clamp.default clamp_max.default clamp_min.default clone.default col2im.default constant_pad_nd.default
contiguous.default conv1d.default conv2d.default conv3d.default conv_transpose1d.default conv_transpose2d.input
cos.default detach.default detach_.default div.Scalar div.Tensor div.Tensor_mode div_.Tensor dropout.default
dropout_.default einsum.default elu.default embedding.default eq.Scalar eq.Tensor erf.default exp.default
expand.default expand_as.default fill_.Tensor flatten.using_ints flip.default floor.default full.default
full_like.default gather.default ge.Scalar ge.Tensor gelu.default group_norm.default gt.Scalar gt.Tensor
hardsigmoid.default hardsigmoid_.default hardswish.default hardswish_.default hardtanh.default im2col.default
index.Tensor index_select.default instance_norm.default layer_norm.default le.Scalar le.Tensor leaky_relu.default
lift_fresh_copy.default linalg_vector_norm.default linear.default log.default log1p.default log_softmax.int
logical_and.default logical_not.default logical_or.default lt.Scalar lt.Tensor masked_fill.Scalar masked_fill.Tensor
masked_fill_.Scalar matmul.default max.default max.dim max.other max_pool2d.default maximum.default mean.default
mean.dim min.other minimum.default mish.default mm.default movedim.int mul.Scalar mul.Tensor mul_.Scalar mul_.Tensor
narrow.default ne.Scalar ne.Tensor neg.default new_ones.default new_zeros.default ones.default ones_like.default
pad.default permute.default pixel_shuffle.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prelu.default
rand_like.default reciprocal.default relu.default relu6.default relu_.default repeat.default reshape.default
reshape_as.default roll.default round.default rsqrt.default rsub.Scalar scaled_dot_product_attention.default
select.int selu.default sigmoid.default sigmoid_.default silu.default silu_.default sin.default slice.Tensor
softmax.int softplus.default split.Tensor split_with_sizes.default sqrt.default square.default squeeze.default
squeeze.dim squeeze.dims stack.default sub.Scalar sub.Tensor sub_.Tensor sum.default sum.dim_IntList
swapaxes.default t.default tanh.default tanh_.default to.device to.dtype to.dtype_layout transpose.int tril.default
triu.default type_as.default unbind.int unflatten.int unfold.default unsafe_split.Tensor unsqueeze.default
upsample_bicubic2d.vec upsample_bilinear2d.vec upsample_nearest2d.vec var.correction view.default where.ScalarOther
where.self zero_.default zeros.default zeros_like.default
"""
EVERYDAY_OPS = frozenset({"getitem", *(f"aten.{name}" for name in _NAMES.split())})
"""As `GraphTable.op` names them."""
