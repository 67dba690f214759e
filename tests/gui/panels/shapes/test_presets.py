"""Rows that the table proposes: usual sizes, and sizes that prove a dimension."""

import pytest

from ace_studio.gui.panels.shapes.presets import PRESETS, fits, missing_proof, preset_rows
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding, TensorSpec

BATCH, SEQUENCE, IMAGES = PRESETS
IDS = {"ids": TensorSpec(shape=(1, 16), dtype="int64"), "mask": TensorSpec(shape=(1, 16)),
       "table": TensorSpec(shape=(9, 4))}  # fmt: skip
PICTURE = {"x": TensorSpec(shape=(1, 3, 32, 32))}


def shapes(rows):
    return [[spec.shape for spec in row.values()] for row in rows]


def test_usual_sizes_are_added_to_every_input_that_has_the_same_size_there():
    rows = preset_rows([IDS], IDS, BATCH)
    assert shapes(rows) == [
        [(1, 16), (1, 16), (9, 4)], [(8, 16), (8, 16), (9, 4)], [(32, 16), (32, 16), (9, 4)],
    ]  # fmt: skip


def test_images_get_both_sides_and_sequences_only_their_length():
    assert shapes(preset_rows([], PICTURE, IMAGES)) == [[(1, 3, side, side)] for side in (224, 320, 640)]
    assert shapes(preset_rows([], {"ids": IDS["ids"]}, SEQUENCE)) == [[(1, 16)], [(1, 128)], [(1, 512)]]
    assert [fits(preset, PICTURE) for preset in PRESETS] == [True, False, True]


def found(*dims):
    return [InputFinding(name="x", dtype="float32", dims=dims)]


def dim(verdict, **more):
    return DimFinding(index=0, verdict=verdict, **{"size": 1, **more})


@pytest.mark.parametrize(
    ("finding", "row", "why", "size"),
    [
        (dim(DimVerdict.UNKNOWN, verified_sizes=(1,)), 1, "x.0 was only ever 1", 5),
        (dim(DimVerdict.DYNAMIC, symbol="s0", verified_sizes=(1, 2)), 2, "x.0 is only proven at 1 and 2", 5),
        (dim(DimVerdict.DYNAMIC, symbol="s0", verified_sizes=(1, 2), max=4), 2, "x.0 is only proven at 1 and 2", 3),
        (dim(DimVerdict.STATIC, size=4, verified_sizes=(4,)), 4, "x.0 is 4 in every example", 5),
    ],
)
def test_what_is_not_proven_proposes_a_row_with_another_size(finding, row, why, size):
    proof = missing_proof([{"x": TensorSpec(shape=(row, 3))}], found(finding), {})
    assert (proof.why, proof.size, proof.row["x"].shape) == (why, size, (size, 3))


@pytest.mark.parametrize(
    ("finding", "dims"),
    [
        (dim(DimVerdict.DYNAMIC, symbol="s0", verified_sizes=(1, 2, 5)), {}),
        (dim(DimVerdict.STATIC, size=1), {"x.0": DimChoice.STATIC}),
        (dim(DimVerdict.STATIC, size=1, is_held=True), {}),
    ],
)
def test_nothing_is_proposed_for_what_is_proven_or_asked_to_be_static(finding, dims):
    assert missing_proof([{"x": TensorSpec(shape=(1, 3))}], found(finding), dims) is None


def test_a_proposed_row_changes_the_dimensions_that_must_be_equal():
    free = dim(DimVerdict.DYNAMIC, symbol="s0", verified_sizes=(1, 2))
    tied = [InputFinding(name=name, dtype="float32", dims=(free,)) for name in ("ids", "mask")]
    assert shapes([missing_proof([IDS], tied, {}).row]) == [[(5, 16), (5, 16), (9, 4)]]
