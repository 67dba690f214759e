"""Tensors inside of nested values, by path: ``0``, ``logits``, ``1.0``; a path stands for every tensor below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree


def tensor_paths(value: object) -> list[tuple[str, Tensor]]:
    """Path and tensor of every tensor leaf, in pytree order. A value that is one tensor has the path ``0``."""
    found, _ = pytree.tree_flatten_with_path(value)
    return [(path_words(path) or "0", leaf) for path, leaf in found if isinstance(leaf, Tensor)]


def positions_below(paths: Sequence[str], path: str) -> list[int]:
    """Indices of the paths that are ``path`` or lie below it."""
    return [index for index, one in enumerate(paths) if one == path or one.startswith(path + ".")]


def path_words(path: Sequence[Any]) -> str:
    """Keys, indices and field names of one path into containers, joined by dots."""
    return ".".join(str(_key(part)) for part in path)


def _key(part: Any) -> Any:
    for attribute in ("key", "idx", "name"):
        if hasattr(part, attribute):
            return getattr(part, attribute)
    return part
