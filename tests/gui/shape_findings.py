"""Findings on dimensions."""

from ace_studio.gui.panels.shapes.rows import ColumnKind, ShapeColumn
from ace_studio.records.tensors import InputFinding, TensorSpec

ROW = {"x": TensorSpec(shape=(1, 3)), "mask": TensorSpec(shape=(3,), dtype="bool", values="zeros")}


SIZE_0 = ShapeColumn(input="x", kind=ColumnKind.DIM, index=0)


def dims_of(*dims):
    return (InputFinding(name="x", dtype="float32", dims=dims),)
