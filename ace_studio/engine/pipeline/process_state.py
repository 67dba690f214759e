"""What user code may change of its process: put back after every job, and proven, because the next model runs in it.

What cannot be put back is told in words; the worker then ends, and another one serves the next job.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import functools
import gc
import locale
import logging
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import optim
from torch.utils import data

from ace_studio.engine.load.user_code import is_users_module
from ace_studio.engine.load.user_errors import is_library_file
from ace_studio.engine.torch_private import process_wide

_STREAMS = ("stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook", "breakpointhook")
_THREAD_GRACE_S = 0.05
"""Seconds that a thread of the model gets to end by itself."""


class _Setting(NamedTuple):
    """How one thing is read, how it is put back, and what it is called where that fails."""

    name: str
    read: Callable[[], Any]
    put_back: Callable[[Any], object] = lambda _: None
    """Nothing where it cannot be put back."""


def _set_default_device(device: torch.device) -> None:
    torch.set_default_device(None if device.type == "cpu" else device)


def _set_deterministic(mode: int) -> None:
    torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


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


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(handlers: dict[int, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _set_faulthandler(is_on: bool) -> None:
    (functools.partial(faulthandler.enable, 2) if is_on else faulthandler.disable)()


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
    return [one for one in torch.serialization.get_safe_globals() if _is_users(one[0] if isinstance(one, tuple) else one)]


def _distrust(_: list[Any]) -> None:
    theirs = _trusted_by_user()
    kept = [one for one in torch.serialization.get_safe_globals() if one not in theirs]
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(kept)


def _attribute(name: str, owner: Any, attribute: str) -> _Setting:
    return _Setting(name, functools.partial(getattr, owner, attribute), functools.partial(setattr, owner, attribute))


_CUDA = torch.backends.cuda
_TORCH = (
    _Setting("the default device", torch.get_default_device, _set_default_device),
    _Setting("modes of torch that it entered", process_wide.modes_entered),
    _Setting("hooks of all modules", process_wide.global_hooks, process_wide.set_global_hooks),
    _Setting("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _Setting("the number of threads", torch.get_num_threads, torch.set_num_threads),
    _Setting("the number of threads between ops", torch.get_num_interop_threads),
    _Setting("inference mode", torch.is_inference_mode_enabled),
    _Setting("gradients", torch.is_grad_enabled, torch.set_grad_enabled),
    *(
        _Setting(
            f"autocast on {kind}",
            functools.partial(torch.is_autocast_enabled, kind),
            functools.partial(torch.set_autocast_enabled, kind),
        )
        for kind in ("cpu", "cuda")
    ),
    _Setting("deterministic algorithms", torch.get_deterministic_debug_mode, _set_deterministic),
    _Setting("the precision of products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    _Setting("anomaly detection", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    _Setting("warnings of torch", torch.is_warn_always_enabled, torch.set_warn_always),
    _Setting("oneDNN", lambda: torch.backends.mkldnn.enabled, torch.backends.mkldnn.set_flags),
    _attribute("the engine of quantized ops", torch.backends.quantized, "engine"),
    *(
        _attribute(f"cuDNN's {name}", torch.backends.cudnn, name)
        for name in ("enabled", "benchmark", "deterministic", "allow_tf32")
    ),
    _attribute("TF32", _CUDA.matmul, "allow_tf32"),
    _Setting("flash attention", _CUDA.flash_sdp_enabled, _CUDA.enable_flash_sdp),
    _Setting("attention without memory", _CUDA.mem_efficient_sdp_enabled, _CUDA.enable_mem_efficient_sdp),
    _Setting("plain attention", _CUDA.math_sdp_enabled, _CUDA.enable_math_sdp),
    _Setting("denormal numbers", _flushes_denormals, torch.set_flush_denormal),
    _Setting("classes that weights may hold", _trusted_by_user, _distrust),
    _Setting("torch's random numbers", torch.get_rng_state, torch.set_rng_state),
)
_PYTHON = (
    _Setting("Python's random numbers", random.getstate, random.setstate),
    _Setting("numpy's random numbers", np.random.get_state, np.random.set_state),
    _Setting("numpy's errors", np.geterr, lambda kinds: np.seterr(**kinds)),
    _Setting("garbage collection", lambda: (gc.isenabled(), gc.get_threshold()), _set_garbage_collection),
    _Setting("the depth of calls", sys.getrecursionlimit, sys.setrecursionlimit),
    _Setting("the watcher of lines", sys.gettrace, sys.settrace),
    _Setting("the watcher of calls", sys.getprofile, sys.setprofile),
    _Setting("the watcher of threads", threading.gettrace, threading.settrace),
    _Setting("the watcher of threads' calls", threading.getprofile, threading.setprofile),
    _Setting("the turns of threads", sys.getswitchinterval, sys.setswitchinterval),
    _Setting(
        "the filters of warnings",
        lambda: list(warnings.filters),
        lambda filters: warnings.filters.__setitem__(slice(None), filters),  # type: ignore[index]
    ),
    _attribute("what is logged", logging.root.manager, "disable"),
    _attribute("the folder of temporary files", tempfile, "tempdir"),
    _Setting("the time that a connection waits", socket.getdefaulttimeout, socket.setdefaulttimeout),
    _Setting("stdin, stdout and stderr", lambda: [getattr(sys, name) for name in _STREAMS], _set_streams),
)
_SYSTEM = (
    _Setting("the current folder", os.getcwd, os.chdir),
    _Setting("the locale", lambda: locale.setlocale(locale.LC_ALL), lambda kept: locale.setlocale(locale.LC_ALL, kept)),
    _Setting("handlers of signals", _handlers, _set_handlers),
    _Setting("the stack at a crash", faulthandler.is_enabled, _set_faulthandler),
)


def _of_posix() -> Iterator[_Setting]:
    """What only POSIX systems have, some of it only Linux."""
    import resource  # noqa: PLC0415 - does not exist on Windows

    yield _Setting("the mask of new files", _umask, os.umask)
    yield _Setting(
        "blocked signals",
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        lambda mask: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
    )
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        is_set = functools.partial(lambda which: signal.getitimer(which)[0] > 0, timer)
        yield _Setting("an alarm", is_set, functools.partial(lambda which, _: signal.setitimer(which, 0), timer))
    yield _Setting(
        "the priority",
        lambda: os.getpriority(os.PRIO_PROCESS, 0),
        lambda kept: os.setpriority(os.PRIO_PROCESS, 0, kept),
    )
    if hasattr(os, "sched_getaffinity"):
        cores = lambda: os.sched_getaffinity(0)  # noqa: E731 - beside what sets them
        yield _Setting("the cores", cores, lambda kept: os.sched_setaffinity(0, kept))
    for name in (one for one in dir(resource) if one.startswith("RLIMIT_")):
        number = getattr(resource, name)
        words = f"the limit {name.removeprefix('RLIMIT_').lower()}"
        read = functools.partial(resource.getrlimit, number)
        yield _Setting(words, read, functools.partial(resource.setrlimit, number))


_SETTINGS = (*_TORCH, *_PYTHON, *_SYSTEM, *(_of_posix() if os.name == "posix" else ()))
_TOPS = sys.stdlib_module_names | {"torch", "numpy"}


class ProcessState:
    """How the process was when this was made. Making one and putting it back takes milliseconds each."""

    def __init__(self) -> None:
        _named_by_user()  # listens from now on
        variables = functools.partial(_variables, frozenset(os.environ))
        settings = (*_SETTINGS, _Setting("the environment", variables, _set_environment))
        self._settings = [(one, _read(one)) for one in settings]
        self._modules = dict(sys.modules)
        self._functions = [(place, dict(vars(place))) for place in _patched_places()]
        self._threads = frozenset(threading.enumerate())

    def put_back(self) -> tuple[str, ...]:
        """Put everything back, try it, and return in words what is not as before."""
        left = []
        for name, module in self._modules.items():
            now = sys.modules.get(name)
            if now is not module and not _is_users(module) and (now is None or _is_users(now)):
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
            while frame is not None and frame.f_globals.get("__name__") in ("os", "collections.abc", "_collections_abc"):
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
        return type(one) is type(other) and bool((one == other).all())
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_is_same, one, other))
    return one is other or bool(one == other)


def _patched_places() -> list[Any]:
    """Modules and classes whose functions user code replaces: what the engine and the next model call by name."""
    modules = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] in _TOPS]
    classes = [value for place in (torch.nn, optim, data) for value in vars(place).values() if isinstance(value, type)]
    return [*(one for one in modules if isinstance(one, ModuleType)), torch.Tensor, *classes]


def _put_functions_back(place: Any, before: dict[str, Any]) -> list[str]:
    """Put back what the user's code replaced in a place, and return what stays replaced; libraries may patch."""
    left = []
    changed = [(name, value) for name, value in before.items() if vars(place).get(name) is not value]
    for name, value in changed:
        is_public = not any(part.startswith("_") for part in f"{place.__name__}.{name}".split("."))
        if callable(value) and _was_put_by_user(vars(place).get(name), value, is_public=is_public):
            with contextlib.suppress(Exception):  # it is told
                setattr(place, name, value)
            if vars(place).get(name) is not value:
                left.append(f"it replaced {place.__name__}.{name}")
    return left


def _is_users(value: Any) -> bool:
    """Whether a value is a module of the user, or is defined in one, whatever name a decorator gave it."""
    module = value if isinstance(value, ModuleType) else sys.modules.get(_home(value))
    return isinstance(module, ModuleType) and is_users_module(module)


def _was_put_by_user(value: Any, before: Any, *, is_public: bool) -> bool:
    """Whether the user replaced a function by this. A library puts functions of its own into another, never others."""
    if not callable(value) or _is_users(value):
        return True
    top = _home(value).partition(".")[0]
    return is_public and (top == _home(before).partition(".")[0] or top in sys.stdlib_module_names)


def _home(value: Any) -> str:
    """Name of the module that a function or a class is defined in; of what is neither, that of its class."""
    while isinstance(value, functools.partial):
        value = value.func
    names = getattr(value, "__globals__", None)
    if isinstance(names, dict):
        return str(names.get("__name__"))
    return str(getattr(value, "__module__", None) or type(value).__module__)


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
