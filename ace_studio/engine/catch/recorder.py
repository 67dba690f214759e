"""Records the calls of modules while a script runs, and keeps a few that differ."""

import inspect
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.examples.caught import CallWriter, CaughtCall, NotStorableError
from ace_studio.engine.examples.containers import register_containers
from ace_studio.engine.examples.leaves import describe, forward_parameters
from ace_studio.engine.flow import Example
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.records.messages import ModuleCalls

MAX_BYTES = 1_000_000_000
"""Limit of all kept tensors together."""
_MOST_MODULES = 200
"""Limit of the list of modules to choose from."""
FORMS_SHOWN = 3
_CALLS_DESCRIBED = 50
"""Number of first calls of one module whose forms may be listed."""
_SEED = 20240607


@dataclass
class KeptCall:
    """One call that was kept."""

    form: str
    """Shapes, types and plain values; to the capture, calls of the same form are alike."""
    call: CaughtCall
    tensors: dict[str, Tensor]

    @property
    def bytes(self) -> int:
        """Bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())


@dataclass
class Shelf:
    """The kept calls of one module: first every form once, then a uniform sample of the rest."""

    module: nn.Module
    room: int
    kept: list[KeptCall] = field(default_factory=list)
    seen: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(_SEED))

    def place_for(self, form: str) -> int | None:
        """Index into `kept` at which to keep a call of this form, its length to append it, or None to drop it."""
        self.seen += 1
        if len(self.kept) < self.room:
            return len(self.kept)
        spare = [index for index, one in enumerate(self.kept) if self._is_spare(index, one.form)]
        if not spare:
            return None
        if all(one.form != form for one in self.kept):
            return spare[0]
        chosen = self.chance.randrange(self.seen)
        return spare[chosen] if chosen < len(spare) else None

    def _is_spare(self, index: int, form: str) -> bool:
        """Whether an earlier call has the same form."""
        return any(one.form == form for one in self.kept[:index])


@dataclass
class _Count:
    kind: str
    calls: int = 0
    forms: dict[str, None] = field(default_factory=dict)


class CallRecorder:
    """Counts the calls of every module, and keeps those of the wanted one.

    Args:
        wanted: Class (``Net`` or ``model.Net``) or dotted path inside of the outermost module; empty for the outermost.
        calls: Number of calls to keep of a module.
        check: Called at every outermost call; raises if the job was cancelled.
        max_bytes: Limit of all kept tensors together.
    """

    def __init__(
        self, *, wanted: str, calls: int, check: Callable[[], None] = lambda: None, max_bytes: int = MAX_BYTES
    ) -> None:
        self._wanted = wanted
        self._calls = calls
        self._check = check
        self._max_bytes = max_bytes
        self._local = threading.local()
        self._lock = threading.RLock()
        self._shelves: OrderedDict[int, Shelf] = OrderedDict()
        self._counts: dict[tuple[str, str], _Count] = {}
        self._paths: dict[int, dict[int, str]] = {}
        self._roots: dict[int, nn.Module] = {}  # kept alive, so that no other module gets the same id
        self.notes: dict[str, None] = {}

    # --- listening ---

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record calls while the block runs. No global hook of torch sees keyword arguments."""
        original = nn.Module.__call__
        recorder = self

        def recorded_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[no-untyped-call]
                return original(module, *args, **kwargs)
            return recorder.around(original, module, args, kwargs)

        with replaced_attribute(nn.Module, "__call__", recorded_call):
            yield

    def around(self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Note the call, then make it."""
        outer = getattr(self._local, "root", None)
        if outer is None:
            self._check()
            self._local.root = module
        try:
            with self._lock:
                self._note(module, outer if outer is not None else module, args, kwargs)
            return original(module, *args, **kwargs)
        finally:
            if outer is None:
                self._local.root = None

    def _note(self, module: nn.Module, root: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        path = "" if module is root else self._path_in(root, module)
        kind = type(module).__qualname__
        count = self._counts.setdefault((path, kind), _Count(kind))
        count.calls += 1
        is_wanted = self._is_wanted(module, path, is_root=module is root)
        is_shown = len(count.forms) < FORMS_SHOWN and count.calls <= _CALLS_DESCRIBED
        if is_wanted or is_shown:
            register_containers((args, dict(kwargs)))
        if is_shown:
            count.forms[describe(Example(args, kwargs), forward_parameters(module))] = None
        if is_wanted:
            self._keep(module, args, kwargs)

    def _path_in(self, root: nn.Module, module: nn.Module) -> str:
        known = self._paths.get(id(root))
        if known is None or id(module) not in known:
            self._roots[id(root)] = root
            known = self._paths[id(root)] = {id(one): path for path, one in root.named_modules()}
        return known.get(id(module), f"<{type(module).__qualname__}>")

    def _is_wanted(self, module: nn.Module, path: str, *, is_root: bool) -> bool:
        if not self._wanted:
            return is_root
        kind = type(module)
        return self._wanted in (path, kind.__name__, kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}")

    # --- keeping ---

    def _keep(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        shelf = self._shelves.get(id(module))
        if shelf is None:
            shelf = self._shelves[id(module)] = Shelf(module, self._calls)
        form = _form(args, kwargs)
        place = shelf.place_for(form)
        if place is None:
            return
        needed = sum(one.numel() * one.element_size() for one in Example(args, kwargs).tensors())
        freed = shelf.kept[place].bytes if place < len(shelf.kept) else 0
        held = sum(one.bytes for other in self._shelves.values() for one in other.kept)
        if held - freed + needed > self._max_bytes:
            self.notes[f"calls were left out, because more than {self._max_bytes / 1e6:.0f} MB would be kept"] = None
            return
        writer = CallWriter("call", optional=_with_defaults(module))
        try:
            kept = KeptCall(form, writer.call(args, kwargs), writer.tensors)
        except NotStorableError as error:
            self.notes[f"a call of {type(module).__qualname__} was left out: {error}, which no file holds"] = None
            return
        for why in writer.left_out:
            self.notes[f"calls of {type(module).__qualname__} were kept without an argument: {why}"] = None
        shelf.kept[place : place + 1] = [kept]

    # --- results ---

    def chosen(self) -> Shelf | None:
        """The module whose calls are used: the one with the most parameters, then the one called most."""
        found = [shelf for shelf in self._shelves.values() if shelf.kept]
        return max(found, key=lambda shelf: (_parameter_count(shelf.module), shelf.seen), default=None)

    def modules(self) -> tuple[ModuleCalls, ...]:
        """Every module that was called, the outermost first."""
        ordered = sorted(self._counts.items(), key=lambda item: (item[0][0] != "", item[0][0]))
        return tuple(
            ModuleCalls(path=path, kind=kind, calls=count.calls, inputs=tuple(count.forms))
            for (path, kind), count in ordered[:_MOST_MODULES]
        )


def _form(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Shapes, types and plain values of a call as text."""
    return repr(Example(args, kwargs).map_tensors(_shape_of))  # containers of the user's own print what they hold


def _shape_of(tensor: Tensor) -> Any:
    return f"{tensor.dtype} {tuple(tensor.shape)}"


def _with_defaults(module: nn.Module) -> list[str]:
    """The parameters of forward that have a default."""
    parameters = forward_parameters(module)
    return [name for name, one in parameters.items() if one.default is not inspect.Parameter.empty]


def _parameter_count(module: nn.Module) -> int:
    made = (one for one in module.parameters() if not isinstance(one, nn.UninitializedParameter))
    return sum(parameter.numel() for parameter in made)
