"""The operators written in torch give what torchvision's library gives."""

import math

import pytest
import torch

from ace_studio.engine.load.torchvision.kernels import nms, roi_align


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_boxes(count, *, size=20.0, seed=0):
    corners = torch.rand(count, 4, generator=seeded(seed)) * size
    return torch.cat([corners[:, :2], corners[:, :2] + corners[:, 2:]], dim=1)


def nms_by_hand(boxes, scores, threshold):
    """Greedy, pair by pair, in Python floats of float32 arithmetic."""
    kept = []
    for index in sorted(range(len(boxes)), key=lambda index: -scores[index].item()):
        if all(overlap(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(index)
    return kept


def overlap(one, other):
    width = (min(one[2], other[2]) - max(one[0], other[0])).clamp(min=0)
    height = (min(one[3], other[3]) - max(one[1], other[1])).clamp(min=0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return (width * height / (areas[0] + areas[1] - width * height)).item()


def roi_align_by_hand(picture, region, *, scale, pooled, ratio, aligned):
    """One region of one picture [c, h, w], sample by sample."""
    shift = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (float(number) * scale - shift for number in region)
    height, width = y2 - y1, x2 - x1
    if not aligned:
        height, width = max(height, 1.0), max(width, 1.0)
    cell = (height / pooled[0], width / pooled[1])
    counts = [ratio if ratio > 0 else math.ceil(side) for side in cell]
    result = torch.zeros(picture.shape[0], *pooled)
    for row in range(pooled[0]):
        for column in range(pooled[1]):
            for i in range(counts[0]):
                for j in range(counts[1]):
                    y = y1 + (row + (i + 0.5) / counts[0]) * cell[0]
                    x = x1 + (column + (j + 0.5) / counts[1]) * cell[1]
                    result[:, row, column] += bilinear(picture, y, x) / (counts[0] * counts[1])
    return result


def bilinear(picture, y, x):
    height, width = picture.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return torch.zeros(picture.shape[0])
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    return (
        picture[:, top, left] * (1 - down) * (1 - across)
        + picture[:, top, right] * (1 - down) * across
        + picture[:, bottom, left] * down * (1 - across)
        + picture[:, bottom, right] * down * across
    )


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms_keeps_what_a_pair_by_pair_search_keeps(threshold):
    boxes, scores = random_boxes(60), torch.rand(60, generator=seeded(1))

    assert nms(boxes, scores, threshold).tolist() == nms_by_hand(boxes, scores, threshold)


def test_nms_is_right_across_its_blocks_of_rows(monkeypatch):
    monkeypatch.setattr("ace_studio.engine.load.torchvision.kernels._ROWS_AT_A_TIME", 7)
    boxes, scores = random_boxes(60), torch.rand(60, generator=seeded(1))

    assert nms(boxes, scores, 0.3).tolist() == nms_by_hand(boxes, scores, 0.3)


def test_nms_keeps_equal_scores_in_their_order_and_a_box_that_overlaps_exactly_the_threshold():
    boxes = torch.tensor([[0.0, 0.0, 2.0, 1.0], [1.0, 0.0, 3.0, 1.0], [0.0, 0.0, 2.0, 1.0]])

    assert nms(boxes, torch.ones(3), 1 / 3).tolist() == [0]  # float32 rounds a third up, and over it is
    assert nms(boxes, torch.ones(3), 0.34).tolist() == [0, 1]


def test_nms_of_no_boxes_is_empty_and_wrong_shapes_are_refused():
    assert nms(torch.zeros(0, 4), torch.zeros(0), 0.5).shape == (0,)
    with pytest.raises(RuntimeError, match="boxes must be"):
        nms(torch.zeros(2, 5), torch.zeros(2), 0.5)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [2, -1])
def test_roi_align_equals_the_mean_of_its_samples_also_outside_of_the_picture(ratio, aligned):
    features = torch.randn(2, 3, 12, 17, generator=seeded())
    boxes = torch.cat([random_boxes(12), random_boxes(6, size=60.0, seed=1) - 25.0])
    pictures = torch.arange(len(boxes)) % 2
    rois = torch.cat([pictures[:, None].float(), boxes], dim=1)

    found = roi_align(features, rois, 0.5, 3, 2, ratio, aligned)

    for number, roi in enumerate(rois):
        picture = features[int(roi[0])]
        wanted = roi_align_by_hand(picture, roi[1:], scale=0.5, pooled=(3, 2), ratio=ratio, aligned=aligned)
        torch.testing.assert_close(found[number], wanted, atol=1e-5, rtol=1e-4)


def test_roi_align_keeps_the_type_and_takes_no_regions():
    features = torch.randn(1, 2, 8, 8, generator=seeded())
    rois = torch.tensor([[0.0, 1.0, 1.0, 6.0, 5.0]])

    halved = roi_align(features.half(), rois.half(), 1.0, 2, 2, 2, False)

    assert halved.dtype == torch.float16
    torch.testing.assert_close(halved.float(), roi_align(features, rois, 1.0, 2, 2, 2, False), atol=1e-2, rtol=1e-2)
    assert roi_align(features, rois[:0], 1.0, 2, 2, 2, False).shape == (0, 2, 2, 2)
