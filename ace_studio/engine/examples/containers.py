"""Registers containers that torch takes for one plain value, so that the tensors in them are found.

torch sees into lists, tuples, dictionaries and named tuples by itself. The table below has the other containers that
models are called with and return: dataclasses, classes of attrs, namespaces, subclasses of dictionaries, and any other
object whose attributes hold tensors. transformers registers its growing cache itself, when asked to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import types
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class _Kind:
    """One kind of container."""

    fits: Callable[[Any], bool]
    items: Callable[[Any], dict[Any, Any]]
    """Its items by name, in order."""
    make: Callable[[type, dict[Any, Any]], Any]
    """Makes an object of the same class that holds other values."""
    key: Callable[[Any], Any]
    """The path entry of an item: by attribute or by key."""


def register_containers(value: object) -> bool:
    """Register the class of every container in ``value`` that torch does not see into, nested ones included.

    A class whose objects cannot be rebuilt from their items stays as it is.

    Returns: Whether any class was registered.
    """
    _name_items_of_libraries()
    is_new = False
    for leaf in pytree.tree_leaves(value):
        is_new = _registered_by_library(leaf) or is_new
        kind = next((one for one in _KINDS if one.fits(leaf)), None)
        if kind is not None and type(leaf) not in pytree.SUPPORTED_NODES and _is_remade(leaf, kind):
            _register(type(leaf), kind)
            is_new = True
    return is_new and (register_containers(value) or True)


def _name_items_of_libraries() -> None:
    """Name the items of the classes that libraries registered without names, by their keys or by their positions.

    torch refuses to tell the paths of their tensors otherwise; all results of diffusers are such classes.
    """
    for cls, node in list(pytree.SUPPORTED_NODES.items()):
        if node.flatten_with_keys_fn is None:
            keyed = partial(_keyed, node.flatten_fn)
            pytree.SUPPORTED_NODES[cls] = node._replace(flatten_with_keys_fn=keyed)


def _keyed(flatten: Callable[[Any], tuple[list[Any], Any]], value: Any) -> tuple[list[tuple[Any, Any]], Any]:
    items, context = flatten(value)
    is_named = isinstance(value, Mapping) and len(value) == len(items)
    keys = [pytree.MappingKey(key) for key in value] if is_named else map(pytree.SequenceKey, range(len(items)))
    return list(zip(keys, items, strict=True)), context


def _registered_by_library(value: object) -> bool:
    """Have transformers register the class of its growing cache. Whether it did."""
    cls = type(value)
    if (
        cls.__name__ != "DynamicCache"
        or not cls.__module__.startswith("transformers.")
        or cls in pytree.SUPPORTED_NODES
    ):
        return False
    with contextlib.suppress(Exception):  # another release, or a package that it needs is broken
        executorch = importlib.import_module("transformers.integrations.executorch")
        executorch.register_dynamic_cache_export_support()
        pytree.tree_flatten(value)  # it refuses layers of other kinds
        return cls in pytree.SUPPORTED_NODES
    return False


def map_opened(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change(leaf)`` for every leaf, and a list in place of every registered container.

    ``torch.export`` takes ``dynamic_shapes`` in this form.
    """

    def is_own(part: Any) -> bool:
        return type(part) in pytree.SUPPORTED_NODES and type(part) not in pytree.BUILTIN_TYPES

    def opened(part: Any) -> Any:
        if not is_own(part):
            return change(part)
        return [map_opened(child, change) for child in pytree.SUPPORTED_NODES[type(part)].flatten_fn(part)[0]]

    return pytree.tree_map(opened, value, is_leaf=is_own)


def _is_remade(value: Any, kind: _Kind) -> bool:
    """Whether taking the container apart and putting it together gives the same values again."""
    with contextlib.suppress(Exception):  # the constructor of a user's class may raise anything
        before = kind.items(value)
        after = kind.items(kind.make(type(value), before))
        return list(before) == list(after) and all(before[name] is after[name] for name in before)
    return False


class _Names(list[Any]):
    """Names of an object's items, and its other attributes, which a rebuilt object shares.

    torch compares and saves it as the list of names that it is.
    """

    others: Mapping[str, Any] = types.MappingProxyType({})

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        return list, (list(self),)  # the other attributes may be anything, also what cannot be saved

    def __deepcopy__(self, memo: object) -> _Names:
        return self


