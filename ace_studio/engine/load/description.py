"""What can be said of a file before anything of it runs; every row of the registry fills it."""

from __future__ import annotations

from dataclasses import dataclass

from ace_studio.records.messages import EntryPoint, StoredTensor
from ace_studio.records.tensors import TensorSpec


@dataclass(frozen=True)
class Description:
    """What could be found out about a file without running anything."""

    would_run: tuple[str, ...] = ()
    entries: tuple[EntryPoint, ...] = ()
    tensors: tuple[StoredTensor, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, TensorSpec], ...] = ()
    """Rows of example inputs that the file's own words allow to propose."""
