"""Calls of torch traced as the plain ops that they consist of, which every runtime computes, in 8 bits and at any size.

The releases in which torch fixes a size or loses a constant are named beside the function that stands in for its own.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import transformer

from ace_studio.engine.replaced import replaced_attribute

_FLEX_ATTENTION = "torch.nn.attention.flex_attention"
_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda rows: rows.sum(1),
    "mean": lambda rows: rows.mean(1),
    "max": lambda rows: rows.amax(1),
}
_affine_grid = functional.affine_grid
_embedding_bag = functional.embedding_bag
_encoder_forward = nn.TransformerEncoder.forward
_linspace = torch.linspace
_max_pool1d = torch.max_pool1d


@contextmanager
def calls_as_plain_ops() -> Iterator[None]:
    """Trace the calls for which this module has a form of its own in that form."""
    replaced: list[tuple[Any, str, Any]] = [
        (functional, "embedding_bag", _as_lookup),
        (functional, "affine_grid", _free_affine_grid),
        (torch, "linspace", _free_linspace),
        (torch, "max_pool1d", _free_max_pool1d),
        (nn.TransformerEncoder, "forward", _encode),
        (transformer, "_detect_is_causal_mask", _is_said_to_be_causal),
    ]
    flex: Any = sys.modules.get(_FLEX_ATTENTION)
    if flex is not None:  # else the model does not use it, and importing it takes time
        replaced.append((type(flex.flex_attention_hop), "__call__", lambda _, *args: _attention(*args)))
        # Otherwise the function starts the compiler, which cannot run inside a trace.
        replaced.append((flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True))
    with layers_of_single_ops(), ExitStack() as stack:
        for owner, name, value in replaced:
            stack.enter_context(replaced_attribute(owner, name, value))
        yield


@contextmanager
def layers_of_single_ops() -> Iterator[None]:
    """Trace torch's attention and encoder layers without the operators that fuse a whole layer.

    Fused, a layer is fast, but no other runtime has the operators, and nothing in it could have a precision of its own.
    """
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)


# --- flex attention ---


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: Sequence[Any],
    scale: float,
    _kernel_options: object,
    *buffers: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Products, the user's function, a mask and a softmax: no program or exporter can hold an op that holds functions.

    Arguments and results are those of torch's op: output, and per row log-sum-exp and largest score, both to base 2.

    The user's functions take one score and its four indices. They get all scores at once and indices that broadcast:
    under ``vmap``, as torch runs them, the tracer of composite operators loses constants (torch 2.13). A function that
    reduces a tensor would differ; the capture is compared with eager anyway.
    """
    of_score, of_mask = (*buffers, (), ())[:2]
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    scores = query @ key.transpose(-2, -1) * scale
    indices = [
        torch.arange(size, device=query.device).reshape(-1, *[1] * (3 - dim)) for dim, size in enumerate(scores.shape)
    ]
    kept = block_mask[-1](*indices, *of_mask)
    scores = score_mod(scores, *indices, *of_score)
    if kept.dim() > 0:  # without a mask the function gives a single True
        scores = scores.masked_fill(~kept, -math.inf)
    output = torch._safe_softmax(scores, -1) @ value
    return output, scores.logsumexp(-1) / math.log(2), scores.amax(-1) / math.log(2)


# --- encoder layers ---


def _is_said_to_be_causal(_mask: object, is_causal: bool | None = None, *_: Any, **__: Any) -> bool:
    """A mask is not compared with a causal one, which branches on its values: attention with it gives the same."""
    return is_causal is True


