"""Python that opens an exported artifact and runs it as it was measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from json import dumps
from textwrap import fill, indent

from ace_studio.records.results import TargetRun, Warning
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import InputFinding, memory_limits, size_limits

_OPTION = re.compile(r'\{"([A-Z_]+)": "([^"]*)"\}')
"""An option in the sentence of a warning that was stored before warnings had ``options``."""


def opening_code(
    run: TargetRun, path: str, *, warnings: Sequence[Warning], threads: int, inputs: Sequence[InputFinding] = ()
) -> str:
    """A program that opens the artifact at ``path``; empty for a target without a short one.

    The options without which the artifact computes otherwise than measured are those that the warnings name. It refuses
    the sizes and memory layouts of ``inputs`` for which the graph was not proven.
    """
    row = TARGET_ROWS.get(run.target)
    if row is None or not row.opening_code or not (run.artifact and "." in run.artifact.rpartition("/")[2]):
        return ""
    needed = [one for one in warnings if one.code == "artifact-options"]
    found = [item for one in needed for item in one.options.items() or _OPTION.findall(one.what)]
    options = "".join(f'"{key}": "{value}", ' for key, value in found)
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
    return f"{notes}{before}\n{checks}{call}\n"
