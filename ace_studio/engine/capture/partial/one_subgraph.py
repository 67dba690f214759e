"""Capturing one subgraph with the methods for whole graphs, on the calls that the subgraph gets from the model."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import torch
from torch import nn
from torch.export import ExportedProgram

from ace_studio.engine.capture.attempts import CaptureAttempts
from ace_studio.engine.capture.methods import CAPTURE_METHODS, CaptureMethod
from ace_studio.engine.capture.namespaces import ApplyControls
from ace_studio.engine.capture.partial.subgraph_modules import SubgraphSource
from ace_studio.engine.capture.reference import EagerReference, run_reference
from ace_studio.engine.capture.replay import export_example, keep_user_frames
from ace_studio.engine.flow import CapturedModel, Example, Subgraph
from ace_studio.engine.graph_table import build_graph_table
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import InputDims
from ace_studio.engine.subgraphs.run_pieces import Limits
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.tensors import DimVerdict, InputFinding


def _play(module: nn.Module, example: Example, inputs: tuple[InputDims, ...], _: ApplyControls) -> ExportedProgram:
    """Export a graph of the compiler by playing it; the compiler must not trace it again."""
    return export_example(module, example, inputs)


_METHODS: dict[str, tuple[CaptureMethod, ...]] = {
    "frame": (CaptureMethod("export", "playing a subgraph with symbolic sizes", _play),),
    "module": (CAPTURE_METHODS["export"], CAPTURE_METHODS["dynamo"]),
}
"""Kind of subgraph -> the methods to try."""


def capture_subgraph(
    source: SubgraphSource, recipe: Recipe, *, device: torch.device, reporter: Reporter
) -> Subgraph | Problem:
    """The subgraph, proven on its own calls; the problem of the first method if no method captures it."""
    quiet = reporter.quiet()
    own = msgspec.structs.replace(
        recipe, inputs=InputsChoice(), capture=msgspec.structs.replace(recipe.capture, controls=(), compare_rungs=False)
    )
    try:
        reference = run_reference(source.module, source.examples, own, quiet)
        attempts = CaptureAttempts(_at_first_call(reference), quiet)
        tried = (attempts.try_method(method) for method in _METHODS[source.place.kind])
        accepted = next((found for found in tried if found is not None), None)
    except AceError as error:
        if error.problem.code is ErrorCode.CANCELLED:
            raise
        return error.problem
    if accepted is None:
        return next(outcome.error for outcome in attempts.outcomes if outcome.error is not None)
    if not accepted.table.op_count:
        return Problem(code=ErrorCode.NOT_CAPTURED, what="This part computes nothing", why="its graph holds no op")
    keep_user_frames(accepted.program)
    table = build_graph_table(accepted.program, module=source.module)
    reporter.warnings.extend(one for one in quiet.warnings if one.code in ("random", "bad-numbers"))
    captured = CapturedModel(
        program=accepted.program,
        table=table,
        inputs=accepted.findings,
        example=attempts.reference.tracing,
        examples=(*source.examples, *accepted.unseen),
        unseen=accepted.unseen,
        module=source.module,
        device=device,
        fingerprint=source.place.name,
    )
    taken = len(source.place.tensors)
    return Subgraph(replace(source.place, limits=_limits(accepted.findings[:taken])), captured)


def _at_first_call(reference: EagerReference) -> EagerReference:
    """The reference that traces the first call, unless it would have to be grown.

    The model's traced example makes that call: so the ops of all subgraphs are counted at the sizes of one example.
    """
    first = reference.traced_at(reference.examples[0])
    return reference if first is None or first.is_grown else first


def _limits(findings: Sequence[InputFinding]) -> tuple[Limits, ...]:
    """The sizes that the subgraph was made for, per input."""
    return tuple(
        tuple(
            (dim.min or 1, dim.max) if dim.verdict is DimVerdict.DYNAMIC else (dim.size, dim.size) for dim in found.dims
        )
        for found in findings
    )
