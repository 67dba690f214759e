"""Flex attention written as plain ops: no program file and no exporter can hold an op that holds functions."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.replaced import replaced_attribute

_MODULE = "torch.nn.attention.flex_attention"


@contextlib.contextmanager
def flex_attention_as_plain_ops() -> Iterator[None]:
    """Trace ``torch.nn.attention.flex_attention`` as products, the user's function, a mask and a softmax."""
    module: Any = sys.modules.get(_MODULE)
    if module is None:  # the model does not use it, and importing it takes time
        yield
        return
    with (
        replaced_attribute(type(module.flex_attention_hop), "__call__", lambda _, *args: _attention(*args)),
        # Otherwise the function starts the compiler, which cannot run inside a trace.
        replaced_attribute(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True),
    ):
        yield


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
    """The arguments and results of torch's op: output, and per row log-sum-exp and largest score, both to base 2.

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
