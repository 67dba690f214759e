"""The value of one op and its weights, in float and compressed, summarised: a person looks at them, nothing computes.

Numbers are those of at most `MOST_COUNTED` elements, evenly spaced over the tensor.
"""

import msgspec

MOST_COUNTED = 1 << 24
BINS = 64
"""Bars of a histogram."""
PICTURE_SIDE = 256
"""Cells of a picture along each side, at most."""


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Of the finite elements of a tensor; zeros if there are none."""

    low: float
    high: float
    mean: float
    std: float
    zeros: float
    """Share of elements that are exactly 0, 0..1."""
    not_finite: int
    counts: tuple[int, ...]
    """Histogram over `TensorValues.low` .. `TensorValues.high`, `BINS` bars of equal width."""
    first: tuple[float, ...]
    """The first elements in the order of storage."""


class ValuePicture(msgspec.Struct, frozen=True, kw_only=True):
    """One level per cell, row by row: 0 is nothing, or not finite; 1..255 is ``low`` .. ``high``."""

    low: float
    high: float
    levels: bytes


class Tiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cells of a picture come from: matrices beside each other, each evenly sampled.

    Cell (y, x) is in the matrix ``y // height * across + x // width``, at row ``y % height * rows // height``.
    """

    count: int
    """Matrices that are shown, such as channels; the first ones of `total`."""
    total: int
    across: int
    """Matrices beside each other."""
    height: int
    width: int
    """Cells of one matrix."""
    rows: int
    columns: int
    """Elements of one matrix."""


class TensorValues(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor in float and, where the plan compresses something, under the plan."""

    name: str
    """``result``, or the name of the weight."""
    shape: tuple[int, ...]
    dtype: str
    every: int = 1
    """Numbers are of every so many elements."""
    low: float
    high: float
    """Range of both histograms."""
    original: Statistics
    compressed: Statistics | None = None
    sqnr_db: float | None = None
    largest_difference: float | None = None
    channels: tuple[tuple[float, float], ...] = ()
    """Range of each output channel of a weight, in float; the first 1024."""
    tiles: Tiles
    pictures: tuple[ValuePicture, ...] = ()
    """Float; compressed and the difference (compressed minus float) where they are known."""


class OpValues(msgspec.Struct, frozen=True, kw_only=True):
    """What one op gives for one example, and the weights that it reads."""

    op_id: str
    precision: str
    """At which the simulation computed it."""
    example: int
    examples: int
    """How many there are to choose from."""
    tensors: tuple[TensorValues, ...]
    notes: tuple[str, ...] = ()
    """What the compressed values are, and what they leave out."""
    saved: str = ""
    """The ``.npz`` file with the whole tensors, if one was asked for."""
