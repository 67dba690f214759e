"""Example inputs written as words, such as ``x=1x3x32x32``: options of the command line, and the shapes of a sweep."""

from collections.abc import Sequence

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.tensors import TensorSpec, read_values


def rows_of(words: Sequence[str]) -> tuple[dict[str, TensorSpec], ...]:
    """Rows from ``x=1x3x32x32`` words: the n-th word of a name belongs to the n-th row.

    Raises: AceError(USAGE) for a word that is no input.
    """
    columns: dict[str, list[TensorSpec]] = {}
    for word in words:
        name, spec = _parse_input(word)
        columns.setdefault(name, []).append(spec)
    count = max(len(column) for column in columns.values())
    return tuple({name: column[min(i, len(column) - 1)] for name, column in columns.items()} for i in range(count))


def _parse_input(word: str) -> tuple[str, TensorSpec]:
    why = "an input is NAME=SHAPE with sizes joined by x, then :TYPE if it is not float32, then :VALUES if not random"
    name, equals, description = word.partition("=")
    shape_text, _, rest = description.partition(":")
    dtype, _, values = rest.partition(":")
    try:
        if values:
            read_values(values)
        shape = tuple(int(size) for size in shape_text.split("x")) if shape_text not in {"", "scalar"} else ()
    except ValueError as error:
        shape = (-1,)
        why = str(error) if values else why
    if not equals or not name or any(size < 0 for size in shape):
        raise AceError.of(
            ErrorCode.USAGE,
            f"'{word}' is not an input",
            why=why,
            remedy="Write --input x=1x3x32x32, --input ids=1x16:int64 or --input 'ids=1x16:int64:random 0..999'.",
        )
    return name, TensorSpec(shape=shape, dtype=dtype or "float32", values=values or "random")
