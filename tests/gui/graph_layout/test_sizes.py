"""Sizes of ops and closed blocks, from the length of their texts."""

import pytest

from ace_studio.gui.graph_layout.sizes import detail_of, short_dtype, short_op
from tests.gui.graph_tables import layered_table


@pytest.mark.parametrize(
    ("op", "short"),
    [
        ("aten.conv2d.default", "conv2d"),
        ("<built-in function getitem>", "getitem"),
        ("input", "input"),
        ("mylib.scale.default", "mylib.scale.default"),
        ("_operator.getitem", "getitem"),
    ],
)
def test_operators_are_shortened_for_their_boxes(op, short):
    assert short_op(op) == short


def test_shapes_and_types_are_shortened_for_their_boxes():
    assert short_dtype("bfloat16") == "bf16"
    assert detail_of(layered_table(1), 2) == "1×8×4×4 · f32"
