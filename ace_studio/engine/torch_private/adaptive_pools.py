"""Adaptive pools of sizes that are dynamic, or that do not divide, and means of channels-last pictures."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._ops import OpOverload

_AVERAGE = torch.ops.aten._adaptive_avg_pool2d.default
_MAXIMUM = torch.ops.aten.adaptive_max_pool2d.default
_COMPOSITE_AVERAGE: Any = torch.ops.aten.adaptive_avg_pool2d.default


@contextlib.contextmanager
def adaptive_pools_of_any_size() -> Iterator[None]:
    """Decompose adaptive pools so that they are right at every size, in torch's table of decompositions."""
    before: dict[Any, Callable[..., Any]] = {pool: decomposition_table[pool] for pool in FREE_POOLS}
    decomposition_table.update(with_free_pools(before))
    _COMPOSITE_AVERAGE.py_kernels[_COMPOSITE] = _plain_average_pool
    _COMPOSITE_AVERAGE._dispatch_cache.clear()
    try:
        yield
    finally:
        decomposition_table.update(before)
        del _COMPOSITE_AVERAGE.py_kernels[_COMPOSITE]
        _COMPOSITE_AVERAGE._dispatch_cache.clear()


def with_free_pools(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """A table of decompositions in which adaptive pools are right at every size."""

    def free(pool: OpOverload, values: Tensor, output_size: Sequence[Any]) -> Any:
        found = FREE_POOLS[pool](values, output_size)
        return table[pool](values, output_size) if found is NotImplemented and pool in table else found

    return {**table, **{pool: partial(free, pool) for pool in FREE_POOLS}}


def free_average_pool(values: Tensor, output_size: Sequence[Any]) -> Any:
    """The pool as ops that are right at every size; NotImplemented if no size is dynamic.

    The decomposition of torch, and Inductor's code, ask how the traced size divides, and fix the answer (torch 2.13):
    at a size that divides otherwise the results are others, or values beyond the border are read.
    """
    rows, columns = output_size
    if not _is_dynamic(values, output_size):
        return NotImplemented
    return _means(_means(values, columns).transpose(-1, -2), rows).transpose(-1, -2)


def free_max_pool(values: Tensor, output_size: Sequence[Any]) -> Any:
    """The maxima and their places, as `free_average_pool`; of known sizes too if they do not divide.

    Torch has no decomposition of these, and ONNX no such op. One maximum of everything is left to torch.
    """
    rows, columns = output_size
    height, width = values.shape[-2:]
    if tuple(output_size) == (1, 1) or not (_is_dynamic(values, output_size) or height % rows or width % columns):
        return NotImplemented
    wide, column = _maxima(values, columns)
    tall, row = _maxima(wide.transpose(-1, -2), rows)
    places = row * width + column.transpose(-1, -2).gather(-1, row)
    return tall.transpose(-1, -2), places.transpose(-1, -2)


FREE_POOLS: Mapping[OpOverload, Callable[..., Any]] = {_AVERAGE: free_average_pool, _MAXIMUM: free_max_pool}
"""Op of torch -> its decomposition for every size."""


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


def _plain_average_pool(values: Tensor, output_size: Sequence[Any]) -> Tensor:
    """What torch decomposes the pool into, without strides.

    Torch writes the mean of a channels-last picture as `as_strided` (torch 2.13), which in ONNX is arithmetic on
    places and a gather.
    """
    if all(isinstance(size, int) and size == 1 for size in output_size):
        return values.mean((-2, -1), keepdim=True)
    average: Tensor = _AVERAGE(values, output_size)
    return average


def _is_dynamic(values: Tensor, output_size: Sequence[Any]) -> bool:
    return any(isinstance(one, torch.SymInt) for one in (*values.shape[-2:], *output_size))


def _means(values: Tensor, count: Any) -> Tensor:
    """The means of ``count`` ranges of the last dimension."""
    place, end = _ranges(values, count)
    is_inside = place < end
    return torch.where(is_inside, _taken(values, place), 0).sum(-1) / is_inside.sum(-1)


def _maxima(values: Tensor, count: Any) -> tuple[Tensor, Tensor]:
    """The maxima of ``count`` ranges of the last dimension, and their places in it."""
    place, end = _ranges(values, count)
    place = torch.minimum(place, end - 1)  # the last value of a range once more changes no maximum
    ranges = _taken(values, place)
    best = ranges.argmax(-1, keepdim=True)
    return ranges.amax(-1), place.expand(ranges.shape).gather(-1, best).squeeze(-1)


def _ranges(values: Tensor, count: Any) -> tuple[Tensor, Tensor]:
    """Places of ``count`` ranges in the last dimension, one range per row, and their ends: places beyond are others'.

    No range is longer than the quotient and two.
    """
    size = values.shape[-1]
    index = torch.arange(count, device=values.device).unsqueeze(1)
    start = torch.div(index * size, count, rounding_mode="trunc")
    end = torch.div((index + 1) * size + count - 1, count, rounding_mode="trunc")
    return start + torch.arange(size // count + 2, device=values.device), end


def _taken(values: Tensor, place: Tensor) -> Tensor:
    last = values.shape[-1] - 1
    return values.index_select(-1, place.clamp(max=last).flatten()).reshape(*values.shape[:-1], *place.shape)
