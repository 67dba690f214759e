"""Evenly spaced numbers whose count is a dynamic size."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.replaced import replaced_attribute

_linspace = torch.linspace
_affine_grid = nn.functional.affine_grid


@contextlib.contextmanager
def even_steps_of_any_count() -> Iterator[None]:
    """Trace ``linspace`` and ``affine_grid`` of a symbolic size as ops that leave it free.

    The count of torch's operator ``linspace`` is a plain number, so a trace fixes the size (torch 2.13), and that of
    ``affine_grid`` calls it. The numbers differ from torch's in the last bit.
    """
    with (
        replaced_attribute(torch, "linspace", _free_linspace),
        replaced_attribute(nn.functional, "affine_grid", _free_affine_grid),
    ):
        yield


def _free_linspace(start: Any, end: Any, steps: Any, **options: Any) -> Tensor:
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
