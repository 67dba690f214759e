"""Which operators get 8 bits, and which ops of a file follow."""

import pytest

from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.targets.litert.model_file import FileOp, FileTensor
from ace_studio.engine.targets.litert.quantize import _bounds, litert_op_problem, planned_precisions
from ace_studio.records.recipes.plan import ActivationGrid, Precision
from tests.engine.targets.conftest import bound, captured_model, make_job


def test_an_operator_without_an_8_bit_kernel_is_refused_with_the_reason():
    assert litert_op_problem("aten.conv2d.default", Precision.INT8_DYNAMIC) == ""
    assert "no int8 kernel of aten.softmax.int" in litert_op_problem("aten.softmax.int", Precision.INT8_STATIC)
    assert "aten.add.Tensor has none" in litert_op_problem("aten.add.Tensor", Precision.INT8_WEIGHT)


def value(name: str, *, dtype: str = "FLOAT32", is_constant: bool = False) -> FileTensor:
    return FileTensor(name, dtype, is_constant)


def ops_with(second: str) -> list[FileOp]:
    """A reshape between two products, of which the second computes an op of the graph."""
    weight = value("w", is_constant=True)
    return [
        FileOp(0, "FULLY_CONNECTED", (value("x"), weight), (value("a"),), ("linear",)),
        FileOp(1, "RESHAPE", (value("a"), value("sizes", dtype="INT32", is_constant=True)), (value("b"),), ("relu",)),
        FileOp(2, "FULLY_CONNECTED", (value("b"), weight), (value("c"),), (second,)),
    ]


@pytest.mark.parametrize(("second", "following"), [("linear_1", True), ("unplanned", False)])
def test_what_moves_values_is_in_8_bits_if_all_that_read_it_are(second, following, tmp_path):
    captured = captured_model("mlp")
    job = make_job(captured, bound("litert", captured, Precision.INT8_STATIC), tmp_path)
    planned = planned_precisions(ops_with(second), job)
    assert planned[0] is Precision.INT8_STATIC
    assert (1 in planned) == (2 in planned) == following


def test_a_weight_that_is_computed_stays_in_floats(tmp_path):
    captured = captured_model("mlp")
    job = make_job(captured, bound("litert", captured, Precision.INT8_DYNAMIC), tmp_path)
    op = FileOp(0, "FULLY_CONNECTED", (value("x"), value("w")), (value("a"),), ("linear",))
    assert planned_precisions([op], job) == {}


@pytest.mark.parametrize("grid", list(ActivationGrid))
@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (0.0, 6.0), (0.0, 0.0)])
def test_bounds_span_the_grid_so_that_zero_is_on_it(low, high, grid):
    bounds = _bounds(ValueRange(low, high, 1), grid)
    least, most = float(bounds["min"][0]), float(bounds["max"][0])
    steps = 254 if grid is ActivationGrid.SYMMETRIC else 255
    scale = (most - least) / steps
    assert least <= low + scale and most >= high - scale
    assert round(least / scale) == pytest.approx(least / scale, abs=1e-3)
