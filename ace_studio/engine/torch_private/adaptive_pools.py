"""Adaptive pools of a dynamic size."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

ADAPTIVE_POOL = torch.ops.aten._adaptive_avg_pool2d.default
_fixed_pool: Callable[..., Tensor] = decomposition_table[ADAPTIVE_POOL]


@contextlib.contextmanager
def adaptive_pools_of_any_size() -> Iterator[None]:
    """Decompose adaptive average pools so that they are right at every size, in torch's table of decompositions."""
    decomposition_table[ADAPTIVE_POOL] = _decomposed
    try:
        yield
    finally:
        decomposition_table[ADAPTIVE_POOL] = _fixed_pool


def _decomposed(values: Tensor, output_size: Sequence[Any]) -> Any:
    found = free_pool(values, output_size)
    return _fixed_pool(values, output_size) if found is NotImplemented else found


def free_pool(values: Tensor, output_size: Sequence[Any]) -> Any:
    """The pool as ops that are right at every size; NotImplemented if no size is dynamic.

    The decomposition of torch, and Inductor's code, ask how the traced size divides, and fix the answer (torch 2.13):
    at a size that divides otherwise the results are others, or values beyond the border are read.
    """
    rows, columns = output_size
    if not any(isinstance(one, torch.SymInt) for one in (*values.shape[-2:], rows, columns)):
        return NotImplemented
    return _means(_means(values, columns).transpose(-1, -2), rows).transpose(-1, -2)


def _means(values: Tensor, count: Any) -> Tensor:
    """The means of ``count`` ranges of the last dimension. No range is longer than the quotient and two."""
    size = values.shape[-1]
    index = torch.arange(count, device=values.device)
    start = torch.div(index * size, count, rounding_mode="trunc")
    length = torch.div((index + 1) * size + count - 1, count, rounding_mode="trunc") - start
    step = torch.arange(size // count + 2, device=values.device)
    place = (start.unsqueeze(1) + step).clamp(max=size - 1)
    ranges = values.index_select(-1, place.flatten()).reshape(*values.shape[:-1], *place.shape)
    return torch.where(step < length.unsqueeze(1), ranges, 0).sum(-1) / length
