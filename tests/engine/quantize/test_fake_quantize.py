import pytest
import torch

from ace_studio.engine.ops.roles import WeightAxes
from ace_studio.engine.quantize.fake_quantize import cast_round_trip, round_activation, round_rows, round_weight
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.records.processor import int8_weight_bits
from ace_studio.records.recipes.plan import ActivationGrid, Precision, Scheme, WeightGranularity

ROWS = torch.tensor([[100.0, -50.0, 25.0, 0.0], [1.0, -0.5, 0.25, 0.0]])
MATRIX = WeightAxes(output=0, is_blocked=True)


def test_a_scale_per_channel_keeps_the_digits_of_a_small_channel_and_one_scale_loses_them():
    per_channel = round_weight(ROWS, MATRIX, precision=Precision.INT8_STATIC, scheme=Scheme())
    shared = round_weight(
        ROWS, MATRIX, precision=Precision.INT8_STATIC, scheme=Scheme(weights=WeightGranularity.PER_TENSOR)
    )
    torch.testing.assert_close(per_channel[1], ROWS[1], atol=0.5 / (2 ** (int8_weight_bits() - 1) - 1), rtol=0)
    assert float((shared[1] - ROWS[1]).abs().max()) > 0.2


def test_groups_are_rounded_apart_and_a_short_last_group_too():
    scheme = Scheme(group_size=2)
    weight = torch.tensor([[100.0, 50.0, 1.0, 0.5, 0.1]])
    rounded = round_weight(weight, MATRIX, precision=Precision.INT8_WEIGHT, scheme=scheme)
    torch.testing.assert_close(rounded, weight, rtol=0.01, atol=0.0)


def test_a_convolution_has_no_groups_at_4_bits_so_each_channel_has_16_values():
    weight = torch.linspace(0.0, 1.0, 64).reshape(1, 4, 4, 4)
    rounded = round_weight(
        weight, WeightAxes(output=0, is_blocked=False), precision=Precision.INT4_WEIGHT, scheme=Scheme(group_size=8)
    )
    assert len(rounded.unique()) == 16


def test_a_known_range_clips_and_a_range_of_the_value_itself_does_not():
    value = torch.tensor([0.0, 1.0, 8.0])
    known = ValueRange(0.0, 2.0, 1)
    static = round_activation(value, precision=Precision.INT8_STATIC, scheme=Scheme(), known=known)
    dynamic = round_activation(value, precision=Precision.INT8_DYNAMIC, scheme=Scheme(), known=None)
    assert float(static.max()) == pytest.approx(2.0)
    assert float(dynamic.max()) == pytest.approx(8.0)


def test_a_symmetric_grid_spends_half_of_its_values_below_zero():
    value = torch.linspace(0.0, 1.0, 1000)
    count = {
        grid: len(
            round_activation(
                value, precision=Precision.INT8_DYNAMIC, scheme=Scheme(activations=grid), known=None
            ).unique()
        )
        for grid in ActivationGrid
    }
    assert count == {ActivationGrid.AFFINE: 256, ActivationGrid.SYMMETRIC: 128}


def test_rows_of_a_table_have_their_own_grids_and_zeros_stay_zero():
    rounded = round_rows(ROWS)
    torch.testing.assert_close(rounded, ROWS, rtol=0.01, atol=1e-3)
    assert float(rounded[:, 3].abs().max()) == 0.0


def test_only_float32_goes_through_a_16_bit_type():
    value = torch.tensor([1.0 + 2**-12])
    assert float(cast_round_trip(value, torch.bfloat16)) == 1.0
    integers = torch.tensor([3])
    assert cast_round_trip(integers, torch.bfloat16) is integers
