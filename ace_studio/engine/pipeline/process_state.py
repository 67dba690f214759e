"""What user code may change of its process: put back after every job, and proven, because the next model runs in it.

What cannot be put back is told in words; the worker then ends, and another one serves the next job.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import locale
import os
import pkgutil
import signal
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import optim
from torch.utils import data

from ace_studio.engine.load.user_code import is_users_module
from ace_studio.engine.load.user_errors import is_library_file

_STREAMS = ("stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook", "breakpointhook")
_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
_THREAD_GRACE_S = 0.05
"""Seconds that a thread of the model gets to end by itself."""


class _Setting(NamedTuple):
    """How one thing is read, how it is put back, and what it is called where that fails."""

    name: str
    read: Callable[[], Any]
    put_back: Callable[[Any], object]

    @classmethod
    def of(
        cls, *, name: str, read: str = "", put_back: str = "", attribute: str = "", arguments: Sequence[object] = ()
    ) -> _Setting:
        """A row of the table. Raises: AttributeError if this system has no such function."""
        if attribute:
            owner, _, last = attribute.replace(":", ".", 1).rpartition(".")
            place = pkgutil.resolve_name(owner)
            setter = pkgutil.resolve_name(put_back) if put_back else partial(setattr, place, last)
            return cls(name, partial(getattr, place, last), setter)
        setter = partial(pkgutil.resolve_name(put_back), *arguments) if put_back else lambda _: None
        return cls(name, partial(pkgutil.resolve_name(read), *arguments), setter)


def _set_default_device(device: torch.device) -> None:
    torch.set_default_device(None if device.type == "cpu" else device)


def _set_garbage_collection(wanted: tuple[bool, tuple[int, ...]]) -> None:
    (gc.enable if wanted[0] else gc.disable)()
    gc.set_threshold(*wanted[1])


def _variables(before: frozenset[str]) -> dict[str, str]:
    """The environment without what libraries added in the job: the processes that they start may need that."""
    return {name: value for name, value in os.environ.items() if name in before or name in _named_by_user()}


def _set_environment(variables: dict[str, str]) -> None:
    for name in _named_by_user() - variables.keys():
        os.environ.pop(name, None)
    os.environ.update(variables)


def _set_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(handlers: dict[int, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _alarms() -> tuple[Any, ...]:
    """Signals that wait or are held back. Windows has neither."""
    if os.name != "posix":
        return ()
    return signal.pthread_sigmask(signal.SIG_BLOCK, ()), *(signal.getitimer(getattr(signal, one)) for one in _TIMERS)


def _set_alarms(alarms: tuple[Any, ...]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, alarms[0])
    for name, timer in zip(_TIMERS, alarms[1:], strict=True):
        signal.setitimer(getattr(signal, name), *timer)


def _limits() -> dict[int, tuple[int, int]]:
    try:
        import resource  # noqa: PLC0415 - does not exist on Windows
    except ImportError:
        return {}
    numbers = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    return {number: resource.getrlimit(number) for number in numbers}


def _set_limits(limits: dict[int, tuple[int, int]]) -> None:
    import resource  # noqa: PLC0415 - as above

    for number, limit in limits.items():
        if resource.getrlimit(number) != limit:
            resource.setrlimit(number, limit)


def _set_faulthandler(is_on: bool) -> None:
    (partial(faulthandler.enable, 2) if is_on else faulthandler.disable)()


def _set_streams(streams: list[Any]) -> None:
    for index, (name, stream) in enumerate(zip(_STREAMS, streams, strict=True)):
        number = {"stdout": 1, "stderr": 2}.get(name)
        if number and getattr(stream, "closed", False):
            streams[index] = open(number, "w", closefd=False)  # noqa: SIM115
        setattr(sys, name, streams[index])


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


def _flushes_denormals() -> bool:
    return not torch.full((1,), 1e-310, dtype=torch.float64, device="cpu").mul(1.0).item()


def _trusted_by_user() -> list[Any]:
    """Classes of the user that may be read with weights_only."""
    return [
        one for one in torch.serialization.get_safe_globals() if _is_users(one[0] if isinstance(one, tuple) else one)
    ]


def _distrust(_: list[Any]) -> None:
    theirs = _trusted_by_user()
    kept = [one for one in torch.serialization.get_safe_globals() if one not in theirs]
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(kept)


def _settings() -> Iterator[_Setting]:
    yield _Setting("the default device", torch.get_default_device, _set_default_device)
    for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["setting"]:
        with contextlib.suppress(AttributeError):  # another system, or another release of torch
            yield _Setting.of(**row)
    yield _Setting("denormal numbers", _flushes_denormals, torch.set_flush_denormal)
    yield _Setting("classes that weights may hold", _trusted_by_user, _distrust)
    yield _Setting("numpy's errors", np.geterr, lambda kinds: np.seterr(**kinds))
    yield _Setting("garbage collection", lambda: (gc.isenabled(), gc.get_threshold()), _set_garbage_collection)
    yield _Setting("the filters of warnings", lambda: list(warnings.filters), _set_filters)
    everything = locale.LC_ALL
    yield _Setting("the locale", partial(locale.setlocale, everything), partial(locale.setlocale, everything))
    yield _Setting("stdin, stdout and stderr", lambda: [getattr(sys, name) for name in _STREAMS], _set_streams)
    yield _Setting("handlers of signals", _handlers, _set_handlers)
    yield _Setting("alarms and blocked signals", _alarms, _set_alarms)
    yield _Setting("limits of the system", _limits, _set_limits)
    yield _Setting("the mask of new files", _umask, os.umask)
    yield _Setting("the stack at a crash", faulthandler.is_enabled, _set_faulthandler)


_SETTINGS = tuple(_settings())
_OF_OS = ("os", "collections.abc", "_collections_abc")
"""Modules whose code changes `os.environ` for whoever calls it."""
_TOPS = sys.stdlib_module_names | {"torch", "numpy"}


class ProcessState:
    """How the process was when this was made. Making one and putting it back takes milliseconds each."""

    def __init__(self) -> None:
        _named_by_user()  # listens from now on
        variables = partial(_variables, frozenset(os.environ))
        settings = (*_SETTINGS, _Setting("the environment", variables, _set_environment))
        self._settings = [(one, _read(one)) for one in settings]
        self._modules = {name: one for name, one in list(sys.modules.items()) if _is_of_library(name, one)}
        self._functions = [(place, dict(vars(place))) for place in _patched_places()]
        self._threads = frozenset(threading.enumerate())

    def put_back(self) -> tuple[str, ...]:
        """Put everything back, try it, and return in words what is not as before."""
        left = []
        for name, module in self._modules.items():
            now = sys.modules.get(name)
            if now is not module and (now is None or _is_users(now)):
                sys.modules[name] = module
        for place, before in self._functions:
            left += _put_functions_back(place, before)
        for setting, value in self._settings:
            if not _is_same(_read(setting), value):
                with contextlib.suppress(Exception):  # it shows below
                    setting.put_back(value)
        left += [f"it changed {one.name}" for one, value in self._settings if not _is_same(_read(one), value)]
        return (*left, *_still_running(self._threads), *([] if _computes() else ["torch computes something else"]))


@contextlib.contextmanager
def in_folder(folder: str | Path) -> Iterator[None]:
    """Run a job in a folder, and put back afterwards what the user's code changed of the process."""
    state = ProcessState()
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        state.put_back()


