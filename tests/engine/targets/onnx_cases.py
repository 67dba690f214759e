"""Captures for the tests of the ONNX targets: made here with torch.export, so that they need no other stage."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import CapturedModel, Example, tensor_leaves
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.base import Lowered, LoweringJob, Target
from ace_studio.engine.targets.onnx.program import OnnxProgram, export_onnx
from ace_studio.engine.torch_private.exporting import sizes_of_one_are_ordinary
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import Event, Progress
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding
from tests.tiny_models import EASY, TinyModel

CPU = torch.device("cpu")
MODELS = ("conv_net", "conv_net_any_size", "mlp", "text_model", "lstm_cell", "many_outputs", "shared_layer")
"""Names of the easy tiny models that plain torch.export captures with their dynamic sizes."""


def capture(model: TinyModel) -> CapturedModel:
    """Trace the last example; what differs from the first, which is not shown to the tracer, is dynamic."""
    examples = [Example.of(example) for example in model.examples]
    traced, other = examples[-1], examples[0]
    dynamic = [
        {index: torch.export.Dim.DYNAMIC for index, size in enumerate(leaf.shape) if size != small.shape[index]}
        for leaf, small in zip(traced.tensors(), other.tensors(), strict=True)
    ]
    with warnings.catch_warnings(), sizes_of_one_are_ordinary(), torch.no_grad():
        warnings.simplefilter("ignore", UserWarning)  # torch says that an LSTM's list of weights is assigned
        program = torch.export.export(
            model.module, traced.args, dict(traced.kwargs), dynamic_shapes=_by_argument(model, traced, dynamic)
        )
    return CapturedModel(
        program=program,
        table=_table(program, type(model.module).__name__),
        inputs=_inputs(program, traced),
        example=traced,
        examples=tuple(examples),
        unseen=(other,),
        module=model.module,
        device=CPU,
        fingerprint="test",
    )


def _by_argument(model: TinyModel, traced: Example, dynamic: list[dict[int, object]]) -> dict[str, object]:
    leaves, spec = pytree.tree_flatten((traced.args, dict(traced.kwargs)))
    waiting = iter(dynamic)
    args, kwargs = pytree.tree_unflatten(
        [next(waiting) if isinstance(leaf, torch.Tensor) else None for leaf in leaves], spec
    )
    names = inspect.signature(model.module.forward).bind(*traced.args, **traced.kwargs).arguments
    return dict(zip(names, [*args, *kwargs.values()], strict=True))


def _inputs(program: torch.export.ExportedProgram, traced: Example) -> tuple[InputFinding, ...]:
    user_inputs = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in user_inputs]
    nodes = [node for node in nodes if isinstance(node.meta["val"], torch.Tensor)]
    assert len(nodes) == len(traced.tensors())
    return tuple(
        InputFinding(name=node.name, dtype=str(node.meta["val"].dtype)[6:], dims=_dims(node.meta["val"].shape))
        for node in nodes
    )


def _dims(shape: Sequence[object]) -> tuple[DimFinding, ...]:
    return tuple(
        DimFinding(index=index, verdict=DimVerdict.STATIC, size=size)
        if isinstance(size, int)
        else DimFinding(index=index, verdict=DimVerdict.DYNAMIC, size=2, symbol=str(size))
        for index, size in enumerate(shape)
    )


def _table(program: torch.export.ExportedProgram, name: str) -> GraphTable:
    user_inputs = set(program.graph_signature.user_inputs)
    rows = [
        (node.name, OpKind.OP if node.op == "call_function" else OpKind(node.op.replace("placeholder", "input")), node)
        for node in program.graph.nodes
        if node.op in {"call_function", "output"} or node.name in user_inputs
    ]
    count = len(rows)
    return GraphTable(
        op_id=tuple(row[0] for row in rows),
        kind=tuple(row[1] for row in rows),
        op=tuple(str(row[2].target) if row[1] is OpKind.OP else str(row[1]) for row in rows),
        module=("",) * count,
        shape=("",) * count,
        dtype=("",) * count,
        device=("cpu",) * count,
        file=(0,) * count,
        line=tuple(range(1, count + 1)),
        flops=(0,) * count,
        weight_bytes=(0,) * count,
        output_bytes=(0,) * count,
        edge_source=(),
        edge_target=(),
        files=("/models/model.py",),
        name=name,
    )


@cache
def captured_easy(name: str) -> CapturedModel:
    """One of the easy tiny models, captured once for all tests."""
    return capture(EASY[name]())


_exported: list[tuple[CapturedModel, OnnxProgram]] = []


def exported(captured: CapturedModel) -> OnnxProgram:
    """The ONNX model of a capture, made once for all tests."""
    for known, program in _exported:
        if known is captured:
            return program
    _exported.append((captured, export_onnx(captured)))
    return _exported[-1][1]


def job_for(
    target: Target,
    captured: CapturedModel,
    default: Precision = Precision.FP32,
    *,
    rules: tuple[PlanRule, ...] = (),
    reporter: Reporter | None = None,
    folder: Path | None = None,
) -> LoweringJob:
    """A job with the plan bound to the target and the captured examples as calibration."""
    plan = bind_plan(Plan(default=default, rules=rules), captured.table, op_problem=target.op_problem)
    return LoweringJob(
        captured=captured,
        plan=plan,
        calibration=lambda: captured.examples,
        threads=1,
        device=CPU,
        folder=folder or Path(tempfile.mkdtemp(prefix="ace-test-")),
        reporter=reporter or Reporter(),
        shared={"onnx_program": exported(captured)},
    )


def cancelled_at(detail: str) -> Reporter:
    """A reporter that somebody cancels as soon as it says this."""
    heard: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, Progress) and detail in event.detail:
            heard.append(True)

    return Reporter(listen, is_cancelled=lambda: bool(heard))


def sqnr_db(expected: object, got: object) -> float:
    """Signal over error of all tensors of two results, in dB."""
    signal = torch.cat([leaf.detach().flatten().double() for leaf in tensor_leaves(expected)])
    error = signal - torch.cat([leaf.detach().flatten().double() for leaf in tensor_leaves(got)])
    return float(10 * torch.log10(signal.square().sum() / error.square().sum().clamp_min(1e-30)))


def actual_of(lowered: Lowered) -> dict[str, str]:
    return {op.op_id: str(op.actual) for op in lowered.read_back()}
