"""Pruning from choice to report: a pruned copy, the masks that training must keep, and a row per layer."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example, pooled_outputs, tensor_leaves
from ace_studio.engine.progress import Reporter
from ace_studio.engine.prune.importance import TaylorData, accumulate_gradients, weight_scores
from ace_studio.engine.prune.layers import Layers, count_macs, find_layers, input_dim, layer_bytes, weight_shape
from ace_studio.engine.prune.structured import StructuredJob, prune_channels, require_library
from ace_studio.engine.quantize.fidelity import measured_sqnr_db
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import Importance, PruneChoice, PruneMethod
from ace_studio.records.results.pruning import KeptLayer, PrunedLayer, PruningReport

COUPLED = "its channels are coupled with channels of layers that are not pruned"
LAYERS_ALONE = 64
"""The effect of pruning each layer alone is measured for at most so many layers."""


@dataclass(frozen=True)
class PruneJob:
    """What to prune and how."""

    module: nn.Module
    """In eval mode, on the device of the examples; it stays as it is."""
    choice: PruneChoice
    examples: Sequence[Example]
    reporter: Reporter
    taylor: TaylorData | None = None
    """For ``importance = "taylor"``."""
    layer_effects: bool = True
    """Whether the effect of each layer alone is measured (not for structured pruning, whose layers go together)."""


@dataclass(frozen=True)
class Pruned:
    """The result of a pruning."""

    module: nn.Module
    masks: Mapping[str, Tensor]
    """Name of a parameter of ``module`` -> what of it stays; empty for structured pruning."""
    report: PruningReport


@dataclass
class _Outcome:
    module: nn.Module
    kept: Mapping[str, str]
    masks: dict[str, Tensor] = field(default_factory=dict)
    """By path of the layer."""


@dataclass(frozen=True)
class _Method:
    """One method of pruning, and what it does for speed."""

    prune: Callable[[PruneJob, nn.Module, Layers], _Outcome]
    speed: str
    needs_library: bool = False


def prune_module(job: PruneJob) -> Pruned:
    """Prune a copy of the module.

    Raises: AceError(NOT_FOUND) for an ``ignore`` that matches nothing; AceError(UNSUPPORTED) if there is nothing
        to prune, or no channel can be followed, or the module cannot be copied; AceError(NOT_INSTALLED) without
        torch-pruning; AceError(NO_DATA) for ``taylor`` without data.
    """
    started = time.monotonic()
    method = _METHODS[job.choice.method]
    if method.needs_library:
        require_library()
    job.reporter.phase(Phase.PRUNE, str(job.choice.method))
    module = _copied(job.module)
    layers = find_layers(module, job.choice.ignore)
    if job.choice.importance is Importance.TAYLOR:
        _take_gradients(job, module)
    outcome = method.prune(job, module, layers)
    outcome.module.zero_grad(set_to_none=True)
    _check_something_went(job, outcome)
    for one, other in zip(outcome.module.parameters(), job.module.parameters(), strict=True):
        one.requires_grad_(other.requires_grad)
    report = _report(job, layers, outcome, speed=method.speed, started=started)
    masks = {f"{path}.weight" if path else "weight": mask for path, mask in outcome.masks.items()}
    return Pruned(module=outcome.module, masks=masks, report=report)


def _copied(module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module)
    except Exception as error:  # the user's own __deepcopy__ may raise anything
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "The model cannot be copied, so it cannot be pruned",
            why=f"{type(error).__name__}: {str(error)[:200]}",
            remedy="Keep out of the module what copy.deepcopy cannot copy (locks, open files, tensors with a history).",
            where="[prune]",
        ) from error


def _take_gradients(job: PruneJob, module: nn.Module) -> None:
    if job.taylor is None:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "Importance by gradients needs data",
            why='importance = "taylor" takes gradients of the outputs on example inputs, and there are none',
            remedy='Name [calibration] inputs or [finetune] data, or take importance = "magnitude".',
            where="[prune] importance",
        )
    accumulate_gradients(module, job.taylor, reporter=job.reporter)


def _unstructured(job: PruneJob, module: nn.Module, layers: Layers) -> _Outcome:
    return _masked(module, layers, global_masks(weight_scores(layers.prunable), amount=job.choice.amount))


def _n_of_m(job: PruneJob, module: nn.Module, layers: Layers) -> _Outcome:
    scores = weight_scores(layers.prunable)
    return _masked(module, layers, n_of_m_masks(layers.prunable, scores, pattern=job.choice.pattern))


def _masked(module: nn.Module, layers: Layers, masks: Masks) -> _Outcome:
    for path, mask in masks.keep.items():
        apply_mask(layers.prunable[path], mask)
    return _Outcome(module, {**layers.kept, **masks.kept}, dict(masks.keep))


def _structured(job: PruneJob, module: nn.Module, layers: Layers) -> _Outcome:
    pruned, kept = prune_channels(
        StructuredJob(
            module=module,
            layers=layers.prunable,
            kept=layers.kept,
            amount=job.choice.amount,
            round_to=job.choice.round_to,
            is_taylor=job.choice.importance is Importance.TAYLOR,
            examples=job.examples,
            reporter=job.reporter,
        )
    )
    return _Outcome(pruned, kept)


_METHODS: dict[PruneMethod, _Method] = {
    PruneMethod.UNSTRUCTURED: _Method(
        _unstructured,
        "No runtime here is faster for single zero weights: latency and size stay, only a zipped file is smaller.",
    ),
    PruneMethod.N_M: _Method(_n_of_m, "Sparse tensor cores of a GPU are faster at 2:4; no runtime here is on a CPU."),
    PruneMethod.STRUCTURED: _Method(
        _structured, "The tensors are smaller: every runtime computes less and moves fewer bytes.", needs_library=True
    ),
}


def _check_something_went(job: PruneJob, outcome: _Outcome) -> None:
    before = sum(one.numel() for one in job.module.parameters())
    after = sum(one.numel() for one in outcome.module.parameters())
    if after < before or any(not bool(mask.all()) for mask in outcome.masks.values()):
        return
    kept = "; ".join(f"{path} ({why})" for path, why in list(outcome.kept.items())[:4])
    small = f"no layer is wide enough for its channels to be cut to a multiple of {job.choice.round_to}"
    raise AceError.of(
        ErrorCode.UNSUPPORTED,
        "Nothing was pruned",
        why=kept or (small if job.choice.method is PruneMethod.STRUCTURED else "the amount is less than one weight"),
        remedy="Raise amount, lower round_to, or ignore fewer layers.",
        where="[prune] amount",
    )


def _report(job: PruneJob, layers: Layers, outcome: _Outcome, *, speed: str, started: float) -> PruningReport:
    choice, example = job.choice, job.examples[0]
    every = {path: job.module.get_submodule(path) for path in (*layers.prunable, *layers.kept)}
    after = {path: outcome.module.get_submodule(path) for path in every}
    macs_before, macs_after = (count_macs(job.module, every, example), count_macs(outcome.module, after, example))
    alone = _effects_alone(job, outcome)
    rows = tuple(
        _layer_report(path, every[path], after[path], (macs_before[path], macs_after[path]), alone.get(path))
        for path in every
        if _has_changed(every[path], after[path])
    )
    changed = {row.module for row in rows}
    return PruningReport(
        method=str(choice.method),
        amount=choice.amount,
        pattern=choice.pattern if choice.method is PruneMethod.N_M else "",
        importance=str(choice.importance),
        layers=rows,
        kept=tuple(
            KeptLayer(module=path, reason=outcome.kept.get(path, COUPLED)) for path in every if path not in changed
        ),
        parameters_before=_parameters(job.module),
        parameters_after=_parameters(outcome.module) - sum(int((~mask).sum()) for mask in outcome.masks.values()),
        macs_before=sum(macs_before.values()),
        macs_after=sum(macs_after.values()),
        bytes_before=_state_bytes(job.module),
        bytes_after=_state_bytes(outcome.module),
        sqnr_db=_fidelity(job.module, outcome.module, job.examples),
        speed=speed,
        seconds=time.monotonic() - started,
    )


def _has_changed(before: nn.Module, after: nn.Module) -> bool:
    one, other = _weight(before), _weight(after)
    return one.shape != other.shape or not torch.equal(one, other)


def _layer_report(
    path: str, before: nn.Module, after: nn.Module, macs: tuple[int, int], alone_db: float | None
) -> PrunedLayer:
    return PrunedLayer(
        module=path,
        type=type(before).__name__,
        shape_before=weight_shape(_weight(before)),
        shape_after=weight_shape(_weight(after)),
        weights_before=_weight(before).numel(),
        weights_after=int(_weight(after).count_nonzero()),
        macs_before=macs[0],
        macs_after=macs[1],
        bytes_before=layer_bytes(before),
        bytes_after=layer_bytes(after),
        sqnr_db=alone_db,
    )


def _effects_alone(job: PruneJob, outcome: _Outcome) -> dict[str, float]:
    """Fidelity with only one layer masked, of each layer that has a mask, on the first example."""
    if not job.layer_effects or not 0 < len(outcome.masks) <= LAYERS_ALONE:
        return {}
    module, example, effects = _copied(job.module), job.examples[:1], {}
    for index, (path, mask) in enumerate(outcome.masks.items()):
        job.reporter.advance(index / len(outcome.masks), f"the effect of {path} alone")
        layer = module.get_submodule(path)
        whole = _weight(layer).detach().clone()
        apply_mask(layer, mask)
        effects[path] = _fidelity(job.module, module, example)
        with torch.no_grad():
            _weight(layer).copy_(whole)
    return effects


def _fidelity(reference: nn.Module, module: nn.Module, examples: Sequence[Example]) -> float:
    """SQNR over all examples together, the worst output's, dB."""
    with torch.no_grad():
        wanted, given = (
            pooled_outputs([tensor_leaves(example.copied().call(one)) for example in examples])
            for one in (reference, module)
        )
    return round(measured_sqnr_db(wanted, given), 3)


