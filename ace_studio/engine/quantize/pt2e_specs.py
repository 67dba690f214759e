"""Quantization specs for torchao's PT2E flow: the plan's grids over the ranges of our own observers."""

from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.quantize.affine import affine_grid
from ace_studio.engine.quantize.observers import RangeChoice, ValueObserver, ValueRange
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import ActivationGrid, WeightGranularity

SCALE_OF_ZEROS = 2.0**-12
"""Scale of a value that was always 0, and the smallest scale of a dynamic grid."""
SMALLEST_SIGNED_SCALE = 2.0**-24
"""XNNPACK, which reads the signed values, turns quotients of scales into shifts, whose size is limited."""
_SMALLEST_WEIGHT_SCALE = 1e-12


def scale_and_zero_point(found: ValueRange, grid: ActivationGrid, *, is_signed: bool) -> tuple[float, int]:
    """Scale and zero point of the 8-bit grid over a range, of -128..127 (signed) or 0..255.

    A symmetric grid leaves out the lowest integer, so that it is its own mirror image.
    Raises: InvalidRange if a bound is not finite.
    """
    middle, smallest = (0, SMALLEST_SIGNED_SCALE) if is_signed else (128, 0.0)
    if found.low == found.high == 0.0:
        return SCALE_OF_ZEROS, 0
    if grid is ActivationGrid.SYMMETRIC:
        return max(found.symmetric.high / 127.0, smallest), middle
    made = affine_grid(torch.tensor(found.low), torch.tensor(found.high), is_signed=is_signed)
    return max(float(made.scale), smallest), int(made.zero_point)


def activation_specs(ranges: RangeChoice, *, is_signed: bool) -> dict[ActivationGrid, Any]:
    """Specs of static activations, one per kind of grid; a grid per tensor, over the range that calibration finds."""
    from torchao.quantization.pt2e import MinMaxObserver  # noqa: PLC0415 - slow

    class GridObserver(MinMaxObserver):  # type: ignore[misc]  # torchao is not typed
        """An observer for torchao that gives the range of a `ValueObserver`."""

        def __init__(self, grid: ActivationGrid, **options: Any) -> None:
            super().__init__(**options)
            self._grid = grid
            self._seen = ValueObserver(ranges)

        def forward(self, x: Tensor) -> Tensor:
            """See one value."""
            self._seen.update(x)
            return x

        @property
        def saw_nothing(self) -> bool:
            """Whether no example had a finite element here."""
            return not self._seen.has_range

        def calculate_qparams(self) -> tuple[Tensor, Tensor]:
            """Scale and zero point, [1] each."""
            scale, zero_point = scale_and_zero_point(self._seen.range(self._grid), self._grid, is_signed=is_signed)
            return torch.tensor([scale]), torch.tensor([zero_point], dtype=torch.int32)

    return {grid: _activation_spec(GridObserver.with_args(grid=grid), is_signed=is_signed) for grid in ActivationGrid}


def fresh_spec(*, is_signed: bool) -> Any:
    """The spec of dynamic activations, whose range is found at every call."""
    from torchao.quantization.pt2e import PlaceholderObserver  # noqa: PLC0415 - slow

    observer = PlaceholderObserver.with_args(eps=SCALE_OF_ZEROS)
    return _activation_spec(observer, is_signed=is_signed, is_dynamic=True)


def _activation_spec(observer: Any, *, is_signed: bool, is_dynamic: bool = False) -> Any:
    from torchao.quantization.pt2e.quantizer import QuantizationSpec  # noqa: PLC0415 - slow

    return QuantizationSpec(
        dtype=torch.int8 if is_signed else torch.uint8,
        quant_min=-128 if is_signed else 0,
        quant_max=127 if is_signed else 255,
        qscheme=torch.per_tensor_affine,
        is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=observer,
    )


def weight_specs() -> dict[WeightGranularity, Any]:
    """Specs of symmetric weights. Kernels have scales per channel only, so a scale per tensor is repeated for each."""
    from torchao.quantization.pt2e import PerChannelMinMaxObserver  # noqa: PLC0415 - slow
    from torchao.quantization.pt2e.quantizer import QuantizationSpec  # noqa: PLC0415 - slow

    class SharedScaleObserver(PerChannelMinMaxObserver):  # type: ignore[misc]  # torchao is not typed
        """Every channel gets the scale of the largest."""

        def calculate_qparams(self) -> tuple[Tensor, Tensor]:
            """Scales and zero points, [C] each."""
            scale, zero_point = super().calculate_qparams()
            return scale.max().expand_as(scale).clone(), zero_point

    largest = 2 ** (int8_weight_bits() - 1) - 1
    kinds = {WeightGranularity.PER_CHANNEL: PerChannelMinMaxObserver, WeightGranularity.PER_TENSOR: SharedScaleObserver}
    return {
        granularity: QuantizationSpec(
            dtype=torch.int8,
            quant_min=-largest,
            quant_max=largest,
            qscheme=torch.per_channel_symmetric,
            ch_axis=0,
            observer_or_fake_quant_ctr=observer.with_args(eps=_SMALLEST_WEIGHT_SCALE),
        )
        for granularity, observer in kinds.items()
    }
