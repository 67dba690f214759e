"""What this machine can do at most: arithmetic through torch's largest matrix products, and bytes through copies.

Measured once per processor, torch and number of threads, and kept; what is kept is measured again after a month, or
if the machine was so busy that the best run says little, the next day.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Ceilings
from ace_studio.records.safe_file import read_or_none, write_private

BUSY_SPREAD = 0.5
"""Above this the kept ceilings hold for a day only."""
KEPT_DAYS = 30
_SIZE = 768
"""Rows of the matrices: large enough for full speed, small enough for milliseconds."""
_PILOT_SIZE = 128
_PILOTS = 5
_RUNS = 9
_LIMIT_S = 0.15
"""Seconds per ceiling at most."""
_WORKING_SETS = (2**16, 2**18, 2**20, 2**22, 2**24, 2**27)
"""Bytes that are read and written in turn; the largest lies beyond every cache that matters."""

Measured = tuple[float, float]
"""The best and the median of the runs."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    ceilings: Ceilings
    measured_at: float


def ceilings_here(processor: str, *, threads: int, folder: Path) -> Ceilings:
    """The ceilings of this machine with so many threads, from ``folder`` if they were measured before.

    Side effect: torch's number of threads is ``threads`` afterwards, as everything that is measured wants it.
    """
    machine = f"{processor}, torch {torch.__version__}"
    path = folder / f"ceilings-{_slug(machine)}-{threads}.json"
    kept = read_or_none(path, _Kept)
    if kept is not None and kept.ceilings.machine == machine:
        days = KEPT_DAYS if kept.ceilings.spread <= BUSY_SPREAD else 1
        if 0 <= time.time() - kept.measured_at < days * 86_400:
            return kept.ceilings
    torch.set_num_threads(threads)
    found = measure_ceilings(threads=threads, machine=machine)
    if kept is not None and kept.ceilings.machine == machine:
        found = _higher(found, kept.ceilings)
    _write(path, _Kept(ceilings=found, measured_at=time.time()))
    return found


def measure_ceilings(*, threads: int, machine: str) -> Ceilings:
    """Measure on the CPU; takes a few seconds."""
    products = {precision: _product_rate(*make) for precision, make in _PRODUCTS.items()}
    rates = {size: _byte_rate(size) for size in _WORKING_SETS}
    known = [one for one in (*products.values(), *rates.values()) if one is not None]
    return Ceilings(
        gflops={str(precision): best for precision, found in products.items() if found for best in found[:1]},
        gbytes_per_s=rates[_WORKING_SETS[-1]][0],
        gbytes_per_s_at={size: best for size, (best, _) in rates.items()},
        spread=round(max((best - median) / best for best, median in known), 3),
        threads=threads,
        machine=machine,
    )


_PRODUCTS: dict[Precision, tuple[Callable[[int], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    Precision.FP32: (lambda size: torch.randn(size, size), torch.mm),
    Precision.BF16: (lambda size: torch.randn(size, size, dtype=torch.bfloat16), torch.mm),
    Precision.FP16: (lambda size: torch.randn(size, size, dtype=torch.float16), torch.mm),
    Precision.INT8_STATIC: (
        lambda size: torch.randint(-8, 8, (size, size), dtype=torch.int8),
        torch.ops.aten._int_mm.default,
    ),
}


def _product_rate(make: Callable[[int], Tensor], multiply: Callable[[Tensor, Tensor], Tensor]) -> Measured | None:
    """10^9 operations a second; None if torch cannot, or only by converting element by element."""
    try:
        pilot = make(_PILOT_SIZE)
        multiply(pilot, pilot)
        # The best of a few: on a busy machine a single one may wait for its turn and look hopeless.
        pilot_s = min(_seconds(lambda: multiply(pilot, pilot)) for _ in range(_PILOTS))
        if pilot_s * (_SIZE / _PILOT_SIZE) ** 3 > _LIMIT_S:
            return None
        one, other = make(_SIZE), make(_SIZE)
        best_s, median_s = _best_and_median_s(lambda: multiply(one, other))
        operations = 2 * _SIZE**3 / 1e9
        product = operations / best_s, operations / median_s
        return max(product, _convolution_rate(one.dtype)) if one.is_floating_point() else product
    except RuntimeError:  # "not implemented for ..."
        return None


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _convolution_rate(dtype: torch.dtype) -> Measured:
    """10^9 operations a second of a 3x3 convolution: another library of torch's than that of products."""
    channels, width = 128, 28
    image = torch.randn(1, channels, width, width).to(dtype).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(channels, channels, 3, 3).to(dtype)
    best_s, median_s = _best_and_median_s(lambda: torch.conv2d(image, weight, padding=1))
    operations = 2 * 9 * channels**2 * width**2 / 1e9
    return operations / best_s, operations / median_s


def _byte_rate(working_set: int) -> Measured:
    """10^9 bytes a second of a copy or a sum, whichever is faster, over this many bytes."""
    source, target = torch.zeros(2, working_set // 8)
    repeats = max(1, 2**22 // working_set)

    def copy() -> None:
        for _ in range(repeats):
            target.copy_(source)

    def read() -> None:
        for _ in range(repeats):
            source.sum()
            target.sum()

    moved = repeats * working_set / 1e9
    copied, summed = (_best_and_median_s(call) for call in (copy, read))
    best_s, median_s = min(copied, summed)
    return moved / best_s, moved / median_s


def _best_and_median_s(call: Callable[[], object]) -> tuple[float, float]:
    call()
    times: list[float] = []
    while len(times) < _RUNS and (sum(times) < _LIMIT_S or len(times) < 3):
        times.append(_seconds(call))
    return min(times), statistics.median(times)


def _higher(one: Ceilings, other: Ceilings) -> Ceilings:
    """The higher of each: a busy machine only ever lowers what is measured."""
    gflops = {name: max(rate, other.gflops.get(name, 0.0)) for name, rate in one.gflops.items()}
    rates = {size: max(rate, other.gbytes_per_s_at.get(size, 0.0)) for size, rate in one.gbytes_per_s_at.items()}
    return msgspec.structs.replace(
        one,
        gflops=gflops,
        gbytes_per_s=max(one.gbytes_per_s, other.gbytes_per_s),
        gbytes_per_s_at=rates,
        spread=min(one.spread, other.spread),
    )


def _slug(machine: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in machine.lower())[:80]


def _write(path: Path, kept: _Kept) -> None:
    """Put it in place in one step; a folder that cannot be written is no reason to fail."""
    try:
        write_private(path, msgspec.json.encode(kept), sync=False)
    except OSError:
        return
