"""The operators that torch's ONNX exporter can translate, from its private registry, and our own translations."""

import copy
import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

import torch

from ace_studio.engine.quiet import hushed
from ace_studio.engine.replaced import replaced_attribute


@dataclass(frozen=True)
class OnnxTranslations:
    """The exporter's tables."""

    registry: Any
    decompositions: Mapping[Any, Callable[..., Any]]
    """Operators that are decomposed first -> their decomposition."""
    own: Mapping[Any, Callable[..., Any]]
    """Operators that are translated by a function of ours."""

    def has(self, target: Any) -> bool:
        """Whether the exporter translates the operator directly."""
        return bool(self.registry.is_registered(target))

    def onnx_ops(self, target: Any) -> frozenset[str]:
        """The ONNX operators in the translations of ``target``; empty if they are unknown."""
        found: set[str] = set()
        for one in self.registry.get_decomps(target):
            nodes = getattr(one.onnx_function, "function_ir", ())
            found |= {str(node.op_type) for node in nodes}
        return frozenset(found)


_made = lru_cache(maxsize=1)(lambda make, _operators, **options: make(**options))


def registry_made_once() -> AbstractContextManager[None]:
    """While the block runs, the exporter copies its registry, which it makes anew for each model in half its time.

    It is made again where operators came since: those of torchvision are in it only if they are there.
    """
    kind = importlib.import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
    make = kind.from_torchlib

    def copied(**options: Any) -> Any:
        operators = len(torch._C._dispatch_get_all_op_names())
        registry = copy.copy(_made(make, operators, **options))
        registry.functions = {name: [*found] for name, found in registry.functions.items()}
        return registry

    return replaced_attribute(kind, "from_torchlib", staticmethod(copied))


def operators_found_once() -> AbstractContextManager[None]:
    """While the block runs, torch looks for composite operators once, not for each of its thirty namespaces."""
    utils, name = importlib.import_module("torch._export.utils"), "_materialize_cpp_cia_ops"
    return replaced_attribute(utils, name, cache(getattr(utils, name, lambda: None)))


def constants_compared_exactly() -> AbstractContextManager[None]:
    """While the block runs, onnxscript's optimizer takes 0 and 1 for 0 and 1 alone; 1e-10 and 1.000005 pass as well."""
    matcher = importlib.import_module("onnxscript.rewriter._matcher")
    return replaced_attribute(matcher, "math", SimpleNamespace(isclose=lambda one, other, **_: one == other))


@cache
def onnx_translations() -> OnnxTranslations:
    """The exporter's tables; the first call imports them, which takes seconds."""
    with hushed():  # it warns of what its own makers have deprecated, and of packages that are not installed
        registration = importlib.import_module("torch.onnx._internal.exporter._registration")
        decomposing = importlib.import_module("torch.onnx._internal.exporter._decomp")
        own = importlib.import_module("ace_studio.engine.torch_private.onnx_functions").ONNX_FUNCTIONS
        registry = registration.ONNXRegistry.from_torchlib()
        for operator, function in own.items():
            registry.register_op(operator, function)
        known = set(decomposing.get_onnx_implemented_overloads(registry))
        table = decomposing.create_onnx_friendly_decomposition_table(known)
    return OnnxTranslations(registry, table, own)
