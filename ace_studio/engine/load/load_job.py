"""What every builder of the registry gets and gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ace_studio.engine.flow import Example
from ace_studio.engine.load.callables import CodeLibrary, Reference
from ace_studio.engine.progress import Reporter


@dataclass(frozen=True)
class LoadJob:
    """What a builder gets. Everything that will run has been trusted by now."""

    path: Path
    """The model's source."""
    entry: Reference | None
    library: CodeLibrary
    reporter: Reporter
    entry_word: str = ""
    """What the recipe says as its entry, for kinds that have a word of their own there."""
    has_weights: bool = False
    """Whether weights from another file are put in afterwards."""


@dataclass(frozen=True)
class OpenedModel:
    """A live module, and the examples that came with it."""

    module: nn.Module
    examples: tuple[Example, ...] = ()
    files: tuple[Path, ...] = ()
    """What was read beside the source, for the check at the end that nothing changed."""
    reference: nn.Module | None = None
    """What the module was written from, and must equal on every example; None if the module is the original."""
