"""Undo and redo of choices: snapshots of the recipe, each with a label for the menu."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ace_studio.records.recipes.recipe import Recipe

MERGE_WITHIN_S = 1.5
"""Edits of the same subject within this time are one step: a spin box, a name being typed."""
LIMIT = 500
"""Steps kept. A recipe is a few kilobytes, and snapshots share what did not change."""


@dataclass(frozen=True)
class UndoStep:
    """One undoable step."""

    label: str
    before: Recipe
    after: Recipe


class UndoStack:
    """The steps that led to the current recipe, and those that were taken back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._done: list[UndoStep] = []
        self._undone: list[UndoStep] = []
        self._subject = ""
        self._last_s = 0.0

    @property
    def undo_label(self) -> str:
        """What undo would take back; empty if nothing."""
        return self._done[-1].label if self._done else ""

    @property
    def redo_label(self) -> str:
        """What redo would put back; empty if nothing."""
        return self._undone[-1].label if self._undone else ""

    def push(self, label: str, before: Recipe, after: Recipe, *, subject: str = "") -> None:
        """Remember a step. Steps with the same non-empty ``subject`` in quick succession become one."""
        now_s = self._clock()
        self._undone.clear()
        is_same = bool(subject) and subject == self._subject and now_s - self._last_s <= MERGE_WITHIN_S
        if is_same and self._done:
            before = self._done.pop().before
        if before != after:
            self._done.append(UndoStep(label, before, after))
            del self._done[:-LIMIT]
        self._subject, self._last_s = subject, now_s

    def break_merge(self) -> None:
        """Make the next step a step of its own."""
        self._subject = ""

    def undo(self) -> Recipe | None:
        """The recipe before the last step, or None."""
        step = self._move(self._done, self._undone)
        return None if step is None else step.before

    def redo(self) -> Recipe | None:
        """The recipe after the step taken back last, or None."""
        step = self._move(self._undone, self._done)
        return None if step is None else step.after

    def _move(self, source: list[UndoStep], to: list[UndoStep]) -> UndoStep | None:
        self.break_merge()
        if not source:
            return None
        to.append(source.pop())
        return to[-1]

    def rewrite(self, change: Callable[[Recipe], Recipe]) -> None:
        """Change every remembered recipe: it was saved to another folder, so its paths change."""
        self._done, self._undone = (
            [UndoStep(step.label, change(step.before), change(step.after)) for step in steps]
            for steps in (self._done, self._undone)
        )

    def clear(self) -> None:
        """Forget everything: another file was opened."""
        self._done.clear()
        self._undone.clear()
        self.break_merge()