def _register(cls: type, kind: _Kind) -> None:
    samples: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    """Names -> the other attributes of an object with them, for names that were saved and read again."""

    def flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], _Names]:
        items = kind.items(value)
        if kind is _OBJECT:
            items = {name: item for name, item in items.items() if _holds_tensor(item)}
        names = _Names(items)
        names.others = _other_attributes(value, items)
        samples.setdefault(tuple(names), names.others)
        return [(kind.key(name), item) for name, item in items.items()], names

    def flatten(value: Any) -> tuple[list[Any], _Names]:
        keyed, names = flatten_with_keys(value)
        return [item for _, item in keyed], names

    def unflatten(values: Any, names: list[Any]) -> Any:
        made = kind.make(cls, dict(zip(names, values, strict=True)))
        others = names.others if isinstance(names, _Names) else samples.get(tuple(names), {})
        for name, item in others.items():
            object.__setattr__(made, name, item)
        return made

    pytree.register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        flatten_with_keys_fn=flatten_with_keys,
    )


def _fields(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if hasattr(value, one.name)}


def _attrs(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in value.__attrs_attrs__}


def _other_attributes(value: Any, items: Mapping[Any, Any]) -> dict[str, Any]:
    """Those that are no items and hold no tensor, and that no property computed: dictionaries may have some too."""
    own = {"data"} if isinstance(value, UserDict) else set()
    return {
        name: item
        for name, item in _attributes(value).items()
        if name not in own | items.keys()
        and not _holds_tensor(item)
        and not isinstance(getattr(type(value), name, None), cached_property)
    }


def _without_init(cls: type, items: dict[str, Any]) -> Any:
    """An object with these attributes, made without ``__init__``, which may check or convert its arguments."""
    made: Any = object.__new__(cls)
    for name, item in items.items():
        object.__setattr__(made, name, item)
    return made


def _from_dict(cls: Any, items: dict[Any, Any]) -> Any:
    return cls(items)


def _attributes(value: Any) -> dict[str, Any]:
    """Those in ``__slots__`` and in ``__dict__``."""
    slots = [name for cls in type(value).__mro__ for name in _slot_names(cls)]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})


def _slot_names(cls: type) -> list[str]:
    names = cls.__dict__.get("__slots__", ())
    names = (names,) if isinstance(names, str) else names
    return [name for name in names if name not in ("__dict__", "__weakref__")]


_NO_CONTAINERS = (Tensor, nn.Module, torch.Generator, type, types.ModuleType, types.FunctionType, types.MethodType)


def _is_plain_object(value: Any) -> bool:
    """Whether it is an object of a class written in Python that holds a tensor somewhere."""
    if isinstance(value, _NO_CONTAINERS) or type(value).__module__.partition(".")[0] in ("builtins", "torch", "numpy"):
        return False
    return _holds_tensor(value)


def _holds_tensor(value: Any, depth: int = 4) -> bool:
    if isinstance(value, Tensor):
        return True
    if depth == 0 or isinstance(value, _NO_CONTAINERS):
        return False
    is_sequence = isinstance(value, list | tuple | set)
    items = list(value) if is_sequence else [*dict(value).values()] if isinstance(value, Mapping) else []
    own = type(value).__module__ != "builtins" and not is_sequence
    return any(_holds_tensor(one, depth - 1) for one in (*items, *(_attributes(value).values() if own else ())))


_OBJECT = _Kind(_is_plain_object, _attributes, _without_init, pytree.GetAttrKey)
"""Attributes that hold no tensor are no items: they may be anything, and a rebuilt object shares them."""

_KINDS = (
    _Kind(
        lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type),
        _fields,
        _without_init,
        pytree.GetAttrKey,
    ),
    _Kind(lambda value: hasattr(type(value), "__attrs_attrs__"), _attrs, _without_init, pytree.GetAttrKey),
    _Kind(
        lambda value: isinstance(value, types.SimpleNamespace),
        lambda value: dict(vars(value)),
        lambda cls, items: cls(**items),
        pytree.GetAttrKey,
    ),
    _Kind(
        lambda value: isinstance(value, dict | UserDict) or (isinstance(value, Mapping) and bool(value)),
        dict,
        _from_dict,
        pytree.MappingKey,
    ),
    _OBJECT,
)
"""The first one that fits counts."""


def held_items(value: object) -> dict[Any, Any] | None:
    """The items of a container of the table above, by name; None if ``value`` is none of them."""
    kind = next((one for one in _KINDS if one.fits(value)), None)
    return None if kind is None else dict(kind.items(value))
