"""Products of 8-bit integers as a GPU computes them, for programs that are run on a processor here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class ExactProducts(TorchDispatchMode):
    """Computes ``aten._int_mm`` in 32 bits; the kernel of a processor without VNNI adds in 16, which saturates."""

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator."""
        if func is torch.ops.aten._int_mm.default:
            return args[0].int() @ args[1].int()
        return func(*args, **(kwargs or {}))