def _weight(layer: nn.Module) -> Tensor:
    weight: Tensor = layer.weight  # type: ignore[assignment]
    return weight


def _parameters(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())


def _state_bytes(module: nn.Module) -> int:
    return sum(one.numel() * one.element_size() for one in module.state_dict().values() if isinstance(one, Tensor))


@dataclass(frozen=True)
class Masks:
    """What stays of each layer's weight."""

    keep: Mapping[str, Tensor]
    """Path of the layer -> bool, the weight's shape."""
    kept: Mapping[str, str]
    """Layers that stay whole -> why."""


def global_masks(scores: Mapping[str, Tensor], *, amount: float) -> Masks:
    """Remove the given fraction of all weights: those with the lowest scores of the whole model.

    Exactly ``round(amount * count)`` weights go; of equal scores the later ones stay.
    """
    everything = torch.cat([one.flatten() for one in scores.values()])
    goes = _lowest(everything, round(amount * everything.numel()))
    masks, start = {}, 0
    for path, one in scores.items():
        masks[path] = ~goes[start : start + one.numel()].reshape(one.shape)
        start += one.numel()
    return Masks(keep=masks, kept={})


def _lowest(scores: Tensor, count: int) -> Tensor:
    """Which of the scores are the ``count`` lowest; without sorting them all, which takes ten times the memory."""
    if count == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    bound = scores.kthvalue(count).values
    chosen = scores < bound
    equal = (scores == bound).nonzero().flatten()
    chosen[equal[: count - int(chosen.sum())]] = True
    return chosen


