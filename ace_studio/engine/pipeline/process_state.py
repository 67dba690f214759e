"""What user code may change of its process, put back after every job: the next model must not run under it."""

from __future__ import annotations

import builtins
import contextlib
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ace_studio.engine.load.user_code import is_users_module

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGABRT)
_STREAMS = ("stdin", "stdout", "stderr", "excepthook", "displayhook")


def _set_default_device(device: torch.device) -> None:
    if torch.get_default_device() != device:
        torch.set_default_device(None if device.type == "cpu" else device)


def _set_deterministic(mode: int) -> None:
    torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def _set_garbage_collection(is_on: bool) -> None:
    (gc.enable if is_on else gc.disable)()


def _set_environment(variables: dict[str, str]) -> None:
    for name, value in variables.items():  # what a library added may be needed by the processes that it starts
        if os.environ.get(name) != value:
            os.environ[name] = value


def _set_handlers(handlers: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, handlers, strict=True):
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(number, handler)


def _set_output(descriptors: list[int]) -> None:
    for number, kept in enumerate(descriptors, start=1):
        with contextlib.suppress(OSError):  # the job may have closed all descriptors
            os.dup2(kept, number)
            os.close(kept)


def _set_streams(streams: list[Any]) -> None:
    for name, stream in zip(_STREAMS, streams, strict=True):
        is_closed = getattr(stream, "closed", False)
        number = {"stdout": 1, "stderr": 2}.get(name)
        setattr(sys, name, open(number, "w", closefd=False) if is_closed and number else stream)  # noqa: SIM115


_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, _set_default_device),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_deterministic_debug_mode, _set_deterministic),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    (lambda: torch.backends.mkldnn.enabled, torch.backends.mkldnn.set_flags),
    (lambda: False, torch.set_flush_denormal),
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (gc.isenabled, _set_garbage_collection),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.gettrace, sys.settrace),
    (sys.getprofile, sys.setprofile),
    (threading.gettrace, threading.settrace),
    (threading.getprofile, threading.setprofile),
    (lambda: list(warnings.filters), lambda filters: warnings.filters.__setitem__(slice(None), filters)),  # type: ignore[index]
    (lambda: dict(os.environ), _set_environment),
    (lambda: [signal.getsignal(number) for number in _SIGNALS], _set_handlers),
    (lambda: [os.dup(number) for number in (1, 2)], _set_output),
    (lambda: [getattr(sys, name) for name in _STREAMS], _set_streams),
)
"""How each setting is read, and how it is put back."""


def _patched_places() -> list[Any]:
    """Modules and classes whose functions user code replaces: what the engine and the next model call by name."""
    layers = [value for value in vars(torch.nn).values() if isinstance(value, type)]
    return [builtins, os, random, time, torch, torch.nn, torch.nn.functional, torch.Tensor, *layers]


@contextlib.contextmanager
def in_folder(folder: str | Path) -> Iterator[None]:
    """Run a job in a folder, and put back afterwards what the user's code changed of the process."""
    settings = [(put_back, read()) for read, put_back in _SETTINGS]
    functions = [(place, dict(vars(place))) for place in _patched_places()]
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        for place, before in functions:
            _put_functions_back(place, before)
        for put_back, value in settings:
            put_back(value)


def _put_functions_back(place: Any, before: dict[str, Any]) -> None:
    now = vars(place)
    for name, value in before.items():
        if callable(value) and now.get(name) is not value and _is_users(now.get(name)):
            setattr(place, name, value)


def _is_users(value: Any) -> bool:
    """Whether a replaced function is nothing callable, or was defined in the user's files; libraries may patch."""
    module = sys.modules.get(str(getattr(value, "__module__", "")))
    return not callable(value) or (module is not None and is_users_module(module))
