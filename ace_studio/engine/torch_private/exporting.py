"""``torch.export.export`` under the settings that the project relies on."""

import inspect
import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.fx.experimental import _config as _shape_config
from torch.utils import _pytree as pytree

from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.plain_ops import calls_as_plain_ops
from ace_studio.engine.torch_private.recurrent_layers import recurrent_layers_kept_whole
from ace_studio.engine.torch_private.regions import inline_plain_regions
from ace_studio.engine.torch_private.symbols import short_sizes, write_sizes_in_integers


def serialize_error() -> type[Exception]:
    """What `torch.export.save` raises for an op that no file can hold."""
    from torch._export.serde import serialize  # noqa: PLC0415 - it loads dynamo

    error: type[Exception] = serialize.SerializeError
    return error


@contextmanager
def sizes_of_one_are_ordinary() -> Iterator[None]:
    """Trace so that a dynamic size may also be 1, instead of treating 1 as a size that broadcasts."""
    if not hasattr(_shape_config, "backed_size_oblivious"):
        yield
        return
    with _shape_config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
        yield


_GRADIENTS_NOT_FOLLOWED = (
    "has no attribute 'constant'",
    "Expected FakeTensor, got",
    "found a fake tensor in the exported program constant's list",
)
"""What the tracer says of gradients under ``vmap`` in torch 2.13 and in 2.11, and of ``torch.autograd.grad``."""


def export_program(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, dynamic_shapes: Any, strict: bool
) -> ExportedProgram:
    """``torch.export.export`` under the settings that the project relies on. Call it without gradients."""
    with (
        sizes_of_one_are_ordinary(), recurrent_layers_kept_whole(), calls_as_plain_ops(), short_sizes(),
        keywords_named(module, kwargs),
    ):  # fmt: skip
        given = (module, args, dict(kwargs), dynamic_shapes)
        try:
            program = torch.export.export(*given[:3], dynamic_shapes=dynamic_shapes, strict=strict)
        except (AttributeError, AssertionError, RuntimeError) as error:
            if strict or not any(words in str(error) for words in _GRADIENTS_NOT_FOLLOWED):
                raise
            from torch.export._trace import _export  # noqa: PLC0415 - it loads dynamo

            # The tracer of composite operators cannot follow these gradients; that of aten can.
            with _no_gradients_outside(module):
                program = _export(*given, strict=False, pre_dispatch=False)
        inline_plain_regions(program)
        _write_roots_as_powers(program)
        write_sizes_in_integers(program)
    return program


@contextmanager
def _no_gradients_outside(module: torch.nn.Module) -> Iterator[None]:
    """Detach arguments and results of a module while the block runs.

    A result that needs gradients makes the tracer record the backward pass of training as well, and an argument that
    forward marks with ``requires_grad_()`` counts as such a result.
    """

    def detached(value: Any) -> Any:
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, value)

    with (
        module.register_forward_pre_hook(lambda _, args, kwargs: detached((args, kwargs)), with_kwargs=True),
        module.register_forward_hook(lambda _, __, result: detached(result)),
    ):
        yield


@contextmanager
def keywords_named(module: torch.nn.Module, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Give forward a signature in which each argument in its ``**kwargs`` is a parameter, while the block runs.

    torch.export compares ``dynamic_shapes`` with the arguments in two places, nested as ``**kwargs`` in one and flat in
    the other (torch 2.13), so that no ``dynamic_shapes`` fits a call with such an argument. Only the signature changes.
    """
    forward: Any = getattr(module.forward, "__func__", module.forward)
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    rest = [one for one in parameters if one.kind is inspect.Parameter.VAR_KEYWORD]
    known = {one.name for one in parameters}
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in kwargs if name not in known]
    if not rest or not extra or not hasattr(forward, "__dict__"):
        yield
        return
    signature = inspect.Signature([*(one for one in parameters if one not in rest), *extra, *rest])
    with replaced_attribute(forward, "__signature__", signature):
        yield


@contextmanager
def results_in_a_list(program: ExportedProgram) -> Iterator[None]:
    """Have a program give its results in a plain list while the block runs.

    torch traces it again for ``run_decompositions`` and for ONNX, with the making of the user's containers: what a
    constructor computes then becomes part of the graph, and torch loses the constants of it (2.13).
    """
    signature = program.module_call_graph[0].signature
    assert signature is not None
    count = 0 if signature.out_spec is None else signature.out_spec.num_leaves
    with replaced_attribute(signature, "out_spec", pytree.tree_structure([0] * count)):
        yield


def _write_roots_as_powers(program: ExportedProgram) -> None:
    """Replace the square root of a size by ``size ** 0.5``, which every reader of programs knows."""
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target in (torch.sym_sqrt, getattr(torch, "_sym_sqrt", None)):
            node.target, node.args = operator.pow, (node.args[0], 0.5)
            node.meta["val"] = node.args[0].meta["val"] ** 0.5
    program.graph_module.recompile()


DYNAMIC = Dim.DYNAMIC
"""Marks a dimension that must stay dynamic; the tracer raises if it cannot."""
