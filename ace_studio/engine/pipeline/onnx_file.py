"""The frontend of ONNX files: the graph is read from the file, run, and compressed.

The baseline is ONNX Runtime on the unchanged file, as eager is for a model of torch.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Captured, CapturedFile, Example, LoadedModel, tensor_leaves
from ace_studio.engine.load import OnnxModule, dims_of, node_ids, onnx_table
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import example_at
from ace_studio.engine.targets.onnx.file_program import shared_program
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from ace_studio.records.targets import targets_for
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding

RUNG = "onnx"
"""Name of the capture method in the report."""
BASELINE_NAME = "ONNX Runtime"
"""Without a precision: a file may hold any, also a quantized one."""
_UNSEEN = 2
"""Made-up sizes that are tried for open dimensions."""


class _Interface(nn.Module):
    """Records how a call and its results are nested; its values mean nothing."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)

    def forward(self, *args: Tensor) -> Any:
        results = [args[0].sum() + number if args else torch.zeros(()) for number, _ in enumerate(self.names)]
        return results[0] if len(results) == 1 else dict(zip(self.names, results, strict=True))


def capture_onnx_file(
    loaded: LoadedModel, examples: Sequence[Example], *, fingerprint: str, reporter: Reporter
) -> tuple[CapturedFile, CaptureReport]:
    """Run the file on the examples and at made-up sizes, and read its graph.

    Raises: AceError(BAD_INPUT) if it does not take the examples.
    """
    module = loaded.module
    assert isinstance(module, OnnxModule), "FRONTENDS sends ONNX files here only"
    started = time.monotonic()
    reporter.phase(Phase.EAGER, BASELINE_NAME)
    flat = tuple(Example(args=tuple(_in_order(example, module))) for example in examples)
    result: Any = None
    for example in flat:
        result = example.call(module)
    unseen = _unseen_examples(module, flat, reporter)
    reporter.phase(Phase.CAPTURE, "reading the graph of the file")
    table = onnx_table(module, flat[0].tensors())
    names = list(result) if isinstance(result, dict) else ["output"]
    findings = _findings(module, (*flat, *unseen))
    captured = CapturedFile(
        program=torch.export.export(_Interface(names), flat[0].args),
        table=table,
        inputs=findings,
        example=flat[0],
        examples=(*flat, *unseen),
        unseen=unseen,
        module=module,
        device=torch.device("cpu"),
        fingerprint=fingerprint,
    )
    seconds = time.monotonic() - started
    report = CaptureReport(
        rung=RUNG,
        ops=table.op_count,
        seconds=seconds,
        fingerprint=fingerprint,
        rungs=(CaptureAttempt(name=RUNG, status=AttemptStatus.OK, seconds=seconds, ops=table.op_count),),
        warnings=tuple(reporter.warnings),
        inputs=findings,
    )
    return captured, report


def program_of(captured: Captured) -> dict[str, Any]:
    """What the targets share: the file's own program. Raises: AceError(UNSUPPORTED) if it is too large."""
    module = captured.module
    assert isinstance(module, OnnxModule), "made by capture_onnx_file"
    names = [value.name for value in module.inputs]
    calls = (captured.example, *captured.unseen[:1])
    feeds = [dict(zip(names, call.tensors(), strict=True)) for call in calls]
    ids = node_ids(module.model)
    return shared_program(module.model, captured.table, node_ids=ids, input_names=names, feeds=feeds)


def with_its_targets(recipe: Recipe) -> Recipe:
    """The recipe with the targets that read ONNX.

    Raises: AceError(RECIPE) if it names another one.
    """
    readers = targets_for("onnx")
    others = [name for name in recipe.targets.names if name not in (*readers, "auto")]
    if others:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The target {others[0]} cannot run an ONNX file",
            why=f"{', '.join(readers)} read ONNX; the others start from a model of PyTorch",
            remedy="leave it out, or open the model that the file was exported from",
            where="[targets] names",
        )
    names = tuple(
        dict.fromkeys(one for name in recipe.targets.names for one in (readers if name == "auto" else (name,)))
    )
    return msgspec.structs.replace(recipe, targets=msgspec.structs.replace(recipe.targets, names=names))


def _in_order(example: Example, module: OnnxModule) -> list[Tensor]:
    """The tensors of a call in the order of the file's inputs."""
    given = dict(zip(module.names, example.args, strict=False)) | dict(example.kwargs)
    tensors = tensor_leaves([given.get(name) for name in module.names])
    if len(tensors) != len(module.names):
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"{module.path.name} takes {len(module.names)} tensors, and the example gives {len(tensors)}",
            why=f"its inputs are {', '.join(module.names)}",
            remedy="give each of them",
            where="[inputs]",
        )
    return tensors


def _unseen_examples(module: OnnxModule, examples: Sequence[Example], reporter: Reporter) -> tuple[Example, ...]:
    """Calls at made-up sizes of open dimensions; a size that the file refuses is a warning."""
    seen: dict[str, list[int]] = {}
    for example in examples:
        for value, tensor in zip(module.inputs, example.tensors(), strict=True):
            for dim, size in zip(dims_of(value), tensor.shape, strict=True):
                if isinstance(dim, str) and size not in seen.setdefault(dim, []):
                    seen[dim].append(size)
    found: list[Example] = []
    for turn in range(1, _UNSEEN + 1 if seen else 1):
        sizes = {dim: max(given) + turn * _step(given) for dim, given in seen.items()}
        places = {
            (place, index): sizes[dim]
            for place, value in enumerate(module.inputs)
            for index, dim in enumerate(dims_of(value))
            if isinstance(dim, str)
        }
        candidate = example_at(examples[-1], places)
        try:
            candidate.call(module)
        except AceError as error:
            shown = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
            reporter.warn(
                "onnx-size",
                f"The file leaves sizes open but does not run at {shown}: {error.problem.why}",
                where=str(module.path),
            )
            break
        found.append(candidate)
    return tuple(found)


def _step(sizes: Sequence[int]) -> int:
    """Distance between the given sizes, so that images remain multiples of it."""
    ordered = sorted(sizes)
    gaps = [high - low for low, high in itertools.pairwise(ordered)]
    return min(gaps) if gaps else (ordered[0] if ordered[0] > 1 else 1)


def _findings(module: OnnxModule, examples: Sequence[Example]) -> tuple[InputFinding, ...]:
    findings = []
    for place, (name, value) in enumerate(zip(module.names, module.inputs, strict=True)):
        tensors = [example.tensors()[place] for example in examples]
        findings.append(
            InputFinding(
                name=name,
                dtype=str(tensors[0].dtype).removeprefix("torch."),
                dims=tuple(
                    DimFinding(
                        index=index,
                        verdict=DimVerdict.DYNAMIC if isinstance(dim, str) else DimVerdict.STATIC,
                        size=tensors[0].shape[index],
                        symbol=dim if isinstance(dim, str) else None,
                        min=1 if isinstance(dim, str) else None,
                        verified_sizes=tuple(sorted({tensor.shape[index] for tensor in tensors})),
                        reason="the file leaves it open" if isinstance(dim, str) else "the file names this size",
                    )
                    for index, dim in enumerate(dims_of(value))
                ),
            )
        )
    return tuple(findings)
