"""Bags of equal length written as a lookup and a reduction, which every runtime computes and in 8 bits too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

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
    """Trace ``embedding_bag`` of indices [bags, length] as ``embedding`` and a sum, mean or maximum.

    ONNX's exporter writes the operator as a loop, which ONNX Runtime and OpenVINO refuse if the sizes are dynamic
    (torch 2.13). Bags of different lengths, and those that leave a row out, stay as they are.
    """
    with replaced_attribute(functional, "embedding_bag", _as_lookup):
        yield


def _as_lookup(input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    names = ("offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse", "per_sample_weights",
             "include_last_offset", "padding_idx")  # fmt: skip
    given = dict(zip(names, args, strict=False)) | kwargs
    reduction = _REDUCTIONS.get(given.get("mode", "mean"))
    is_plain = all(given.get(name) is None for name in ("offsets", "max_norm", "padding_idx"))
    if input.dim() != 2 or reduction is None or not is_plain:
        return _embedding_bag(input, weight, *args, **kwargs)
    rows = functional.embedding(input, weight)
    scales = given.get("per_sample_weights")
    return reduction(rows if scales is None else rows * scales.unsqueeze(-1))
