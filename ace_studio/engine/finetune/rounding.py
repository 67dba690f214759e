"""Int8's rounding inside a module while it trains: weights and inputs of layers; gradients pass straight through.

The grids are those that the targets use. A batch norm behind a convolution is folded into its weight by the targets:
that multiplies every output channel by a number, and with one scale per channel the rounding stays the same.
Source: Jacob et al. 2018, arXiv:1712.05877, section 3.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ace_studio.engine.flow import Example
from ace_studio.engine.quantize.affine import AffineGrid, affine_grid, symmetric_grid, weight_grid
from ace_studio.records.processor import int8_weight_bits

ROUNDED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
"""Classes of layers whose rounding is known to be the targets' own."""


class RoundedWeight(nn.Module):
    """A weight as int8 stores it: one symmetric scale per output channel, or one for all."""

    def __init__(self, *, per_channel: bool) -> None:
        super().__init__()
        self.per_channel = per_channel

    def forward(self, weight: Tensor) -> Tensor:
        """The weight on its grid."""
        values = weight.detach()
        bits = int8_weight_bits()
        if self.per_channel:
            grid = weight_grid(values, bits=bits)
        else:
            grid = symmetric_grid(values.abs().amax().float(), bits=bits)
        return straight_through(weight, grid)


def straight_through(values: Tensor, grid: AffineGrid) -> Tensor:
    """The values on the grid; the gradient is 1 inside of the grid's range and 0 outside.

    Source: Bengio et al. 2013, arXiv:1308.3432.
    """
    with torch.no_grad():
        rounded = grid.round_trip(values.float()).to(values.dtype)
    low, high = (grid.dequantize(torch.full_like(grid.zero_point, bound)) for bound in (grid.low, grid.high))
    inside = (values >= _spread(low, grid, values)) & (values <= _spread(high, grid, values))
    passed: Tensor = values * inside
    return passed + (rounded - passed).detach()


def _spread(bound: Tensor, grid: AffineGrid, like: Tensor) -> Tensor:
    if grid.axis is None or bound.dim() == 0:
        return bound
    return bound.reshape([-1 if dim == grid.axis else 1 for dim in range(like.dim())])


def input_ranges(
    module: nn.Module, layers: Mapping[str, nn.Module], examples: Sequence[Example]
) -> dict[str, tuple[Tensor, Tensor]]:
    """The smallest and the largest input of every layer over the examples; layers that are not called are left out."""
    ranges: dict[str, tuple[Tensor, Tensor]] = {}

    def watch(path: str, _: nn.Module, args: tuple[Any, ...]) -> None:
        low, high = args[0].detach().float().aminmax()
        before = ranges.get(path, (low, high))
        ranges[path] = (torch.minimum(low, before[0]), torch.maximum(high, before[1]))

    with ExitStack() as hooks, torch.no_grad():
        for path, layer in layers.items():
            hooks.enter_context(layer.register_forward_pre_hook(partial(watch, path)))
        for example in examples:
            example.copied().call(module)
    return ranges


class Rounding:
    """Int8's rounding for some layers of a module, on for the time of `applied`."""

    def __init__(self, module: nn.Module, layers: Mapping[str, nn.Module], *, per_channel: bool = True) -> None:
        self._module = module
        self.layers = layers
        self._per_channel = per_channel
        self._grids: dict[str, AffineGrid] = {}

    def calibrate(self, examples: Sequence[Example]) -> None:
        """Find the ranges of the inputs anew; the targets will do so after training as well."""
        ranges = input_ranges(self._module, self.layers, examples)
        self._grids = {path: affine_grid(low, high, bits=8) for path, (low, high) in ranges.items()}

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Round weights and inputs; afterwards the layers are as they were, but for what training did."""
        with ExitStack() as hooks:
            for path, grid in self._grids.items():
                hooks.enter_context(self.layers[path].register_forward_pre_hook(partial(_round_input, grid)))
            for layer in self.layers.values():
                parametrize.register_parametrization(layer, "weight", RoundedWeight(per_channel=self._per_channel))
                hooks.callback(_unrounded, layer)
            yield


def _unrounded(layer: nn.Module) -> None:
    """Store the weight plainly again, in front of the bias, as it was."""
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    if layer.get_parameter("weight") is not next(layer.parameters(recurse=False)):
        bias = layer.get_parameter("bias")
        del layer.bias
        layer.register_parameter("bias", bias)


def _round_input(grid: AffineGrid, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (straight_through(args[0], grid), *args[1:])
