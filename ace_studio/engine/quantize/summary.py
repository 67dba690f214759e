"""Tensors summarised for a person to look at: statistics, a histogram and a small picture."""

import math

import torch
from torch import Tensor

from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.records.values import BINS, MOST_COUNTED, PICTURE_SIDE, Statistics, TensorValues, Tiles, ValuePicture

_FIRST = 64
_CHANNELS = 1024
_TILES = 64


def compare_tensors(
    name: str, wide: Tensor, rounded: Tensor | None, *, channel_axis: int | None = None
) -> TensorValues:
    """Summarise a tensor in float, and the same tensor compressed (None: nothing compresses it).

    Args:
        name: As people know it.
        wide: Any shape; numbers, indices or truth values.
        rounded: Of the same shape.
        channel_axis: The axis of output channels of a weight, which is drawn as a matrix; None for a value.
    """
    every = max(1, math.ceil(wide.numel() / MOST_COUNTED))
    both = [one.detach().reshape(-1)[::every].cpu() for one in (wide, rounded) if one is not None]
    finite = [one.float()[one.isfinite()] for one in both]
    low = min((float(one.min()) for one in finite if one.numel()), default=0.0)
    high = max((float(one.max()) for one in finite if one.numel()), default=0.0)
    found = [_statistics(one, kept, low, high) for one, kept in zip(both, finite, strict=True)]
    cells, tiles = _cells(wide, channel_axis)
    return TensorValues(
        name=name,
        shape=tuple(wide.shape),
        dtype=str(wide.dtype).removeprefix("torch."),
        every=every,
        low=low,
        high=high,
        original=found[0],
        compressed=found[1] if rounded is not None else None,
        sqnr_db=sqnr_db(both[:1], both[1:]) if rounded is not None else None,
        largest_difference=_largest(both[0], both[1]) if rounded is not None else None,
        channels=_channel_ranges(wide, channel_axis),
        tiles=tiles,
        pictures=_pictures(cells, None if rounded is None else _cells(rounded, channel_axis)[0]),
    )


def _statistics(values: Tensor, finite: Tensor, low: float, high: float) -> Statistics:
    bins = torch.histc(finite, BINS, low, high) if high > low else torch.tensor([finite.numel()] + [0] * (BINS - 1))
    wide = finite.double() if finite.numel() else torch.zeros(1).double()
    return Statistics(
        low=float(wide.min()),
        high=float(wide.max()),
        mean=float(wide.mean()),
        std=float(wide.std(correction=0)),
        zeros=float((values == 0).float().mean()) if values.numel() else 0.0,
        not_finite=values.numel() - finite.numel(),
        counts=tuple(int(one) for one in bins),
        first=tuple(values[:_FIRST].tolist()),
    )


def _largest(wide: Tensor, rounded: Tensor) -> float:
    difference = (rounded.double() - wide.double()).abs().nan_to_num(0.0)
    return float(difference.max()) if difference.numel() else 0.0


def _channel_ranges(value: Tensor, axis: int | None) -> tuple[tuple[float, float], ...]:
    if axis is None or not value.numel():
        return ()
    rows = value.detach().movedim(axis, 0).flatten(1)[:_CHANNELS].float()
    return tuple(zip(rows.amin(1).tolist(), rows.amax(1).tolist(), strict=True))


def _cells(value: Tensor, channel_axis: int | None) -> tuple[Tensor, Tiles]:
    """The cells of a picture, NaN where nothing is, and where they come from.

    A weight is a matrix with a row per output channel. Of a value the first example is drawn: a matrix, or one matrix
    per channel (the head of an attention, the feature map of a convolution).
    """
    plain = value.detach()
    if channel_axis is not None and plain.dim() > 1:
        plain = plain.movedim(channel_axis, 0).flatten(1)
    while plain.dim() > 2 and (plain.dim() > 4 or plain.dim() == 3):
        plain = plain[0] if plain.shape[0] else plain.sum(0)
    plain = plain[0] if plain.dim() == 4 else plain.reshape(1, -1, plain.shape[-1] if plain.dim() else 1)
    total, rows, columns = plain.shape
    count = min(total, _TILES)
    across = max(1, math.ceil(math.sqrt(count)))
    height, width = (min(size, PICTURE_SIDE // across) for size in (rows, columns))
    picked = plain[:count][:, _spread(rows, height)][:, :, _spread(columns, width)].float().cpu()
    down = math.ceil(count / across)
    cells = torch.full((down * across, height, width), math.nan)
    cells[:count] = picked
    cells = cells.reshape(down, across, height, width).transpose(1, 2).reshape(down * height, across * width)
    tiles = Tiles(count=count, total=total, across=across, height=height, width=width, rows=rows, columns=columns)
    return cells, tiles


def _spread(size: int, shown: int) -> Tensor:
    return torch.arange(shown) * size // max(1, shown)


def _pictures(wide: Tensor, rounded: Tensor | None) -> tuple[ValuePicture, ...]:
    """Both on one scale, and the difference on its own, symmetrical around 0."""
    everything = torch.stack([wide] if rounded is None else [wide, rounded])
    finite = everything[everything.isfinite()]
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    if rounded is None:
        return (_picture(wide, low, high),)
    difference = rounded - wide
    known = difference[difference.isfinite()]
    most = float(known.abs().max()) if known.numel() else 0.0
    return (_picture(wide, low, high), _picture(rounded, low, high), _picture(difference, -most, most))


def _picture(cells: Tensor, low: float, high: float) -> ValuePicture:
    share = (cells - low) / (high - low) if high > low else cells * 0 + 0.5
    levels = (1 + 254 * share).nan_to_num(0.0, 0.0, 0.0).clamp(0, 255).round().byte()
    return ValuePicture(low=low, high=high, levels=levels.numpy().tobytes())
