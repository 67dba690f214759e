"""Which operators an operator decomposes into, found by running it once on tensors of the meta device."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ace_studio.engine.torch_private.operators import is_operator
from ace_studio.engine.torch_private.sizes import size_hint

_MOST_LEAVES = 2000
"""A recurrent layer over a long sequence becomes tens of thousands of ops; the first ones are enough to know."""


class _EnoughError(Exception):
    """More operators would add nothing."""


class _Leaves(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Decomposes operators where it can, and records those that it runs as they are."""

    def __init__(self, is_leaf: Callable[[Any], bool], table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._is_leaf = is_leaf
        self._table = table
        self.found: dict[Any, None] = {}
        self._count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._count += 1
        if self._count > _MOST_LEAVES:
            raise _EnoughError
        given = kwargs or {}
        if not self._is_leaf(func):
            with self:
                result = self._decomposed(func, args, given)
            if result is not NotImplemented:
                return result
        self.found[func] = None
        return func(*args, **given)

    def _decomposed(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in self._table:
            return self._table[func](*args, **kwargs)
        return func.decompose(*args, **kwargs)  # the dispatcher's decomposition; NotImplemented if there is none


def leaf_operators(
    node: fx.Node, table: Mapping[Any, Callable[..., Any]], *, is_leaf: Callable[[Any], bool]
) -> tuple[Any, ...] | None:
    """The operators that a node's operator decomposes into.

    Args:
        node: A call of an operator, with values of the trace in its ``meta``.
        table: Operator -> its decomposition.
        is_leaf: Whether an operator stays as it is although the table has it.

    Returns: The operators in the order of their first call; None if it cannot run without values.
    """
    if not is_operator(node.target):
        return None
    target: Any = node.target
    args, kwargs = pytree.tree_map(_as_meta, (node.args, dict(node.kwargs)))
    mode = _Leaves(is_leaf, table)
    try:
        with torch.no_grad(), mode:
            if (target in table and table[target](*args, **kwargs) is NotImplemented) or target not in table:
                target(*args, **kwargs)
    except _EnoughError:
        pass
    except Exception:  # noqa: BLE001 - a decomposition may ask for values, and then fails in any way
        return None
    return tuple(mode.found)


def _as_meta(value: Any) -> Any:
    """A node's traced value on the meta device, with plain sizes."""
    if isinstance(value, fx.Node):
        return pytree.tree_map(_as_meta, value.meta.get("val"))
    if isinstance(value, Tensor):
        shape = [size_hint(size) for size in value.shape]
        return torch.empty(shape, dtype=value.dtype, device="meta")
    if isinstance(value, torch.SymInt):
        return size_hint(value)
    if isinstance(value, torch.SymFloat | torch.SymBool):
        return 1.0 if isinstance(value, torch.SymFloat) else True
    return torch.device("meta") if isinstance(value, torch.device) else value