def _encode(
    self: nn.TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    """Zeros at padded places, where eager packs the others into a nested tensor, which a graph cannot hold.

    Eager does so if the padding of every row is at its end; the capture is compared with eager anyway.
    """
    may_pack = getattr(self, "use_nested_tensor", False) and not self.layers[0].training
    if src_key_padding_mask is None or mask is not None or src.dim() != 3 or not may_pack:
        return _encoder_forward(self, src, mask, src_key_padding_mask, is_causal)
    output = src
    for layer in self.layers:
        output = layer(output, src_key_padding_mask=src_key_padding_mask)
    output = output.masked_fill((src_key_padding_mask != 0).unsqueeze(-1), 0.0)
    return output if self.norm is None else self.norm(output)


# --- embedding bags ---


def _as_lookup(input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``embedding`` and a sum, mean or maximum.

    ONNX's exporter writes the operator as a loop over the bags, which OpenVINO refuses if sizes are dynamic, and which
    takes ONNX Runtime 30 times as long (torch 2.13). Bags that leave a row out stay as they are.
    """
    names = ("offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse", "per_sample_weights",
             "include_last_offset", "padding_idx")  # fmt: skip
    given = dict(zip(names, args, strict=False)) | kwargs
    mode, offsets = given.get("mode", "mean"), given.get("offsets")
    is_plain = given.get("max_norm") is None and given.get("padding_idx") is None
    if mode not in _REDUCTIONS or not is_plain or (input.dim() == 1) != isinstance(offsets, Tensor):
        return _embedding_bag(input, weight, *args, **kwargs)
    rows = functional.embedding(input, weight)
    scales = given.get("per_sample_weights")
    rows = rows if scales is None else rows * scales.unsqueeze(-1)
    if offsets is None:
        return _REDUCTIONS[mode](rows)
    return _reduced(rows, offsets[:-1] if given.get("include_last_offset") else offsets, mode)


def _reduced(rows: Tensor, offsets: Tensor, mode: str) -> Tensor:
    """The rows [n, d] of each bag as one: [bags, d]. Bags begin at the offsets [bags]; an empty one gives zeros.

    ``index_add`` becomes a ``ScatterND`` in ONNX, 11 times as fast as the ``ScatterElements`` of ``scatter_add``.
    """
    bags, n = offsets.shape[0], rows.shape[0]
    begins = torch.zeros(n + 1, dtype=torch.int64, device=rows.device)
    places = begins.index_add(0, offsets.long(), torch.ones_like(offsets, dtype=torch.int64)).cumsum(0)[:-1] - 1
    if mode == "max":
        least = rows.new_full((bags, rows.shape[1]), -torch.inf)
        found = least.scatter_reduce(0, places.unsqueeze(1).expand_as(rows), rows, "amax")
        return torch.where(found == -torch.inf, 0.0, found)
    found = rows.new_zeros((bags, rows.shape[1])).index_add(0, places, rows)
    if mode == "sum":
        return found
    counts = rows.new_zeros(bags).index_add(0, places, rows.new_ones(n))
    return found / counts.clamp(min=1).unsqueeze(1)


# --- sizes that torch's operators take as plain numbers ---


def _free_linspace(start: Any, end: Any, steps: Any, **options: Any) -> Tensor:
    """Torch's operator takes a plain count, so a trace fixes it (2.13). The numbers differ from its in the last bit."""
    dtype = options.get("dtype") or torch.get_default_dtype()
    is_plain = dtype.is_floating_point and not any(isinstance(one, Tensor) for one in (start, end, options.get("out")))
    is_free = isinstance(steps, torch.SymInt)
    if not is_free or not is_plain:
        return _linspace(start, end, steps, **options)
    index = torch.arange(steps, **(options | {"dtype": dtype}))
    last = index[-1:]
    step = torch.full_like(last, end - start) / last.clamp(min=1)
    is_first_half = (index < last - index) | (last < 1)
    return torch.where(is_first_half, start + step * index, end - step * (last - index))


def _free_affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """As `_free_linspace`, which torch's own calls for its places."""
    spatial = size[2:]
    if not any(isinstance(one, torch.SymInt) for one in spatial):
        return _affine_grid(theta, list(size), align_corners)
    axes = []
    for count in spatial:
        index = torch.arange(count, dtype=theta.dtype, device=theta.device)
        last = index[-1:]
        axes.append((2 * index - last) / (last.clamp(min=1) if align_corners else last + 1))
    places = torch.meshgrid(*axes, indexing="ij")
    base = torch.stack([*reversed(places), torch.ones_like(places[0])], -1).unsqueeze(-1)
    # No matrix product: in 8 bits places would be rounded to a 256th of the picture.
    rows = theta.transpose(1, 2).reshape(size[0], *[1] * len(spatial), len(spatial) + 1, len(spatial))
    return (base * rows).sum(-2)


def _free_max_pool1d(
    input: Tensor,
    kernel_size: Any,  # a number, or a sequence of one, as all that follow
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """``max_pool2d`` of a picture with one row: ``max_pool1d`` reads the length as a plain number (torch 2.13)."""
    stride = kernel_size if stride in (None, (), []) else stride
    length: object = input.shape[-1]
    if not isinstance(length, torch.SymInt):
        return _max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    pool: Any = torch.max_pool2d
    sides = [
        [beside, side if isinstance(side, int) else side[0]]
        for beside, side in ((1, kernel_size), (1, stride), (0, padding), (1, dilation))
    ]
    pooled: Tensor = pool(input.unsqueeze(-2), *sides, ceil_mode)
    return pooled.squeeze(-2)
