"""What every group of verbs of a session may use. `Session` is where each of these is made."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ace_studio.records.errors import Problem
from ace_studio.records.messages import AnyRequest
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.session.document import Document


class Verbs:
    """Base of the parts of `Session`; it does nothing by itself."""

    @property
    def document(self) -> Document:
        """What there is now."""
        raise NotImplementedError

    def _change(self, **values: Any) -> None:
        """Replace fields of the document, and tell the listeners."""
        raise NotImplementedError

    def _choose(self, label: str, recipe: Recipe, *, subject: str = "") -> None:
        """Make these the choices, as an undoable step. Steps of one ``subject`` in quick succession are merged."""
        raise NotImplementedError

    def _report(self, *problems: Problem) -> None:
        """Show problems."""
        raise NotImplementedError

    def _problems(self) -> AbstractContextManager[None]:
        """Show what the block raises as a problem."""
        raise NotImplementedError

    def _open(self, recipe: Recipe, *, folder: Path, recipe_path: Path | None) -> None:
        """Begin with other choices."""
        raise NotImplementedError

    def _can_start(self) -> bool:
        """Whether the engine is free for a job; says why not if it is not."""
        raise NotImplementedError

    def _submit(self, request: AnyRequest) -> None:
        """Send a request."""
        raise NotImplementedError

    def _trusted(self) -> tuple[str, ...]:
        """Hashes of the files that may run."""
        raise NotImplementedError
