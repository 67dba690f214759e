"""Embedding bags written as a lookup and a reduction, which every runtime computes and in 8 bits too."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ace_studio.engine.replaced import replaced_attribute

_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda rows: rows.sum(1),
    "mean": lambda rows: rows.mean(1),
    "max": lambda rows: rows.amax(1),
}
_embedding_bag = functional.embedding_bag


@contextlib.contextmanager
def embedding_bags_as_lookups() -> Iterator[None]:
    """Trace ``embedding_bag`` as ``embedding`` and a sum, mean or maximum.

    ONNX's exporter writes the operator as a loop over the bags, which OpenVINO refuses if sizes are dynamic, and which
    takes ONNX Runtime 30 times as long (torch 2.13). Bags that leave a row out stay as they are.
    """
    with replaced_attribute(functional, "embedding_bag", _as_lookup):
        yield


def _as_lookup(input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    names = ("offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse", "per_sample_weights",
             "include_last_offset", "padding_idx")  # fmt: skip
    given = dict(zip(names, args, strict=False)) | kwargs
    mode, offsets = given.get("mode", "mean"), given.get("offsets")
    is_plain = given.get("max_norm") is None and given.get("padding_idx") is None
    if mode not in _REDUCTIONS or not is_plain or (input.dim() == 1) != isinstance(offsets, Tensor):
        return _embedding_bag(input, weight, *args, **kwargs)
    rows = functional.embedding(input, weight)
    scales = given.get("per_sample_weights")
    rows = rows if scales is None else rows * scales.unsqueeze(-1)
    if offsets is None:
        return _REDUCTIONS[mode](rows)
    return _reduced(rows, offsets[:-1] if given.get("include_last_offset") else offsets, mode)


def _reduced(rows: Tensor, offsets: Tensor, mode: str) -> Tensor:
    """The rows [n, d] of each bag as one: [bags, d]. Bags begin at the offsets [bags]; an empty one gives zeros.

    ``index_add`` becomes a ``ScatterND`` in ONNX, 11 times as fast as the ``ScatterElements`` of ``scatter_add``.
    """
    bags, n = offsets.shape[0], rows.shape[0]
    begins = torch.zeros(n + 1, dtype=torch.int64, device=rows.device)
    places = begins.index_add(0, offsets.long(), torch.ones_like(offsets, dtype=torch.int64)).cumsum(0)[:-1] - 1
    if mode == "max":
        least = rows.new_full((bags, rows.shape[1]), -torch.inf)
        found = least.scatter_reduce(0, places.unsqueeze(1).expand_as(rows), rows, "amax")
        return torch.where(found == -torch.inf, 0.0, found)
    found = rows.new_zeros((bags, rows.shape[1])).index_add(0, places, rows)
    if mode == "sum":
        return found
    counts = rows.new_zeros(bags).index_add(0, places, rows.new_ones(n))
    return found / counts.clamp(min=1).unsqueeze(1)
