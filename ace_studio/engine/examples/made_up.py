"""Kinds of made-up inputs: what a precision loses on numbers that it was not calibrated on."""

from collections.abc import Callable

import torch
from torch import Tensor

from ace_studio.engine.flow import Example

NORMAL = "normal numbers"
KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    NORMAL: torch.randn_like,
    "numbers from -1 to 1": lambda leaf: 2 * torch.rand_like(leaf) - 1,
    "pixels from 0 to 1": torch.rand_like,
    "pixels from 0 to 255": lambda leaf: 255 * torch.rand_like(leaf),
    "numbers that are mostly zero": lambda leaf: torch.randn_like(leaf) * (torch.rand_like(leaf) < 0.1),
    "numbers a thousand times smaller": lambda leaf: 1e-3 * torch.randn_like(leaf),
}
"""Name -> maker of numbers like those of a tensor."""
_PIXEL_DIMS, _CHANNELS = 4, (1, 3, 4)
_SEED = 20240608


def of_kind(name: str, example: Example, *, seed: int = 0) -> Example:
    """The example with other numbers, the same for a seed; integers, and floats that are all alike (masks), stay.

    Raises: ValueError if no number changes, or for pixels without a picture.
    """
    leaves = [leaf for leaf in example.tensors() if _is_drawn(leaf)]
    has_pixels = any(leaf.dim() == _PIXEL_DIMS and {leaf.shape[1], leaf.shape[-1]} & {*_CHANNELS} for leaf in leaves)
    if not leaves or ("pixels" in name and not has_pixels):
        raise ValueError(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED + seed)
        return example.map_tensors(lambda leaf: KINDS[name](leaf.float()).to(leaf) if _is_drawn(leaf) else leaf)


def _is_drawn(leaf: Tensor) -> bool:
    return leaf.is_floating_point() and leaf.numel() > 0 and bool((leaf != leaf.flatten()[0]).any())
