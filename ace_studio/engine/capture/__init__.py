"""Capturing a model's graph: capture methods are tried in order, and a graph counts only if it equals eager."""

import hashlib
import time
from collections.abc import Sequence

import msgspec
import torch
from torch import Tensor

from ace_studio.engine.capture.attempts import CaptureAttempts, WholeCapture
from ace_studio.engine.capture.batch_only import batch_only
from ace_studio.engine.capture.cache import CaptureCache
from ace_studio.engine.capture.cache_key import content_digest
from ace_studio.engine.capture.in_order import capture_in_order
from ace_studio.engine.capture.reference import EagerReference, run_reference
from ace_studio.engine.capture.verify import counting_attributes, difference, is_varying, quoted
from ace_studio.engine.flow import AnyCapture, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.torch_private.functional import keep_first_state
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import CaptureAttempt, CaptureReport
from ace_studio.records.tensors import InputFinding, memory_limits


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
        keep_first_state(found[0].program)
        return found
    with torch.no_grad():
        attempts = CaptureAttempts(run_reference(loaded.module, examples, recipe, reporter), reporter)
        accepted = capture_in_order(attempts, rungs_done)
        findings = accepted.findings
        if isinstance(accepted, WholeCapture):
            findings = with_layouts(findings, attempts.reference, reporter)
        elif counting := counting_attributes(attempts.reference.eager, attempts.reference.tracing):
            reporter.warn(
                "changing-attribute",
                f"forward() changes the plain attribute {quoted(counting)}, and the results of equal calls with it: "
                "the subgraphs can be looked at, but no artifact can hold a model that begins elsewhere at every call",
            )
    findings = findings if held is None else held.explained(findings)
    captured = accepted.model(
        table=accepted.table,
        inputs=findings,
        example=attempts.reference.tracing,
        examples=(*examples, *accepted.unseen),
        unseen=accepted.unseen,
        module=loaded.module,
        device=device,
        fingerprint=fingerprint,
        first_state=attempts.reference.eager.first_values(),
    )
    report = CaptureReport(
        rung=accepted.rung,
        ops=accepted.table.op_count,
        seconds=time.monotonic() - started,
        fingerprint=fingerprint,
        rungs=tuple(attempts.outcomes),
        warnings=tuple(reporter.warnings),
        inputs=findings,
    )
    report = accepted.described(report)
    if cache is not None and captured.is_whole:
        cache.keep(captured, report)
    for graph in captured.graphs():
        keep_first_state(graph.captured.program)
    return captured, report


def capture_fingerprint(loaded: LoadedModel, recipe: Recipe, device: torch.device) -> str:
    """SHA-256 of everything that the captured graph depends on: model, inputs, capture methods, torch, device."""
    own = loaded.sha256 or f"{loaded.module!r}{content_digest(loaded.module, ())}"
    digest = hashlib.sha256(own.encode("utf-8", "surrogateescape"))
    # These change what is reported, and how fast, not the graph.
    capture = msgspec.structs.replace(recipe.capture, compare_rungs=False, cache=True)
    for part in (recipe.model, recipe.inputs, capture):
        digest.update(msgspec.json.encode(part, order="deterministic"))
    digest.update(f"{torch.__version__} {device.type}".encode())
    return digest.hexdigest()


def refuse_counting(report: CaptureReport) -> None:
    """Refuse to build a model that no artifact could hold. Raises: AceError(NOT_CAPTURED), naming the attribute."""
    for one in report.warnings:
        if one.code == "changing-attribute":
            remedy = "Keep it as a registered buffer and update it in place, or pass it in and return it."
            what, _, why = one.what.partition(": ")
            raise AceError.of(ErrorCode.NOT_CAPTURED, what, why=why, remedy=remedy)


_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def with_layouts(
    findings: Sequence[InputFinding], reference: EagerReference, reporter: Reporter
) -> tuple[InputFinding, ...]:
    """The findings, with the memory order of each input for which forward does something else in another order.

    Equal numbers in another order are run once in eager, and once per input if the results differ.
    """
    example, eager = reference.tracing, reference.eager
    leaves = example.tensors()
    others = [_laid_out_otherwise(leaf) for leaf in leaves]
    orders = [_memory_order(leaf) for leaf in leaves]
    movable = [at for at, leaf in enumerate(leaves) if others[at] is not leaf and orders[at]]
    expected = eager.output(example) if movable else None

    def differs(places: Sequence[int]) -> bool:
        changed = {id(leaves[at]): others[at] for at in places}
        result = eager.output_if_accepted(example.map_tensors(lambda leaf: changed.get(id(leaf), leaf)))
        return result is not None and bool(difference(expected, result))

    if not movable or not differs(movable) or is_varying(eager, example):
        return tuple(findings)
    bound = [at for at in movable if differs([at])] or movable
    if any(_memory_order(one.tensors()[at]) != orders[at] for one in reference.examples for at in bound):
        return tuple(findings)  # the graph was proven in several orders
    found = tuple(
        msgspec.structs.replace(one, memory_order=orders[at]) if at in bound else one for at, one in enumerate(findings)
    )
    for limit in memory_limits(found):
        reporter.warn(
            "memory-layout",
            f"forward computes something else when {limit.name} lies in memory in another order; the graph holds for "
            f"this one: {limit.words}. result.module and the code that opens an artifact refuse other inputs; the "
            "artifact alone cannot",
            where=limit.name,
        )
    return found


def _memory_order(tensor: Tensor) -> tuple[int, ...]:
    """Dimensions from the slowest to the fastest in memory; empty for a tensor with gaps or overlaps."""
    if tensor.layout is not torch.strided:
        return ()
    straight = tuple(range(tensor.dim()))
    order = straight if tensor.is_contiguous() else tuple(sorted(straight, key=tensor.stride, reverse=True))
    return order if tensor.permute(order).is_contiguous() else ()


def _laid_out_otherwise(tensor: Tensor) -> Tensor:
    """Equal numbers in another order of memory; the tensor itself if it has only one."""
    if tensor.layout is not torch.strided or sum(size > 1 for size in tensor.shape) < 2:
        return tensor
    if not tensor.is_contiguous():
        return tensor.contiguous()
    last = tensor.contiguous(memory_format=_CHANNELS_LAST.get(tensor.dim(), torch.contiguous_format))
    if not last.is_contiguous():
        return last
    one, other = [dim for dim, size in enumerate(tensor.shape) if size > 1][-2:]
    return tensor.transpose(one, other).contiguous().transpose(one, other)
