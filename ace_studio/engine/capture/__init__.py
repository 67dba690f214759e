"""Capturing a model's graph: capture methods are tried in order, and a graph counts only if it equals eager."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import msgspec
import torch

from ace_studio.engine.capture.attempts import CaptureAttempts
from ace_studio.engine.capture.batch_only import batch_only
from ace_studio.engine.capture.cache import CaptureCache
from ace_studio.engine.capture.cache_key import content_digest
from ace_studio.engine.capture.in_order import capture_in_order
from ace_studio.engine.capture.reference import run_reference
from ace_studio.engine.flow import AnyCapture, CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
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
) -> tuple[AnyCapture, CaptureReport]:
    """Capture the whole graph, or subgraphs of it, prove that it equals eager, and say what was found.

    Args:
        loaded: The model; it is put into eval mode. Module and examples must be on ``device`` already.
        examples: The user's examples, at least one.
        recipe: ``[inputs.dims]`` and ``[capture]`` are read.
        device: Where the module is.
        reporter: Gets an `AttemptEnded` per capture method, and the warnings.
        rungs_done: Outcomes in a process that ended during the last of them; what failed there is not tried again.

    Raises: AceError(BAD_INPUT or USER_CODE) if the model does not run; AceError(RECIPE) for dimensions that do not
        exist; AceError(NOT_CAPTURED) with one problem per cause if no method gave a graph that equals eager; Cancelled.
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
        attempts = CaptureAttempts(run_reference(loaded.module, examples, recipe, reporter), reporter)
        accepted = capture_in_order(attempts, rungs_done)
    findings = accepted.findings if held is None else held.explained(accepted.findings)
    captured = accepted.model(
        table=accepted.table,
        inputs=findings,
        example=attempts.reference.tracing,
        examples=(*examples, *accepted.unseen),
        unseen=accepted.unseen,
        module=loaded.module,
        device=device,
        fingerprint=fingerprint,
    )
    report = CaptureReport(
        rung=accepted.rung,
        ops=accepted.table.op_count,
        seconds=time.monotonic() - started,
        rungs=tuple(attempts.outcomes),
        warnings=tuple(reporter.warnings),
        inputs=findings,
    )
    report = accepted.described(report)
    if cache is not None and isinstance(captured, CapturedModel):
        cache.keep(captured, report)
    return captured, report


def capture_fingerprint(loaded: LoadedModel, recipe: Recipe, device: torch.device) -> str:
    """SHA-256 of everything that the captured graph depends on: model, inputs, capture methods, torch, device."""
    own = loaded.sha256 or f"{loaded.module!r}{content_digest(loaded.module, ())}"
    digest = hashlib.sha256(own.encode("utf-8", "surrogateescape"))
    # These change what is told, and how fast, not the graph.
    capture = msgspec.structs.replace(recipe.capture, compare_rungs=False, cache=True)
    for part in (recipe.model, recipe.inputs, capture):
        digest.update(msgspec.json.encode(part, order="deterministic"))
    digest.update(f"{torch.__version__} {device.type}".encode())
    return digest.hexdigest()
