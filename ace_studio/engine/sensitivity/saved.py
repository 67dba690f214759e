"""A scan on disk: results so far, so that a scan that was stopped can continue."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from torch import Tensor

from ace_studio.engine.own_code import own_code
from ace_studio.records.recipes.plan import Precision, Scheme
from ace_studio.records.safe_file import read_or_none, write_private

_FORMAT = 2
_MOST_HASHED = 1 << 16
"""Bytes of each input that go into the key, from its beginning; its shape and sum go in whole."""


class SavedScan(msgspec.Struct, kw_only=True):
    """Results of a scan. ``noise`` holds sums over samples and probes; they are complete if `ended`."""

    key: str
    format: int = _FORMAT
    samples_done: int = 0
    ended: bool = False
    forwards: float = 0.0
    """Cost so far, in forward passes over the samples."""
    ranges: dict[str, tuple[float, float]] = {}
    """Node name -> range of its value over all samples."""
    powers: tuple[float, ...] = ()
    """Signal power of each output over all samples; empty before the first pass."""
    noise: dict[str, dict[str, float]] = {}
    """Precision -> op id -> noise at the outputs relative to their signal, times the number of probes."""
    unclear: tuple[str, ...] = ()
    """Ops without a finite gradient."""
    alone: dict[str, dict[str, float]] = {}
    """Precision -> op id -> relative noise found by running the model with that op alone at the precision."""
    notes: tuple[str, ...] = ()


def scan_key(
    fingerprint: str,
    samples: Sequence[Sequence[Tensor]],
    *,
    precisions: Sequence[Precision],
    scheme: Scheme,
    probes: int,
    arithmetic: str = "",
) -> str:
    """A hash of the model, the data, the options and the code that scans.

    ``arithmetic`` names what else decides the rounding: the observer, the style of the runtime.
    """
    digest = hashlib.sha256(f"{_FORMAT} {fingerprint} {probes} {arithmetic}".encode())
    digest.update(own_code("ops", "quantize", "sensitivity", "torch_private").encode())
    digest.update(" ".join(precisions).encode() + msgspec.json.encode(scheme))
    for sample in samples:
        for leaf in sample:
            plain = leaf.detach().cpu().contiguous()
            digest.update(
                f"{tuple(plain.shape)} {plain.dtype} {plain.double().sum().item() if plain.numel() else 0}".encode()
            )
            digest.update(bytes(plain.flatten()[: _MOST_HASHED // 8].numpy().tobytes()))
    return digest.hexdigest()


def read_scan(path: Path, key: str) -> SavedScan:
    """The saved scan; an empty one if there is none, or it cannot be read."""
    saved = read_or_none(path, SavedScan)
    return saved if saved and saved.key == key and saved.format == _FORMAT else SavedScan(key=key)


def write_scan(path: Path, saved: SavedScan) -> None:
    """Save the scan. If the folder cannot be written, it only cannot continue later."""
    try:
        write_private(path, msgspec.json.encode(saved))
    except OSError:
        return
