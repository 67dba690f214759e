"""A process that has imported a module, and forks itself for each order. Linux only.

An order is a JSON object in one message of a socket, beside a file descriptor that only the forked process keeps open:
whoever reads the other end gets the number of the process, and the end of the stream when it has ended. An order to
import alone forks nothing; there, the stream ends when everything has been imported.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np

IDLE_LIMIT_S = 120.0
"""A job verifies its candidates one after the other; hundreds of megabytes are not kept for the next job."""
ORDER_LIMIT_BYTES = 65_536
_MADV_POPULATE_READ = 22
"""Linux 5.14; older kernels refuse it, and the growth stays too large by these pages."""
_ENTRY_BYTES = 8
_PRESENT_BIT = 63
"""Of an entry of /proc/self/pagemap (proc_pid_pagemap(5))."""


def mapped_file_pages() -> list[tuple[int, int]]:
    """Address and size in bytes of each run of pages of files that this process has mapped now, such as torch's code.

    Linux does not copy these pages' entries at a fork, so that the forked process seems smaller, and its growth larger,
    by what it touches of them again: 13 MB for a small model. A started process has them from importing.
    """
    found: list[tuple[int, int]] = []
    with suppress(OSError), Path("/proc/self/pagemap").open("rb", buffering=0) as pagemap:
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            addresses, permissions, _, _, inode, *_ = line.split()
            if inode != "0" and permissions.startswith("r"):
                begin, end = (int(one, 16) for one in addresses.split("-"))
                pagemap.seek(begin // PAGESIZE * _ENTRY_BYTES)
                entries = np.frombuffer(pagemap.read((end - begin) // PAGESIZE * _ENTRY_BYTES), np.uint64)
                found += _runs(begin, (entries >> np.uint64(_PRESENT_BIT)).astype(np.int8))
    return found


def _runs(begin: int, present: np.ndarray) -> Iterable[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(present, prepend=0, append=0))
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield begin + first * PAGESIZE, (after - first) * PAGESIZE


def map_again(pages: Sequence[tuple[int, int]]) -> None:
    """Map these runs of pages, without reading from a disk what is in memory."""
    advise = ctypes.CDLL(None).madvise
    for address, size in pages:
        advise(ctypes.c_void_p(address), ctypes.c_size_t(size), _MADV_POPULATE_READ)


def serve(number: str, module: str, function: str) -> int:
    """Fork a process that calls ``function`` for each order, until the socket is closed or nothing came for long.

    Args:
        number: File descriptor of the socket.
        module: Imported before the first order.
        function: Its name in the module; takes the strings of the order and returns an exit status.
    """
    orders = socket.socket(fileno=int(number))
    pages = _with_imported([module])
    call = getattr(sys.modules[module], function)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; who gave the order decides
    signal.signal(signal.SIGCHLD, _reap)
    orders.settimeout(IDLE_LIMIT_S)
    while True:
        try:
            message, (alive, *_), *_ = socket.recv_fds(orders, ORDER_LIMIT_BYTES, 1)
        except (TimeoutError, ValueError, OSError):
            return 0
        order = json.loads(message)
        if any(name not in sys.modules for name in order["imports"]):
            pages = _with_imported(order["imports"])
        if "arguments" not in order:
            os.close(alive)
            continue
        with warnings.catch_warnings(action="ignore"):  # of threads: the only other one is OpenBLAS's, which allows it
            forked = os.fork()
        if not forked:
            orders.close()
            map_again(pages)
            return int(call(*_prepare(order, alive)))
        os.close(alive)


def _with_imported(names: Sequence[str]) -> list[tuple[int, int]]:
    """Import modules; returns the pages of files that are mapped then."""
    gc.disable()  # as in `fresh_python`
    for name in names:
        importlib.import_module(name)
    pages = mapped_file_pages()
    gc.freeze()  # a collection in a forked process would else copy every page that it looks through
    gc.enable()
    return pages


def _reap(*_: object) -> None:
    """Take in processes that have ended, so that what they took of the processor counts as taken by this one."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _prepare(order: dict[str, Any], alive: int) -> list[str]:
    """Make the forked process what a started one would be; returns the arguments of the function."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.set_inheritable(alive, False)  # a program that the function starts may outlive it
    os.chdir(order["folder"])
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    os.write(alive, b"%d\n" % os.getpid())
    arguments: list[str] = order["arguments"]
    return arguments
