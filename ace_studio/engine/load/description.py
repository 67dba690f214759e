"""The result of every loader's ``describe`` function."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ace_studio.records.messages import EntryPoint, StoredTensor
from ace_studio.records.tensors import TensorSpec


@dataclass(frozen=True)
class Description:
    """Facts about a file that are found without running any of its code."""

    would_run: tuple[str, ...] = ()
    entries: tuple[EntryPoint, ...] = ()
    tensors: tuple[StoredTensor, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, TensorSpec], ...] = ()
    """Example inputs proposed from the file's own description."""
    loads_weights: bool = False
    weights: tuple[Path, ...] = ()
    code: tuple[Path, ...] = ()
    fits: tuple[str, ...] = ()
    """These four as in `FileReport`."""
