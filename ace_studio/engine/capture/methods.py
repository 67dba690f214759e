"""The capture methods, one row each."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn
from torch.export import ExportedProgram

from ace_studio.engine.capture.namespaces import ApplyControls
from ace_studio.engine.capture.replay import export_example
from ace_studio.engine.capture.through_dynamo import capture_with_dynamo
from ace_studio.engine.capture.through_fx import capture_with_fx
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import InputDims
from ace_studio.engine.torch_private.dynamo import forget_traces

CaptureFunction = Callable[[nn.Module, Example, tuple[InputDims, ...], ApplyControls], ExportedProgram]
"""Module, example to trace, its dimensions, and what puts the controls in place."""


@dataclass(frozen=True)
class CaptureMethod:
    """One way to capture."""

    name: str
    label: str
    """What it does, in words, for the progress display."""
    capture: CaptureFunction | None
    """None for the method that gives subgraphs instead of a whole graph."""


def _export(*, strict: bool) -> CaptureFunction:
    def capture(
        module: nn.Module, example: Example, inputs: tuple[InputDims, ...], controls: ApplyControls
    ) -> ExportedProgram:
        forget_traces()
        with controls():
            return export_example(module, example, inputs, strict=strict)

    return capture


_ROWS = (
    CaptureMethod("export", "running the model with symbolic sizes", _export(strict=False)),
    CaptureMethod("export-strict", "reading the model's bytecode", _export(strict=True)),
    CaptureMethod("dynamo", "capturing through the compiler", capture_with_dynamo),
    CaptureMethod("fx", "tracing with placeholders", capture_with_fx),
    CaptureMethod("partial", "capturing subgraph by subgraph", None),
)
CAPTURE_METHODS: dict[str, CaptureMethod] = {row.name: row for row in _ROWS}
