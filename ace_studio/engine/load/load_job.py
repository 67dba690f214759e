"""The argument and the result of every loader's ``build`` function."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ace_studio.engine.flow import Example
from ace_studio.engine.load.callables import CallableReference, CodeLibrary
from ace_studio.engine.progress import Reporter


@dataclass(frozen=True)
class LoadJob:
    """A model to open. All code that will run has been trusted by now."""

    path: Path
    """The model's source."""
    content: Path
    """Where to read it: a private copy if it is code, so that what was hashed for the trust check is what runs."""
    entry: CallableReference | None
    library: CodeLibrary
    reporter: Reporter
    entry_word: str = ""
    """The recipe's entry, for kinds whose entry is a word and not a callable in a file."""
    has_weights: bool = False
    """Whether weights from another file are loaded afterwards."""

    def warn_of_random_weights(self, name: str, *, where: str = "") -> None:
        """Warn that the model has random weights, unless weights from another file follow."""
        if not self.has_weights:
            self.reporter.warn(
                "random-weights",
                f"{name} has random weights: shapes, speed and size are those of the real model, its answers are not. "
                "Name a file as [model] weights to change that",
                where=where,
            )


@dataclass(frozen=True)
class OpenedModel:
    """A live module and the examples that came with it."""

    module: nn.Module
    examples: tuple[Example, ...] = ()
    are_made_up: bool = False
    """Whether the examples are random numbers of sizes that the file describes."""
    files: tuple[Path, ...] = ()
    """Files that were read besides the source; a job checks at its end that none has changed."""
    reference: nn.Module | None = None
    """The original that the module was translated from and must equal on every example; None if it is the original."""
