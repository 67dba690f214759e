"""Makes torchvision importable with a torch that its compiled library was not built for.

torchvision describes its operators (``torchvision::nms`` and others) in Python, but declares them in its library. If
the library does not load, as with a CUDA build of torchvision and a CPU build of torch, the import fails, and so does
that of timm and transformers. Only then the operators are declared here, those of detection models with kernels.
"""

import contextlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import torch
from torch import nn

from ace_studio.engine.load.torchvision.kernels import nms, roi_align
from ace_studio.engine.progress import Reporter

_EXTENSION = "torchvision.extension"
"""The module of torchvision that loads the library."""
_SCHEMAS = msgspec.json.decode(Path(__file__).with_name("schemas.json").read_bytes(), type=tuple[str, ...])
"""All operators that torchvision describes on import; each description raises without a declaration."""
_KERNELS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    *(("nms", device, nms) for device in ("CPU", "CUDA")),
    *(("roi_align", device, roi_align) for device in ("CPU", "CUDA")),
    ("_cuda_version", "CompositeImplicitAutograd", lambda: -1),
)
"""Operator, dispatch key and function; -1 is the answer of a library without CUDA."""
_WARNING = (
    "The compiled library of the installed torchvision does not load beside torch {version}. Its operators nms and "
    "roi_align run in Python instead: the results are the same, eager is slower; its other operators do not run"
)


def make_importable() -> None:
    """Make a later ``import torchvision`` work, whether or not its library loads. Fast; may be repeated.

    Nothing is imported now, and nothing is ever declared if the library loads or torchvision is not installed.
    """
    if not any(isinstance(finder, _ExtensionFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ExtensionFinder())
    if "torchvision" not in sys.modules:  # parts left by a failed import would not be loaded again
        for name in [name for name in sys.modules if name.startswith("torchvision.")]:
            del sys.modules[name]


def is_standing_in() -> bool:
    """Whether torchvision is imported and runs with the operators declared here."""
    return bool(_declared) and "torchvision" in sys.modules


def warn_if_standing_in(module: nn.Module, files: Iterable[Path], reporter: Reporter) -> None:
    """Warn that torchvision's operators are replaced, if the model or a file of the user may use them."""
    if is_standing_in() and (_has_operators(module) or any(b"torchvision" in file.read_bytes() for file in files)):
        reporter.warn("torchvision-library", _WARNING.format(version=torch.__version__))


def _has_operators(module: nn.Module) -> bool:
    """Whether a submodule comes from a part of torchvision that uses its operators."""
    return any(type(part).__module__.startswith(_USERS) for part in module.modules())


_USERS = ("torchvision.models.detection", "torchvision.ops")
_declared: list[torch.library.Library] = []
"""Keeps the declarations alive: they end with their Library object."""


class _ExtensionFinder(importlib.abc.MetaPathFinder):
    """Finds torchvision's extension module as Python does, and gives it another loader."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002 - the interface
    ) -> importlib.machinery.ModuleSpec | None:
        """The usual spec with another loader; None for every other module."""
        if fullname != _EXTENSION:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _ExtensionLoader(fullname, spec.loader.path)
        return spec


class _ExtensionLoader(importlib.machinery.SourceFileLoader):
    """Runs the module, which tries to load the library, and declares the operators if that failed."""

    def exec_module(self, module: ModuleType) -> None:
        """Run torchvision's file unchanged; then declare the operators if its library did not load."""
        super().exec_module(module)
        has_operators = getattr(module, "_has_ops", None)
        if has_operators is not None and not has_operators():
            _declare()
            vars(module)["_has_ops"] = lambda: True


def _declare() -> None:
    """Declare the missing operators; the user's code may have declared some itself."""
    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for schema in _SCHEMAS:
        if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
            library.define(schema)
    for name, key, kernel in _KERNELS:
        with contextlib.suppress(RuntimeError):  # the user's code has given it a kernel
            library.impl(name, kernel, key)
    _declared.append(library)
