"""Times the kernels in the code that Inductor generated. All names of it are private to torch.

The code is a Python module that calls generated C++ loops and torch's libraries in turn. To time them, the names that
it calls are replaced in its namespace while it runs; nothing is compiled again, and the names are restored.
"""

import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.inductor import origins_of

_MAX_ROUNDS = 15
_MIN_ROUNDS = 3
_LIMIT_S = 2.0


@dataclass
class WrittenCode:
    """The code of one compilation."""

    loops: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Name of each generated loop, and the nodes of the original graph that it computes, in order of calls."""
    modules: list[ModuleType] = field(default_factory=list)


@dataclass(frozen=True)
class TimedCall:
    """One call in the generated code."""

    name: str
    """A generated loop's name, or the operator of a library, such as ``mkldnn._linear_pointwise.default``."""
    latency_ms: float
    is_loop: bool


@contextmanager
def listening_to_code() -> Iterator[WrittenCode]:
    """Record the code of compilations inside the block; empty if a release of torch generates code differently."""
    written = WrittenCode()
    scheduling: Any = getattr(_module("torch._inductor.codegen.cpp"), "CppScheduling", None)
    cache: Any = getattr(_module("torch._inductor.codecache"), "PyCodeCache", None)
    define = getattr(scheduling, "define_kernel", None)
    if define is None or not hasattr(cache, "modules"):
        yield written
        return

    def define_and_note(self: Any, source: str, nodes: Sequence[Any], *rest: Any, **named: Any) -> Any:
        name = define(self, source, nodes, *rest, **named)
        written.loops.append((str(name), _names_of(nodes)))
        return name

    before = {id(module) for module in cache.modules}
    try:
        with replaced_attribute(scheduling, "define_kernel", define_and_note):
            yield written
    finally:
        written.modules += [module for module in cache.modules if id(module) not in before]


def time_calls(written: WrittenCode, run: Callable[[], object]) -> list[TimedCall]:
    """Every call in one run of the generated code, in order, with its median time over several runs.

    Empty if the runs do not all make the same calls. Args: ``run`` runs the compiled function once.
    """
    seen: list[list[tuple[str, float, bool]]] = []
    started = time.monotonic()
    with _timing(written.modules) as calls:
        run()
        while len(seen) < _MAX_ROUNDS and (time.monotonic() - started < _LIMIT_S or len(seen) < _MIN_ROUNDS):
            calls.clear()
            run()
            seen.append(list(calls))
    if len({tuple(name for name, _, _ in one) for one in seen}) != 1:
        return []
    return [
        TimedCall(same[0][0], statistics.median(time_ms for _, time_ms, _ in same), same[0][2])
        for same in zip(*seen, strict=True)
    ]


@contextmanager
def _timing(modules: Sequence[ModuleType]) -> Iterator[list[tuple[str, float, bool]]]:
    calls: list[tuple[str, float, bool]] = []

    def timed(name: str, function: Callable[..., Any], *, is_loop: bool) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter_ns()
            result = function(*args, **kwargs)
            calls.append((name, (time.perf_counter_ns() - begun) / 1e6, is_loop))
            return result

        return call

    def library(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return timed(name, function, is_loop=False)

    kept = [(module, dict(module.__dict__)) for module in modules]
    try:
        for module, names in kept:
            loops = {key: value for key, value in names.items() if key.startswith("cpp_") and callable(value)}
            module.__dict__.update({key: timed(key, value, is_loop=True) for key, value in loops.items()})
            module.__dict__["torch"] = _Torch(library)
            if "extern_kernels" in names:
                module.__dict__["extern_kernels"] = _Library(names["extern_kernels"], library)
        yield calls
    finally:
        for module, names in kept:
            module.__dict__.update(names)


class _Torch:
    """``torch`` with timed operators."""

    def __init__(self, timed: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        self.ops = _Operators(torch.ops, "", timed)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


class _Operators:
    """A part of ``torch.ops`` whose overloads are timed."""

    def __init__(self, part: Any, path: str, timed: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        self._part, self._path, self._timed = part, path, timed

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        path = f"{self._path}.{name}".lstrip(".")
        made = (
            self._timed(path, found)
            if isinstance(found, torch._ops.OpOverload)
            else _Operators(found, path, self._timed)
        )
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._timed(self._path, self._part)(*args, **kwargs)


class _Library:
    """Inductor's own table of library functions (``mm``, ``addmm``, ...), timed."""

    def __init__(self, table: Any, timed: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        self._table, self._timed = table, timed

    def __getattr__(self, name: str) -> Any:
        made = self._timed(f"aten.{name}.default", getattr(self._table, name))
        setattr(self, name, made)
        return made


def _names_of(nodes: Sequence[Any]) -> tuple[str, ...]:
    """Nodes before compilation that the scheduler's nodes come from."""
    found: dict[str, None] = {}
    for node in nodes:
        for part in node.get_nodes() if hasattr(node, "get_nodes") else [node]:
            for origin in getattr(getattr(part, "node", None), "origins", None) or ():
                if origin.op == "call_function":
                    found.update(dict.fromkeys(origins_of(origin)))
    return tuple(found)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
