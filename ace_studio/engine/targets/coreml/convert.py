"""Converts a rewritten graph to a Core ML model whose operations know the ops that they compute.

coremltools keeps the source line of a node (``stack_trace``) on everything that it makes of it, through all of its own
rewriting. So each node gets its op id in that place.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram

from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.coreml.package import Port, set_ports
from ace_studio.engine.targets.coreml.quantize import INT8
from ace_studio.engine.targets.shared.carried_ids import carried_id, carry_ids
from ace_studio.engine.targets.shared.size_bounds import export_bounded, size_bounds
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.tensors import size_limits

_NO_OP = "no op"
"""Instead of an op id, for what belongs to none; coremltools wants some text."""


def coreml_model(graph_module: fx.GraphModule, job: LoweringJob) -> tuple[Any, Mapping[str, str]]:
    """A coremltools model of the graph, and name of a value in it -> id of the op that it belongs to.

    Raises: what coremltools raises for a graph that it cannot convert.
    """
    import coremltools

    with hushed():
        program = _exported(graph_module, job)
        takes, gives = _ports(program, job)
        pipeline = coremltools.PassPipeline()
        pipeline.remove_passes({"common::add_int16_cast"})  # indices keep their type
        model = coremltools.convert(
            program,
            inputs=_input_types(program, takes),
            outputs=[coremltools.TensorType(dtype=_array_type(one.dtype)) for one in gives],
            compute_precision=_float_types(job),
            minimum_deployment_target=coremltools.target.iOS17,
            pass_pipeline=pipeline,
            skip_model_load=True,
        )
        names = [one.name for one in model.get_spec().description.output]
        set_ports(model, takes, [one.named(name) for one, name in zip(gives, names, strict=True)])
        return model, _owners(model)


def _exported(graph_module: fx.GraphModule, job: LoweringJob) -> ExportedProgram:
    """The graph in the dialect that coremltools reads."""
    program = export_bounded(graph_module, job)
    carry_ids(graph_module.graph, program.graph)
    with torch.no_grad():
        program = program.run_decompositions({})
    assert isinstance(program, ExportedProgram)
    for node in program.graph.nodes:
        node.meta["stack_trace"] = carried_id(node) or _NO_OP
    return program


def _ports(program: ExportedProgram, job: LoweringJob) -> tuple[list[Port], list[Port]]:
    """What the program takes and gives. A dynamic size has its lowest and highest value, a fixed one is both."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    bounds = size_bounds(job.captured, job.sizes)
    low = {(one.leaf, one.dim): one.low for one in size_limits(job.captured.inputs)}
    takes = [
        Port(
            name=name,
            dtype=_type_word(values[name]),
            sizes=tuple(
                (low.get((place, dim), 1), bounds[place][dim]) if dim in bounds[place] else (int(size), int(size))
                for dim, size in enumerate(values[name].shape)
            ),
        )
        for place, name in enumerate(program.graph_signature.user_inputs)
    ]
    gives = []
    for name in program.graph_signature.user_outputs:
        value = values.get(name)
        sizes = value.shape if isinstance(value, Tensor) else ()
        known = tuple((size, size) if isinstance(size, int) else None for size in sizes)
        gives.append(Port(name=str(name), dtype=_type_word(value), sizes=known))
    return takes, gives


def _type_word(value: object) -> str:
    return str(value.dtype).removeprefix("torch.") if isinstance(value, Tensor) else "int64"


def _array_type(dtype: str) -> Any:
    """The NumPy type in which Core ML takes and gives a tensor of this type: integers and truth values have 32 bits."""
    import numpy

    return {"float32": numpy.float32, "float16": numpy.float16}.get(dtype, numpy.int32)


def _input_types(program: ExportedProgram, takes: list[Port]) -> list[Any]:
    """The inputs as coremltools declares them; sizes of one symbol share their range."""
    import coremltools

    ranges: dict[str, Any] = {}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    found = []
    for port in takes:
        shape: list[Any] = []
        for size, (low, high) in zip(values[port.name].shape, port.known_sizes, strict=True):
            if not isinstance(size, int):
                usual = min(max(size.node.hint, low), high)
                own = ranges.setdefault(str(size), coremltools.RangeDim(low, high, default=usual))
                shape.append(own)
            else:
                shape.append(size)
        found.append(coremltools.TensorType(name=port.name, shape=shape, dtype=_array_type(port.dtype)))
    return found


def _float_types(job: LoweringJob) -> Any:
    """What coremltools is told of float types: fp32, or which operations get fp16.

    The arithmetic of an int8 op is that of the ops at the plan's ``rest``.
    """
    import coremltools

    rest = job.plan.plan.rest
    if rest is not Precision.FP16 and Precision.FP16 not in job.plan.precisions:
        return coremltools.precision.FLOAT32

    def is_half(operation: Any) -> bool:
        if operation.op_type == "const":
            return False
        op_id = _owner(operation)
        if not op_id:  # what stands around an int8 op: a stored weight, or a pair
            return rest is Precision.FP16 and operation.op_type.startswith(("quantize", "dequantize", "constexpr"))
        precision = job.plan.precision_of(op_id)
        return precision is Precision.FP16 or (precision in INT8 and rest is Precision.FP16)

    return coremltools.transform.FP16ComputePrecision(op_selector=is_half)


def _owner(operation: Any) -> str:
    """The id of the op that an operation belongs to; empty if it is not known."""
    from coremltools.converters.mil.mil.scope import ScopeSource

    traces = operation.scopes.get(ScopeSource.EXIR_STACK_TRACE) or [None]
    return str(traces[0]) if traces[0] not in (None, _NO_OP) else ""


def _owners(model: Any) -> dict[str, str]:
    operations: Callable[..., Any] = model._mil_program.functions["main"].operations
    return {value.name: _owner(one) for one in operations for value in one.outputs if _owner(one)}  # type: ignore[attr-defined]