@functools.cache
def _named_by_user() -> set[str]:
    """Variables of the environment that code of the user has set; from the first call on."""
    named: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.putenv":
            frame: Any = sys._getframe(1)
            while frame is not None and frame.f_globals.get("__name__") in _OF_OS:
                frame = frame.f_back
            if frame is not None and not is_library_file(frame.f_code.co_filename):
                named.add(os.fsdecode(arguments[0]))

    sys.addaudithook(note)
    return named


def _read(setting: _Setting) -> Any:
    try:
        return setting.read()
    except Exception as error:  # noqa: BLE001 - a state that cannot be read is another one; torch raises anything there
        return f"{type(error).__name__}: {error}"


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray | torch.Tensor):
        return type(one) is type(other) and bool(np.all(np.asarray(one == other)))
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_is_same, one, other))
    return one is other or bool(one == other)


def _patched_places() -> list[Any]:
    """Modules and classes whose functions user code replaces: what the engine and the next model call by name."""
    modules = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] in _TOPS]
    classes = [value for place in (torch.nn, optim, data) for value in vars(place).values() if isinstance(value, type)]
    return [*(one for one in modules if isinstance(one, ModuleType)), torch.Tensor, *classes]


def _put_functions_back(place: Any, before: dict[str, Any]) -> list[str]:
    """Put back what the user's code replaced in a place or added to it, and return what stays; libraries may patch."""
    left, now = [], vars(place)
    changed = [name for name, value in before.items() if now.get(name) is not value]
    for name in (*changed, *(now.keys() - before.keys())):
        is_new = name not in before
        was = _inherited(place, name) if is_new else before[name]
        is_public = was is not None and not any(part.startswith("_") for part in f"{place.__name__}.{name}".split("."))
        if callable(now[name] if is_new else was) and _was_put_by_user(now.get(name), was, is_public=is_public):
            with contextlib.suppress(Exception):  # it is told
                delattr(place, name) if is_new else setattr(place, name, was)
            if now.get(name) is not before.get(name):
                left.append(f"it replaced {place.__name__}.{name}")
    return left


