"""Capturing a model's graph: a ladder of ways, each accepted only if its graph is proven equal to eager."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import msgspec
import torch

from ace_studio.engine.capture.ladder import Ladder
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipe import Recipe
from ace_studio.records.results import CaptureReport, RungOutcome


def capture_model(
    loaded: LoadedModel,
    examples: Sequence[Example],
    recipe: Recipe,
    *,
    device: torch.device,
    reporter: Reporter,
    rungs_done: tuple[RungOutcome, ...] = (),
) -> tuple[CapturedModel, CaptureReport]:
    """Capture the whole graph, prove it, and say what was found.

    Args:
        loaded: The model; it is put into eval mode. Module and examples must be on ``device`` already.
        examples: The user's examples, at least one.
        recipe: ``[inputs.dims]`` and ``[capture]`` are read.
        device: Where the module is.
        reporter: Gets a `RungTried` per rung, and the warnings.
        rungs_done: Outcomes of rungs in a process that ended under the last of them; they are not tried again.

    Raises: AceError(BAD_INPUT or USER_CODE) if the model does not run; AceError(RECIPE) for dimensions that do not
        exist; AceError(NOT_CAPTURED) with one problem per cause if no rung gave a graph that equals eager; Cancelled.
    """
    started = time.monotonic()
    with torch.no_grad():
        ladder = Ladder(loaded.module, tuple(examples), recipe, reporter, rungs_done)
        ladder.run_eager()
        accepted = ladder.climb()
    captured = CapturedModel(
        program=accepted.program,
        table=accepted.table,
        inputs=accepted.findings,
        example=ladder.tracing,
        examples=(*ladder.examples, *accepted.unseen),
        unseen=accepted.unseen,
        module=loaded.module,
        device=device,
        fingerprint=capture_fingerprint(loaded, recipe, device),
    )
    report = CaptureReport(
        rung=accepted.rung,
        ops=accepted.table.op_count,
        seconds=time.monotonic() - started,
        rungs=tuple(ladder.outcomes),
        warnings=tuple(reporter.warnings),
        inputs=accepted.findings,
    )
    return captured, report


def capture_fingerprint(loaded: LoadedModel, recipe: Recipe, device: torch.device) -> str:
    """SHA-256 of everything that the captured graph depends on: model, inputs, rungs, torch, device."""
    digest = hashlib.sha256((loaded.sha256 or _module_hash(loaded.module)).encode())
    capture = msgspec.structs.replace(recipe.capture, compare_rungs=False)  # changes what is told, not the graph
    for part in (recipe.model, recipe.inputs, capture):
        digest.update(msgspec.json.encode(part, order="deterministic"))
    digest.update(f"{torch.__version__} {device.type}".encode())
    return digest.hexdigest()


def _module_hash(module: torch.nn.Module) -> str:
    """Hash of a module that came from no file: its structure and its numbers."""
    digest = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        if isinstance(tensor, torch.Tensor):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


__all__ = ["capture_fingerprint", "capture_model"]
