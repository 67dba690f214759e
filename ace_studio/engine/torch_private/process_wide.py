"""What torch keeps for the whole process, and has no public way to ask for."""

from typing import Any

import torch
from torch.nn.modules import module as modules

_HOOKS = tuple(
    table for name, table in vars(modules).items() if name.startswith("_global_") and isinstance(table, dict)
)
"""Hooks that every module calls."""


def global_hooks() -> list[dict[Any, Any]]:
    """The hooks that every module calls, by kind."""
    return [dict(table) for table in _HOOKS]


def set_global_hooks(hooks: list[dict[Any, Any]]) -> None:
    """Make these the hooks that every module calls."""
    for table, kept in zip(_HOOKS, hooks, strict=True):
        table.clear()
        table.update(kept)


def modes_entered() -> tuple[int, int]:
    """How many modes change every call of torch: those of functions, and those of dispatch."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