def _inherited(place: Any, name: str) -> Any:
    """What a class has of a name without its own attribute; None if nothing, and of a module."""
    bases = place.__mro__[1:] if isinstance(place, type) else ()
    return next((vars(one)[name] for one in bases if name in vars(one)), None)


def _is_of_library(name: str, module: Any) -> bool:
    """Whether a module is no file of the user, which the next load forgets: neither one that he imported late."""
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return is_library_file(file) if isinstance(file, str) else name.partition(".")[0] in _TOPS


def _is_users(value: Any) -> bool:
    """Whether a value is a module of the user, or is defined in one, whatever name a decorator gave it."""
    module = value if isinstance(value, ModuleType) else sys.modules.get(_home(value))
    return isinstance(module, ModuleType) and is_users_module(module)


def _was_put_by_user(value: Any, before: Any, *, is_public: bool) -> bool:
    """Whether the user replaced a function by this. A library puts functions of its own into another, never others."""
    if not is_public or _is_users(value):
        return _is_users(value)
    top = _home(value).partition(".")[0]
    return not callable(value) or top == _home(before).partition(".")[0] or top in sys.stdlib_module_names


def _home(value: Any) -> str:
    """Name of the module that a function or a class is defined in; of what is neither, that of its class."""
    while isinstance(value, partial):
        value = value.func
    names = getattr(value, "__globals__", None)
    if isinstance(names, dict):
        return str(names.get("__name__"))
    return str(getattr(value, "__module__", None) or getattr(value, "__objclass__", type(value)).__module__)


def _still_running(before: frozenset[threading.Thread]) -> list[str]:
    """Threads that the job left behind in code of the user; those of libraries wait for work, or end by themselves."""
    left = []
    for thread in threading.enumerate():
        if thread not in before and _user_file(thread):
            thread.join(_THREAD_GRACE_S)
            if thread.is_alive() and (file := _user_file(thread)):
                left.append(f"it left a thread behind that runs {Path(file).name}")
    return left


def _user_file(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            return frame.f_code.co_filename
        frame = frame.f_back
    return ""


def _computes() -> bool:
    """Whether a product of two small tensors is what it must be, of the type that it must be."""
    found = torch.full((2, 2), 2.0) @ torch.arange(4.0).reshape(2, 2).t()
    is_plain = type(found) is torch.Tensor and found.dtype is torch.float32 and found.device.type == "cpu"
    return is_plain and found.tolist() == [[2.0, 10.0], [2.0, 10.0]]
