"""What is known of inputs: the examples asked for, and the verdict found for every dimension."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ValueSource(StrEnum):
    """Where the numbers of an example tensor come from."""

    RANDOM = "random"
    """Standard normal for floats, uniform below 100 for integers, fair coin for booleans; seeded."""
    ZEROS = "zeros"
    """All zeros: for states and masks."""
    ONES = "ones"
    """All ones: for attention masks that hide nothing."""
    RANGE = "range"
    """0, 1, 2, ... in row-major order: for positions."""
    FILE = "file"
    """A ``.npy``, ``.npz`` or ``.safetensors`` file named in the row."""


class TensorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the shape table: the tensor to make for one input of one example."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    values: str = "random"
    """A `ValueSource` word, or the path of a file relative to the recipe."""


class DimChoice(StrEnum):
    """What the user asks of one dimension."""

    AUTO = "auto"
    """Dynamic if the examples differ there, else static."""
    DYNAMIC = "dynamic"
    """Any size, even if every example agrees."""
    STATIC = "static"
    """This one size; another one is an error."""


class DimVerdict(StrEnum):
    """What was found of one dimension after the trace."""

    DYNAMIC = "dynamic"
    """Any size in [min, max]; proven on sizes that were not traced."""
    STATIC = "static"
    """Exactly one size."""
    UNKNOWN = "unknown"
    """Only ever 1 in the examples: batch and constant cannot be told apart. Another row decides."""


class DimFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one dimension of one input."""

    index: int
    verdict: DimVerdict
    size: int
    """The size at which the graph was traced."""
    symbol: str | None = None
    """Name of the symbol, such as ``s0``; equal symbols are equal sizes. None if static."""
    min: int | None = None
    max: int | None = None
    """Range in which the graph is valid; None is unbounded."""
    verified_sizes: tuple[int, ...] = ()
    """Sizes at which the graph was run and matched eager."""
    equal_to: str | None = None
    """Another dimension, as ``name.index``, that always has the same size."""
    reason: str = ""
    """Why the verdict is what it is, in one sentence."""
    is_held: bool = False
    """Whether it is static only because the recipe lets nothing but the batch stay free."""


class InputFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor input, named as the user knows it (``x``, ``state``, ``batch.input_ids``)."""

    name: str
    dtype: str
    dims: tuple[DimFinding, ...]


def bytes_per_element(dtype: str) -> int:
    """Bytes of one element of ``dtype``; 0 for a type without a fixed size.

    int4 is counted as one byte here; packed weights are counted where they are packed.
    """
    sizes = {
        "float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4, "uint32": 4,
        "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1,
        "float8_e4m3fn": 1, "float8_e5m2": 1, "int4": 1, "uint4": 1,
    }  # fmt: skip
    return sizes.get(dtype, 0)
