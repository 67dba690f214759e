"""Capturing a model's graph: a ladder of ways, each accepted only if its graph is proven equal to eager."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import torch

from ace_studio.engine.capture.batch_only import batch_only
from ace_studio.engine.capture.cache import CaptureCache
from ace_studio.engine.capture.ladder import Ladder
from ace_studio.engine.capture.partial import PartialCapture, PartialJob, capture_partially
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel, PartialModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import CaptureAttempt, CaptureReport


def capture_model(
    loaded: LoadedModel,
    examples: Sequence[Example],
    recipe: Recipe,
    *,
    device: torch.device,
    reporter: Reporter,
    rungs_done: tuple[CaptureAttempt, ...] = (),
) -> tuple[CapturedModel | PartialModel, CaptureReport]:
    """Capture the whole graph, or subgraphs of it, prove that it equals eager, and say what was found.

    Args:
        loaded: The model; it is put into eval mode. Module and examples must be on ``device`` already.
        examples: The user's examples, at least one.
        recipe: ``[inputs.dims]`` and ``[capture]`` are read.
        device: Where the module is.
        reporter: Gets a `AttemptEnded` per rung, and the warnings.
        rungs_done: Outcomes of rungs in a process that ended under the last of them; they are not tried again.

    Raises: AceError(BAD_INPUT or USER_CODE) if the model does not run; AceError(RECIPE) for dimensions that do not
        exist; AceError(NOT_CAPTURED) with one problem per cause if no rung gave a graph that equals eager; Cancelled.
    """
    started = time.monotonic()
    asked, held = recipe, None
    if recipe.capture.batch_only and examples:
        held = batch_only(loaded.module, examples, recipe)
        examples, recipe = held.examples, held.recipe
        if held.held:
            names = ", ".join(held.held)
            reporter.warn("batch-only", f"{names}: held as in the first example; other examples were cut or repeated")
    fingerprint = capture_fingerprint(loaded, asked, device)
    cache = CaptureCache.for_capture(
        loaded, examples, recipe, fingerprint=fingerprint, device=device, reporter=reporter
    )
    if cache is not None and not rungs_done and (found := cache.find(fingerprint)) is not None:
        return found
    with torch.no_grad():
        ladder = Ladder(loaded.module, tuple(examples), recipe, reporter, rungs_done, capture_subgraphs=_subgraphs_of)
        ladder.run_eager()
        accepted = ladder.climb()
    findings = accepted.findings if held is None else held.explained(accepted.findings)
    common: dict[str, Any] = {
        "table": accepted.table,
        "inputs": findings,
        "example": ladder.tracing,
        "examples": (*ladder.examples, *accepted.unseen),
        "unseen": accepted.unseen,
        "module": loaded.module,
        "device": device,
        "fingerprint": fingerprint,
    }
    captured: CapturedModel | PartialModel
    if isinstance(accepted, PartialCapture):
        captured = PartialModel(**common, subgraphs=accepted.subgraphs, controls=accepted.controls)
    else:
        captured = CapturedModel(**common, program=accepted.program)
    report = CaptureReport(
        rung=accepted.rung,
        ops=accepted.table.op_count,
        seconds=time.monotonic() - started,
        rungs=tuple(ladder.outcomes),
        warnings=tuple(reporter.warnings),
        inputs=findings,
    )
    if isinstance(accepted, PartialCapture):
        report = msgspec.structs.replace(
            report,
            graph_breaks=accepted.breaks,
            pieces=accepted.reports,
            ops_left_eager=accepted.ops_left_eager,
        )
    if cache is not None and isinstance(captured, CapturedModel):
        cache.keep(captured, report)
    return captured, report


def _subgraphs_of(ladder: Ladder) -> PartialCapture | Problem:
    return capture_partially(
        PartialJob(
            module=ladder.module,
            eager=ladder.eager,
            examples=ladder.examples,
            expected=ladder.expected,
            tracing=ladder.tracing,
            inputs=ladder.inputs,
            recipe=ladder.recipe,
            controls=ladder.controls,
            reporter=ladder.reporter,
            problems=tuple(outcome.error for outcome in ladder.outcomes if outcome.error is not None),
        )
    )


def capture_fingerprint(loaded: LoadedModel, recipe: Recipe, device: torch.device) -> str:
    """SHA-256 of everything that the captured graph depends on: model, inputs, rungs, torch, device."""
    digest = hashlib.sha256((loaded.sha256 or _module_hash(loaded.module)).encode())
    # These change what is told, and how fast, not the graph.
    capture = msgspec.structs.replace(recipe.capture, compare_rungs=False, cache=True)
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
