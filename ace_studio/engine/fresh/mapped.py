"""Maps in a forked process what the process before it had mapped of files, such as torch's code.

Linux does not copy these pages' entries at a fork, so that the forked process seems smaller, and its growth larger, by
what it touches of them again: 13 MB for a small model. A started process has them from importing.
"""

import ctypes
from collections.abc import Iterable, Sequence
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path

import numpy as np

_MADV_POPULATE_READ = 22
"""Linux 5.14; older kernels refuse it, and the growth stays too large by these pages."""
_ENTRY_BYTES = 8
_PRESENT_BIT = 63
"""Of an entry of /proc/self/pagemap (proc_pid_pagemap(5))."""


def mapped_file_pages() -> list[tuple[int, int]]:
    """Address and size in bytes of each run of pages of files that this process has mapped now."""
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
