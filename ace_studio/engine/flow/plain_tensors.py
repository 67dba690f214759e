"""Refuses tensors that cannot be compared number by number, or that have no numbers at all."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from ace_studio.records.errors import AceError, ErrorCode

_DENSE = "results are compared number by number, and runtimes take and give dense tensors"
_KINDS: dict[str, tuple[Callable[[Tensor], bool], str, str]] = {
    "meta": (
        lambda tensor: tensor.is_meta,
        "a tensor on the meta device has a shape and no numbers",
        'Make it with device="cpu"; weights may also come from a file that [model] weights names.',
    ),
    "nested": (lambda tensor: tensor.is_nested, _DENSE, "Pad it: torch.nested.to_padded_tensor(y, 0.0)."),
    "sparse": (lambda tensor: tensor.layout is not torch.strided, _DENSE, "Make it dense: y.to_dense()."),
    "float8": (
        lambda tensor: tensor.is_floating_point() and tensor.itemsize == 1,
        "torch cannot compare such numbers, and no runtime gives them",
        "Make it float: y.float().",
    ),
}
"""Kind -> how it is recognised, why it is refused, and what to do."""
ALL_KINDS = tuple(_KINDS)
NO_DENSE_NUMBERS = tuple(kind for kind in _KINDS if kind != "float8")


def check_plain(
    tensors: Iterable[tuple[str, Tensor]],
    holder: str,
    *,
    code: ErrorCode,
    kinds: tuple[str, ...] = NO_DENSE_NUMBERS,
    where: str = "",
) -> None:
    """Raise AceError(code) for the first tensor of such a kind; ``holder`` says whose it is (``weights.pt holds``)."""
    for name, tensor in tensors:
        for kind in kinds:
            is_kind, why, remedy = _KINDS[kind]
            if is_kind(tensor):
                shape = "" if tensor.is_nested else f" {'x'.join(map(str, tensor.shape))}"
                what = f"{holder} a {kind} tensor: {name}{shape}"
                raise AceError.of(code, what, why=why, remedy=remedy, where=where)
