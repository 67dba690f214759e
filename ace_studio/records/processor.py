"""Facts about the processor that Linux tells."""

import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def cpu_flags() -> frozenset[str]:
    """Instruction sets of this processor as Linux names them; empty on other systems."""
    return frozenset((cpuinfo("flags") or cpuinfo("Features")).split())


def int8_weight_bits() -> int:
    """Bits of a weight whose products with 8-bit values are exact here: 7 on x86 without VNNI, else 8.

    Such a processor adds two products in 16 bits, which saturates if both factors have 8 bits, in every runtime. So
    does oneDNN where the user keeps it from newer instructions (its documentation, "CPU Dispatcher Control").
    """
    is_x86 = platform.machine().lower() in {"x86_64", "amd64", "x86", "i686"}
    is_kept_from_vnni = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in {"SSE41", "AVX", "AVX2", "AVX512_CORE"}
    return 7 if is_x86 and (is_kept_from_vnni or not cpu_flags() & {"avx512_vnni", "avx_vnni"}) else 8


def cpuinfo(wanted: str) -> str:
    """The first value of a key that Linux tells of its processors; empty without one."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == wanted:
                return value.strip()
    return ""
