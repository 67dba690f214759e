"""Python that opens an exported artifact and runs it as it was measured."""

import re
import sys
from collections.abc import Sequence
from json import dumps
from textwrap import fill, indent

from ace_studio.records.errors import one_line
from ace_studio.records.results import TargetRun, Warning
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import InputFinding, memory_limits, size_limits

_OPTION = re.compile(r'\{"([A-Z_]+)": "([^"]*)"\}')
"""An option in the sentence of a warning that was stored before warnings had ``options``."""
_NUMPY = re.compile("bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)")
"""Types of torch that NumPy has under the same name."""


def opening_code(
    run: TargetRun, path: str, *, warnings: Sequence[Warning], threads: int, inputs: Sequence[InputFinding] = ()
) -> str:
    """A program that opens the artifact at ``path``; empty for a target without a short one.

    Zeros stand for the ``inputs``, so that it runs as it is. The options without which the artifact computes otherwise
    than measured are those that the warnings name. It refuses the sizes and memory layouts of ``inputs`` for which the
    graph was not proven.
    """
    row = TARGET_ROWS.get(run.target)
    if row is None or not row.opening_code or not (run.artifact and "." in run.artifact.rpartition("/")[2]):
        return ""
    needed = [one for one in warnings if one.code in ("artifact-options", "artifact-limits")]
    found = [item for one in needed for item in one.options.items() or _OPTION.findall(one.what)]
    options = "".join(f"{dumps(key)}: {dumps(value)}, " for key, value in found)
    notes = "".join(indent(fill(f"{one.what}.", 88, break_on_hyphens=False), "# ") + "\n" for one in needed)
    checks = "".join(
        f"if inputs[{one.leaf}].shape[{one.dim}] not in range({one.low}, {one.high or sys.maxsize} + 1):\n"
        f"    raise ValueError({one.words!r})\n"
        for one in size_limits(inputs)
    ) + "".join(
        f"if not inputs[{one.leaf}].transpose({one.order}).flags.c_contiguous:\n    raise ValueError({one.words!r})\n"
        for one in memory_limits(inputs)
    )
    code = row.opening_code.format(path=dumps(path, ensure_ascii=False), threads=threads, options=options)
    before, _, call = code.rpartition("\n")
    return f"{notes}{before}\n{_zeros(inputs)}{checks}{call}\n"


def _zeros(inputs: Sequence[InputFinding]) -> str:
    """Lines that make arrays of the sizes at which the graph was traced; none if NumPy lacks a type of them."""
    if not inputs or any(not _NUMPY.fullmatch(one.dtype) for one in inputs):
        return ""
    made = "".join(f"    {_zeros_of(one)},  # {one_line(one.name)}\n" for one in inputs)
    return f"import numpy\n\ninputs = [  # put your own arrays here\n{made}]\n"


def _zeros_of(one: InputFinding) -> str:
    order = one.memory_order or tuple(range(len(one.dims)))
    sizes = tuple(one.dims[dim].size for dim in order)
    made = f"numpy.zeros({sizes}, {dumps(one.dtype)})"
    return made if order == tuple(sorted(order)) else f"{made}.transpose({tuple(map(order.index, range(len(order))))})"
