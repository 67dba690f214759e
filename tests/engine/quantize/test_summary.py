"""Tensors summarised for a person to look at."""

import math

import torch

from ace_studio.engine.quantize import summary
from ace_studio.engine.quantize.summary import compare_tensors
from ace_studio.records.values import PICTURE_SIDE


def read_back(picture, tiles, matrix, row, column):
    """The value that a cell stands for."""
    y, x = matrix // tiles.across * tiles.height + row, matrix % tiles.across * tiles.width + column
    level = picture.levels[y * tiles.across * tiles.width + x]
    return picture.low + (level - 1) / 254 * (picture.high - picture.low)


def test_both_histograms_have_the_same_bars_and_count_every_finite_element():
    wide = torch.tensor([0.0, 1.0, 2.0, math.nan, math.inf])
    found = compare_tensors("x", wide, wide.clone().nan_to_num(5.0, 5.0))
    assert (found.low, found.high) == (0.0, 5.0)
    assert sum(found.original.counts) == 3 and sum(found.compressed.counts) == 5
    assert found.original.not_finite == 2 and round(found.original.zeros, 6) == 0.2 and found.original.mean == 1.0


def test_every_cell_of_a_feature_map_is_an_element_of_it():
    value = torch.randn(2, 5, 40, 30, generator=torch.Generator().manual_seed(0))
    found = compare_tensors("x", value, value + 0.25)
    tiles = found.tiles
    assert (tiles.count, tiles.across, tiles.rows, tiles.columns) == (5, 3, 40, 30)
    for matrix, row, column in ((0, 0, 0), (4, 39, 29), (2, 7, 11)):
        shown = read_back(found.pictures[0], tiles, matrix, row, column)
        assert (
            abs(shown - float(value[0, matrix, row, column])) < (found.pictures[0].high - found.pictures[0].low) / 254
        )
    assert round(read_back(found.pictures[2], tiles, 1, 3, 3), 4) == 0.25
    assert found.pictures[0].levels[-1] == 0  # there is no sixth channel


def test_a_large_tensor_is_drawn_small_and_counted_sparsely(monkeypatch):
    monkeypatch.setattr(summary, "MOST_COUNTED", 1000)
    found = compare_tensors("x", torch.arange(1_000_000.0).reshape(1000, 1000), None)
    assert found.every == 1000 and sum(found.original.counts) == 1000
    assert len(found.pictures[0].levels) == PICTURE_SIDE**2


def test_a_weight_is_a_matrix_of_output_channels_with_the_range_of_each():
    weight = torch.randn(16, 4, 3, 3)
    found = compare_tensors("w", weight, weight, channel_axis=0)
    assert (found.tiles.rows, found.tiles.columns) == (16, 36) and found.sqnr_db == 200
    assert found.channels[3] == (float(weight[3].min()), float(weight[3].max()))


def test_scalars_booleans_and_empty_tensors_are_shown_too():
    for value in (torch.tensor(3.0), torch.tensor([True, False]), torch.zeros(0, 4), torch.zeros(2, 0, 3, 3)):
        found = compare_tensors("x", value, None)
        assert sum(found.original.counts) == value.numel() and len(found.pictures) == 1
