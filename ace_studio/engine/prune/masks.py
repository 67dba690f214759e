"""Masks of single weights: the largest of the whole model stay, or N of every M neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ace_studio.engine.prune.layers import input_dim


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
        keep[path] = _n_of_m(scores[path], dim=dim, keep_count=keep_count, group=group)
    return Masks(keep=keep, kept=kept)


def _n_of_m(scores: Tensor, *, dim: int, keep_count: int, group: int) -> Tensor:
    last = scores.movedim(dim, -1)
    groups = last.reshape(-1, group)
    chosen = groups.topk(keep_count, dim=1).indices
    mask = torch.zeros(groups.shape, dtype=torch.bool, device=scores.device).scatter_(1, chosen, True)
    return mask.reshape(last.shape).movedim(-1, dim)


def apply_mask(layer: nn.Module, mask: Tensor) -> None:
    """Set the weights outside of the mask to zero, in place."""
    with torch.no_grad():
        layer.weight.mul_(mask)  # type: ignore[operator]
