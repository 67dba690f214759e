"""Facts about the processor that Linux tells."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def cpu_flags() -> frozenset[str]:
    """Instruction sets of this processor as Linux names them; empty on other systems."""
    return frozenset((cpuinfo("flags") or cpuinfo("Features")).split())


def cpuinfo(wanted: str) -> str:
    """The first value of a key that Linux tells of its processors; empty without one."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == wanted:
                return value.strip()
    return ""