def n_of_m_masks(layers: Mapping[str, nn.Module], scores: Mapping[str, Tensor], *, pattern: str) -> Masks:
    """Keep the N highest scores of every M neighbours along the input dimension.

    Source: Mishra et al. 2021, arXiv:2104.08378 (2:4). A layer whose inputs are no multiple of M stays whole.
    """
    keep_count, group = (int(part) for part in pattern.split(":"))
    keep: dict[str, Tensor] = {}
    kept: dict[str, str] = {}
    for path, layer in layers.items():
        dim = input_dim(layer)
        inputs = scores[path].shape[dim]
        if inputs % group:
            kept[path] = f"its {inputs} inputs are no multiple of {group}"
            continue
        keep[path] = _kept_of_group(scores[path], dim=dim, keep_count=keep_count, group=group)
    return Masks(keep=keep, kept=kept)


def _kept_of_group(scores: Tensor, *, dim: int, keep_count: int, group: int) -> Tensor:
    last = scores.movedim(dim, -1)
    groups = last.reshape(-1, group)
    chosen = groups.topk(keep_count, dim=1).indices
    mask = torch.zeros(groups.shape, dtype=torch.bool, device=scores.device).scatter_(1, chosen, True)
    return mask.reshape(last.shape).movedim(-1, dim)


def apply_mask(layer: nn.Module, mask: Tensor) -> None:
    """Set the weights outside of the mask to zero, in place."""
    with torch.no_grad():
        layer.weight.mul_(mask)  # type: ignore[operator]
