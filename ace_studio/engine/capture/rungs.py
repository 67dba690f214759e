"""The rungs of the capture ladder, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import InputDims
from ace_studio.engine.shapes.leaves import forward_signature
from ace_studio.engine.torch_compat import DYNAMIC, export_program, forget_traces

Capture = Callable[[nn.Module, Example, tuple[InputDims, ...]], ExportedProgram]


@dataclass(frozen=True)
class Rung:
    """One way to capture."""

    name: str
    label: str
    """What it does, in words, for the progress display."""
    capture: Capture | None
    """None: this version cannot do it yet."""


def dynamic_shapes(module: nn.Module, example: Example, inputs: tuple[InputDims, ...]) -> dict[str, Any]:
    """The dimensions that must stay free, nested as forward's arguments are."""
    bound = forward_signature(module).bind(*example.args, **example.kwargs).arguments
    order = {id(tensor): one for tensor, one in zip(example.tensors(), inputs, strict=True)}

    def mark(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return None
        return dict.fromkeys(order[id(leaf)].dynamic_dims(), DYNAMIC)

    marked: dict[str, Any] = pytree.tree_map(mark, dict(bound))
    return marked


def _export(*, strict: bool) -> Capture:
    def capture(module: nn.Module, example: Example, inputs: tuple[InputDims, ...]) -> ExportedProgram:
        forget_traces()
        with torch.no_grad():
            return export_program(
                module,
                example.args,
                example.kwargs,
                dynamic_shapes=dynamic_shapes(module, example, inputs),
                strict=strict,
            )

    return capture


_ROWS = (
    Rung("export", "running the model with symbolic sizes", _export(strict=False)),
    Rung("export-strict", "reading the model's bytecode", _export(strict=True)),
    Rung("dynamo", "capturing through the compiler", None),
    Rung("fx", "tracing with placeholders", None),
    Rung("partial", "capturing piece by piece", None),
)
RUNGS: dict[str, Rung] = {row.name: row for row in _ROWS}
