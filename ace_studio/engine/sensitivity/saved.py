"""A scan on disk: what was found so far, so that one that was stopped goes on where it stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from torch import Tensor

from ace_studio.records.recipes.plan import Precision, Scheme
from ace_studio.records.safe_file import write_atomically

_FORMAT = 2
_MOST_HASHED = 1 << 16
"""Bytes of each input that go into the key, from its beginning; its shape and sum go in whole."""


class SavedScan(msgspec.Struct, kw_only=True):
    """What a scan has found. ``noise`` holds sums over samples and probes; `ended` says that all are in."""

    key: str
    format: int = _FORMAT
    samples_done: int = 0
    ended: bool = False
    forwards: float = 0.0
    """Cost until now, in passes forward over the samples."""
    ranges: dict[str, tuple[float, float]] = {}
    """Node name -> range of its value over all samples."""
    powers: tuple[float, ...] = ()
    """Signal power of each output over all samples; empty before the first pass."""
    noise: dict[str, dict[str, float]] = {}
    """Precision -> op id -> noise at the outputs relative to their signal, times the number of probes."""
    unclear: tuple[str, ...] = ()
    """Ops that gradients could not tell of."""
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
    """A text that is the same for the same model, data and options, and practically never else.

    ``arithmetic`` says what else decides the rounding: the observer, the style of the runtime.
    """
    digest = hashlib.sha256(f"{_FORMAT} {fingerprint} {probes} {arithmetic}".encode())
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
    """What is kept of the scan; an empty one if there is nothing, or nothing that can be read."""
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=SavedScan)
    except (OSError, msgspec.DecodeError):
        return SavedScan(key=key)
    return saved if saved.key == key and saved.format == _FORMAT else SavedScan(key=key)


def write_scan(path: Path, saved: SavedScan) -> None:
    """Keep the scan. A folder that cannot be written costs only the chance to go on later."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, msgspec.json.encode(saved))
    except OSError:
        return
