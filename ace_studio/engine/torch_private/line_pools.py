"""Maximum pools over a line whose length is dynamic."""

import contextlib
from collections.abc import Iterator
from typing import Any

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
    kernel_size: Any,  # a number, or a sequence of one, as all that follow
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
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
