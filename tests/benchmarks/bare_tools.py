"""The capture tools of torch as one uses them by hand: what the ladder is compared with.

Every tool gets the best plain practice: the example that the ladder would trace, the same dimensions marked dynamic,
no gradients, a fresh start. What comes back is called with other examples to see whether it is right there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from ace_studio.engine.capture.replay import dynamic_shapes
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import InputDims
from ace_studio.engine.torch_private.sizes import mark_free


class RetracedError(RuntimeError):
    """A second graph was made, so the first one was not dynamic."""


@dataclass(frozen=True)
class Question:
    """What is to be captured."""

    module: nn.Module
    example: Example
    inputs: tuple[InputDims, ...]


def export(question: Question, *, strict: bool = False) -> Callable[..., Any]:
    """``torch.export.export``."""
    shapes = dynamic_shapes(question.module, question.example, question.inputs)
    own = question.example.copied()
    program = torch.export.export(question.module, own.args, dict(own.kwargs), dynamic_shapes=shapes, strict=strict)
    module: nn.Module = program.module()
    return module


def export_strict(question: Question) -> Callable[..., Any]:
    """``torch.export.export(strict=True)``."""
    return export(question, strict=True)


def dynamo(question: Question) -> Callable[..., Any]:
    """``torch.compile(fullgraph=True)``; the result raises where it would have to trace again."""
    graphs: list[fx.GraphModule] = []

    def backend(graph: fx.GraphModule, _: Any) -> Callable[..., Any]:
        graphs.append(graph)
        if len(graphs) > 1:
            raise RetracedError("another graph for other sizes")
        return graph.forward

    own = question.example.copied()
    for tensor, one in zip(own.tensors(), question.inputs, strict=True):
        mark_free(tensor, one.dynamic_dims())
    compiled = torch.compile(question.module, backend=backend, fullgraph=True)
    own.call(compiled)
    return compiled


def symbolic_trace(question: Question) -> Callable[..., Any]:
    """``torch.fx.symbolic_trace``."""
    return fx.symbolic_trace(question.module)


TOOLS: dict[str, Callable[[Question], Callable[..., Any]]] = {
    "export": export,
    "export-strict": export_strict,
    "dynamo": dynamo,
    "fx": symbolic_trace,
}
