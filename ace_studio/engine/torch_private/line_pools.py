"""Maximum pools over a line whose length is dynamic."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ace_studio.engine.replaced import replaced_attribute

_max_pool1d = torch.max_pool1d


@contextlib.contextmanager
def line_pools_of_any_length() -> Iterator[None]:
    """Trace ``max_pool1d`` of a symbolic length as ``max_pool2d`` of a picture with one row.

    The operator ``max_pool1d`` reads the length as a plain number, so a trace fixes it (torch 2.13).
    """
    with replaced_attribute(torch, "max_pool1d", _free_max_pool1d):
        yield


def _free_max_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    stride = kernel_size if stride in (None, (), []) else stride
    if not isinstance(input.shape[-1], torch.SymInt):
        return _max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    sides = [
        [beside, side if isinstance(side, int) else side[0]]
        for beside, side in ((1, kernel_size), (1, stride), (0, padding), (1, dilation))
    ]
    return torch.max_pool2d(input.unsqueeze(-2), *sides, ceil_mode).squeeze(-2)
