"""Results that are dataclasses: torch sees into them only if the class is registered, so it is."""

from __future__ import annotations

import contextlib
import dataclasses

import torch
from torch.utils import _pytree as pytree


def register_dataclasses(value: object) -> bool:
    """Register the class of every dataclass in ``value``, nested ones included; whether there was any to register.

    A class that torch cannot register (fields without init) stays as it is.
    """
    is_new = False
    kinds = {type(leaf) for leaf in pytree.tree_leaves(value) if dataclasses.is_dataclass(leaf)} - {type}
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        with contextlib.suppress(ValueError, TypeError):
            torch.export.register_dataclass(kind)
            is_new = True
    return is_new and (register_dataclasses(value) or True)
