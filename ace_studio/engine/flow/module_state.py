"""What a call may change in a module: buffers, plain attributes and hooks, to be put back afterwards."""

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from ace_studio.engine.flow.example import repeats_without_end

_PLAIN_TYPES = (bool, int, float, str, Tensor, list, dict, set, tuple, deque, type(None))


STATE_REMEDY = "Pass the state in and return it, as the other inputs and outputs are."


def changes_buffers(names: Sequence[str]) -> str:
    """What is wrong with a forward that changes these buffers, in the words of every target."""
    return f"The model changes {' and '.join(names[:3])} while it runs"


@contextmanager
def state_put_back(module: nn.Module) -> Iterator[None]:
    """Restore what calls in the block change in the module."""
    state = ModuleState(module)
    try:
        yield
    finally:
        state.restore()


class ModuleState:
    """Buffers, plain attributes and hooks of a module, to restore its state after a call."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._own = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
        self._buffers = {
            path: {name: (buffer, _cloned(buffer)) for name, buffer in child._buffers.items()}
            for path, child in module.named_modules()
        }
        self._names = {path: frozenset(vars(child)) for path, child in module.named_modules()}
        memo = dict(self._own)
        self._plain = {
            (path, name): _copied_state(value, memo)
            for path, child in module.named_modules()
            for name, value in vars(child).items()
            if _is_state(name, value)
        }
        self._hooks = {
            (path, name): frozenset(value)
            for path, child in module.named_modules()
            for name, value in vars(child).items()
            if _is_hooks(name, value)
        }

    def restore(self) -> None:
        """Restore everything, and remove what was added: tracers leave constants in the module."""
        children = dict(self._module.named_modules())
        for path, buffers in self._buffers.items():
            _put_buffers_back(children[path], buffers)
        for path, names in self._names.items():
            for name in vars(children[path]).keys() - names:
                del children[path].__dict__[name]
        # A module may add its hooks at the first call and note that they are there: without the note they must go too.
        for (path, name), keys in self._hooks.items():
            for key in vars(children[path])[name].keys() - keys:
                del vars(children[path])[name][key]
        memo = dict(self._own)
        for (path, name), value in self._plain.items():
            _put_back(children[path].__dict__, name, value, memo)

    def changes(self, *, of: tuple[type, ...] = (object,)) -> list[str]:
        """Names of the plain attributes of these types that differ now or are new (``calls``, ``blocks.1.history``)."""
        children = dict(self._module.named_modules())
        changed = [
            (path, name)
            for (path, name), value in self._plain.items()
            if isinstance(value, of) and not _same(vars(children[path]).get(name), value)
        ]
        changed += [
            (path, name)
            for path, names in self._names.items()
            for name in vars(children[path]).keys() - names
            if isinstance(vars(children[path])[name], of)
        ]
        return [f"{path}.{name}" if path else name for path, name in changed]

    def buffer_changes(self) -> list[str]:
        """Names of the buffers that differ now."""
        children = dict(self._module.named_modules())
        return [
            f"{path}.{name}" if path else name
            for path, buffers in self._buffers.items()
            for name, (_, value) in buffers.items()
            if not _same(children[path]._buffers.get(name), value)
        ]


def _is_hooks(name: str, value: object) -> bool:
    return name.startswith("_") and name.endswith("_hooks") and isinstance(value, dict)


def _is_state(name: str, value: object) -> bool:
    if name.startswith("_") and name.endswith(("_hooks", "_modules", "_parameters", "_buffers", "_with_kwargs")):
        return False
    if name == "training" or not isinstance(value, _PLAIN_TYPES) or repeats_without_end(value):
        return False
    return all(isinstance(leaf, Tensor | bool | int | float | str | None) for leaf in pytree.tree_leaves(value))


def _cloned(buffer: Tensor | None) -> Tensor | None:
    return None if buffer is None or is_lazy(buffer) else buffer.detach().clone()


def _put_buffers_back(child: nn.Module, buffers: dict[str, tuple[Tensor | None, Tensor | None]]) -> None:
    """Restore a module's own buffers (by name: the object and a copy of its values), in place: others may hold them."""
    if not isinstance(child, torch.jit.ScriptModule):  # the buffers of a scripted module cannot be replaced
        child._buffers.clear()
        child._buffers.update({name: buffer for name, (buffer, _) in buffers.items()})
    for buffer, value in buffers.values():
        if buffer is None or value is None or _same(buffer, value):
            continue
        if buffer.shape != value.shape:
            buffer.resize_(value.shape)
        buffer.copy_(value)


def _put_back(attributes: dict[str, Any], name: str, value: Any, memo: dict[int, Any]) -> None:
    """Restore one attribute, in place where it is the same container: others may hold it too."""
    now = attributes.get(name)
    if name in attributes and _same(now, value) and type(now) is type(value):
        return
    before = _copied_state(value, memo)
    if type(now) is type(value) and isinstance(now, list | set | dict):
        now.clear()
        now.extend(before) if isinstance(now, list) else now.update(before)
    else:
        attributes[name] = before


def _copied_state(value: Any, memo: dict[int, Any]) -> Any:
    """A deep copy of a plain attribute. Tensors with a gradient history, which torch cannot copy, are detached.

    ``memo`` holds what has a copy already, by id, and gets the new copies: one memo for all attributes keeps what they
    share. Parameters and buffers in it stay what they are: an LSTM lists its weights.
    """
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, Tensor) and not leaf.is_leaf and id(leaf) not in memo:
            memo[id(leaf)] = leaf.detach().clone()
    return copy.deepcopy(value, memo)


def _same(one: object, other: object) -> bool:
    (ones, first), (others, second) = pytree.tree_flatten(one), pytree.tree_flatten(other)
    return first == second and all(
        torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else type(a) is type(b) and a == b
        for a, b in zip(ones, others, strict=True)
    )
