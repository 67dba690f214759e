"""torchvision's detection operators written in torch, for use where its compiled library does not load.

The results equal those of torchvision's kernels up to the order of additions; they are several times slower.
"""

import numpy as np
import torch
from torch import Tensor

_ROWS_AT_A_TIME = 1024
"""Boxes whose overlaps with all later ones are computed at a time."""
_GATHERED_NUMBERS = 1 << 22
"""Numbers that `roi_align` gathers from the features at a time."""


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no box with a higher score overlaps by more than the threshold, best first.

    Shapes: dets [n, 4] as (x1, y1, x2, y2), scores [n] -> [kept], int64. Equal scores keep their order.
    Overlap is intersection over union, compared in double precision; a box exactly at the threshold stays.
    Raises: RuntimeError if the shapes are others.
    """
    if dets.dim() != 2 or dets.size(1) != 4 or scores.shape != dets.shape[:1]:
        raise RuntimeError(f"boxes must be [n, 4] and scores [n], not {list(dets.shape)} and {list(scores.shape)}")
    order = scores.detach().sort(stable=True, descending=True).indices
    boxes = dets.detach()[order].cpu()
    suppressed = np.zeros(len(boxes), dtype=bool)
    kept: list[int] = []
    for start in range(0, len(boxes), _ROWS_AT_A_TIME):
        is_over = _overlaps(boxes[start : start + _ROWS_AT_A_TIME], boxes[start:]).double() > iou_threshold
        for row, overlapped in enumerate(is_over.numpy()):
            if not suppressed[start + row]:
                kept.append(start + row)
                suppressed[start + row + 1 :] |= overlapped[row + 1 :]
    return order[torch.tensor(kept, dtype=torch.int64, device=order.device)]


def _overlaps(boxes: Tensor, others: Tensor) -> Tensor:
    """Intersection over union: [a, 4], [b, 4] -> [a, b]; NaN, which exceeds no threshold, for two empty boxes."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2)
    return shared / ((_areas(boxes)[:, None] + _areas(others)[None]) - shared)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def roi_align(
    features: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Mean of bilinear samples in every cell of a grid over each region.

    Shapes: features [n, c, h, w], rois [k, 5] as (image, x1, y1, x2, y2) -> [k, c, pooled_height, pooled_width].
    A positive ``sampling_ratio`` is the number of samples along each side of a cell; else a cell gets one per pixel.
    Samples more than a pixel outside of the image count as 0.
    Source: He et al. 2017, arXiv:1703.06870, section 3; ``aligned`` shifts by half a pixel.
    Raises: RuntimeError if the regions have another shape.
    """
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError(f"regions must be [k, 5], not {list(rois.shape)}")
    pooled = (pooled_height, pooled_width)
    result = features.new_zeros((len(rois), features.shape[1], *pooled), dtype=_wide(features.dtype))
    places = rois.to(result.dtype)
    shift = 0.5 if aligned else 0.0
    low = places[:, [2, 1]] * spatial_scale - shift  # y, x
    extent = places[:, [4, 3]] * spatial_scale - shift - low
    if not aligned:
        extent = extent.clamp(min=1.0)
    cell = extent / torch.tensor(pooled, dtype=extent.dtype, device=extent.device)
    counts = torch.full_like(cell, sampling_ratio) if sampling_ratio > 0 else cell.ceil().clamp(min=0)
    rows_last = features.to(result.dtype).permute(0, 2, 3, 1).contiguous()
    for count in sorted({(int(rows), int(columns)) for rows, columns in counts.tolist()}):
        members = (counts == torch.tensor(count, device=counts.device)).all(dim=1).nonzero()[:, 0]
        per_region = max(1, count[0] * count[1] * pooled_height * pooled_width * features.shape[1])
        for chunk in torch.split(members, max(1, _GATHERED_NUMBERS // per_region)):
            sampled = _sample_cells(rows_last, places[chunk, 0].long(), low[chunk], cell[chunk], pooled, count)
            result[chunk] = sampled
    return result.to(features.dtype)


def _sample_cells(
    rows_last: Tensor, picture: Tensor, low: Tensor, cell: Tensor, pooled: tuple[int, int], count: tuple[int, int]
) -> Tensor:
    """[n, h, w, c] and regions that share the number of samples -> [k, c, *pooled]."""
    pictures, height, width, channels = rows_last.shape
    if not count[0] * count[1]:
        return rows_last.new_zeros((len(low), channels, *pooled))
    flat = rows_last.view(pictures * height * width, channels)
    rows = _corners(low[:, 0], cell[:, 0], pooled[0], count[0], height)
    columns = _corners(low[:, 1], cell[:, 1], pooled[1], count[1], width)
    total: Tensor | None = None
    for row, row_weight in rows:
        for column, column_weight in columns:
            index = (picture[:, None, None] * height + row[:, :, None]) * width + column[:, None, :]
            weight = (row_weight[:, :, None] * column_weight[:, None, :]).unsqueeze(-1)
            part = flat[index] * weight
            total = part if total is None else total + part
    assert total is not None, "there are two rows and two columns of corners"
    cells = total.view(len(low), pooled[0], count[0], pooled[1], count[1], channels)
    return cells.mean(dim=(2, 4)).permute(0, 3, 1, 2)


def _corners(low: Tensor, cell: Tensor, cells: int, count: int, size: int) -> list[tuple[Tensor, Tensor]]:
    """Along one side: the pixels below and above every sample with their weights, each [k, cells * count]."""
    steps = (torch.arange(cells * count, device=low.device, dtype=low.dtype) % count + 0.5) / count
    number = torch.arange(cells * count, device=low.device, dtype=low.dtype).div(count, rounding_mode="floor")
    place = low[:, None] + (number + steps) * cell[:, None]
    is_inside = ((place >= -1.0) & (place <= size)).to(low.dtype)
    place = place.clamp(min=0.0, max=size - 1.0)
    below = place.floor().long()
    above = (below + 1).clamp(max=size - 1)
    fraction = place - below
    return [(below, (1 - fraction) * is_inside), (above, fraction * is_inside)]


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type to compute in: half precisions accumulate in float32."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32
