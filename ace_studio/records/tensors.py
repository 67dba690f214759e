"""What is known of inputs: the examples asked for, and the verdict found for every dimension."""

import ast
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

DATA_SUFFIXES = (".npz", ".safetensors", ".pt")
"""Suffixes of files that tensors can be read from."""


class ValueSource(StrEnum):
    """Where the numbers of an example tensor come from."""

    RANDOM = "random"
    """Standard normal for floats, uniform below 100 for integers, fair coin for booleans; seeded. ``random 0..9`` is
    uniform from 0 to 9, both included."""
    NORMAL = "normal"
    """``normal 0.5 0.2``: normal with this mean and standard deviation; seeded."""
    ZEROS = "zeros"
    """All zeros: for states and masks."""
    ONES = "ones"
    """All ones: for attention masks that hide nothing."""
    RANGE = "range"
    """0, 1, 2, ... in row-major order: for positions."""
    CONSTANT = "constant"
    """``constant 3``: this number everywhere."""
    CALIBRATION = "calibration"
    """The input of this name in the calibration data, the n-th example for the n-th row, cropped or repeated to the
    shape."""
    VALUE = "value"
    """``value 3``, ``value True``, ``value 'fast'``: a plain Python value instead of a tensor; it has no shape."""
    NONE = "none"
    """None instead of a tensor; it has no shape."""
    FILE = "file"
    """A ``.npy``, ``.npz`` or ``.safetensors`` file named in the row."""


MADE_UP = frozenset(
    {ValueSource.RANDOM, ValueSource.NORMAL, ValueSource.ZEROS, ValueSource.ONES, ValueSource.CONSTANT,
     ValueSource.RANGE}
)  # fmt: skip
"""Sources whose numbers say nothing of real data."""


class Values(NamedTuple):
    """What the ``values`` of a cell say."""

    source: ValueSource
    numbers: tuple[float, ...] = ()
    """Low and high; mean and standard deviation; or the constant. Empty for the defaults."""
    plain: bool | int | float | str | None = None
    """The Python value of `ValueSource.VALUE`."""

    @property
    def is_plain(self) -> bool:
        """Whether there is no tensor: it is a Python value or None."""
        return self.source in (ValueSource.VALUE, ValueSource.NONE)


_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_PARAMETERS = {
    ValueSource.RANDOM: (rf"({_NUMBER})\s*(?:\.\.|…)\s*({_NUMBER})", "two numbers, as in 'random 0..9'"),
    ValueSource.NORMAL: (rf"({_NUMBER})\s+({_NUMBER})", "mean and standard deviation, as in 'normal 0.5 0.2'"),
    ValueSource.CONSTANT: (rf"({_NUMBER})", "one number, as in 'constant 3'"),
}


def read_values(text: str) -> Values:
    """The source and its parameters; a text that begins with no known word is the path of a file.

    Raises: ValueError, in words, if the parameters do not fit the source.
    """
    word, _, rest = text.strip().partition(" ")
    if is_file_value(text):
        return Values(ValueSource.FILE)
    source, rest = ValueSource(word), rest.strip()
    if source is ValueSource.VALUE:
        return Values(source, plain=_plain_value(rest))
    if source in _PARAMETERS and (rest or source is not ValueSource.RANDOM):
        pattern, wanted = _PARAMETERS[source]
        found = re.fullmatch(pattern, rest, re.IGNORECASE)
        if found is None:
            raise ValueError(f"'{source}' takes {wanted}")
        numbers = tuple(map(float, found.groups()))
        if source is ValueSource.RANDOM and numbers[0] > numbers[1]:
            raise ValueError(f"{found[1]} is above {found[2]}")
        return Values(source, numbers)
    if rest:
        raise ValueError(f"'{source}' takes nothing after it")
    return Values(source)


def is_file_value(text: str) -> bool:
    """Whether the ``values`` of a cell name a file."""
    return text.strip().partition(" ")[0] not in {*ValueSource}


def _plain_value(text: str) -> bool | int | float | str:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError("'value' takes a number, True, False or a text in quotes, as in 'value 3'")


class TensorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the shape table: the tensor to make for one input of one example."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    values: str = "random"
    """A `ValueSource` word with its parameters (`read_values`), or the path of a file relative to the recipe."""


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
    memory_order: tuple[int, ...] = ()
    """Dimensions from the slowest to the fastest in memory, if the graph holds in this order only; empty: in any."""


class MemoryLimit(NamedTuple):
    """An input whose memory layout forward looks at: in another one, the model's code does something else."""

    leaf: int
    """Place of the input among the tensors of a call."""
    name: str
    order: tuple[int, ...]

    @property
    def words(self) -> str:
        """``x must be contiguous``, ``x must be contiguous after permute(0, 2, 3, 1), as in channels last``."""
        if self.order == tuple(sorted(self.order)):
            return f"{self.name} must be contiguous"
        is_channels_last = len(self.order) > 3 and self.order == (0, *range(2, len(self.order)), 1)
        return f"{self.name} must be contiguous after permute{self.order}" + (
            ", as in channels last" if is_channels_last else ""
        )


def memory_limits(inputs: Iterable[InputFinding]) -> list[MemoryLimit]:
    """The inputs that must lie in memory as the traced one did."""
    return [MemoryLimit(leaf, one.name, one.memory_order) for leaf, one in enumerate(inputs) if one.memory_order]


class SizeLimit(NamedTuple):
    """A dynamic size for which a graph holds in a range only: beyond it, the model's code does something else."""

    leaf: int
    """Place of the input among the tensors of a call."""
    dim: int
    name: str
    """``x.1``."""
    low: int
    high: int | None

    def allows(self, size: int) -> bool:
        """Whether the graph was proven at such a size."""
        return self.low <= size and (self.high is None or size <= self.high)

    @property
    def words(self) -> str:
        """``x.1 must be 1 to 50``."""
        return f"{self.name} must be " + (f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}")


def size_limits(inputs: Iterable[InputFinding]) -> list[SizeLimit]:
    """The dynamic dimensions that may not have every size from 1 on."""
    found = [
        SizeLimit(leaf, dim.index, f"{one.name}.{dim.index}", 1 if dim.min is None else dim.min, dim.max)
        for leaf, one in enumerate(inputs)
        for dim in one.dims
        if dim.verdict is DimVerdict.DYNAMIC
    ]
    return [limit for limit in found if limit.low > 1 or limit.high is not None]


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
