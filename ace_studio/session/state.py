"""The document with its undo stack and autosave file: what every part of the session changes."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from ace_studio.records.errors import AceError, Problem
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.session.document import Document, Part, changed_parts
from ace_studio.session.findings import with_problems
from ace_studio.session.kept.autosave import Autosave, SavedChoices
from ace_studio.session.kept.undo import UndoStack

Listener = Callable[[Document, frozenset[Part]], None]

ABOUT_THE_WINDOW = ("activity", "log", "environment", "history", "history_waits", "pins", "recent_files", "sweep")
"""Fields of the document that do not depend on what is open."""


class SessionState:
    """Holds the current document and tells the listeners about every new one."""

    def __init__(self, document: Document, *, autosave: Autosave, clock: Callable[[], float]) -> None:
        self.document = document
        self.undo_stack = UndoStack(clock)
        self.autosave = autosave
        self.name = ""
        """What the unsaved choices are remembered by: the path of the recipe or of the model, or a past run."""
        self.are_remembered = False
        """Whether the choices are those that were left unsaved the last time."""
        self.saved = Recipe()
        """The recipe as it was last opened or saved."""
        self.saved_text = ""
        """The text of its file at that time; empty without a file."""
        self.given_up = ""
        """The text of the file that the user decided to overwrite."""
        self.listeners: list[Listener] = []
        self._clock = clock
        self._aside: tuple[Document, UndoStack] | None = None

    @property
    def present(self) -> Document:
        """The document of the present choices, also while a past run is looked at."""
        return self.document if self._aside is None else self._aside[0]

    def set_document(self, document: Document) -> None:
        """Replace the document, and tell the listeners which parts changed."""
        document = replace(document, undo_label=self.undo_stack.undo_label, redo_label=self.undo_stack.redo_label)
        parts = changed_parts(self.document, document)
        self.document = document
        if parts:
            self.tell(parts)

    def change(self, **values: Any) -> None:
        """Replace fields of the document."""
        self.set_document(replace(self.document, **values))

    def tell(self, parts: Collection[Part]) -> None:
        """Call the listeners."""
        for listener in tuple(self.listeners):
            listener(self.document, frozenset(parts))

    def report(self, *problems: Problem) -> None:
        """Add problems to the document."""
        self.set_document(with_problems(self.document, *problems))

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turn an `AceError` of the block into problems of the document."""
        try:
            yield
        except AceError as error:
            self.report(*error.problems)

    def fresh(self, recipe: Recipe, **values: Any) -> Document:
        """A document of other choices, in this window."""
        kept = {name: getattr(self.document, name) for name in ABOUT_THE_WINDOW}
        return Document(recipe=recipe, **kept, **values)

    def look_at(self, past: Document) -> None:
        """Show a past run. The present choices and findings are put aside until `look_back`."""
        if self._aside is None:
            self._aside = self.document, self.undo_stack
            self.undo_stack = UndoStack(self._clock)
        self.set_document(past)

    def look_back(self) -> None:
        """Show the present choices and findings again; nothing happens if they are shown."""
        if self._aside is not None:
            (document, self.undo_stack), self._aside = self._aside, None
            self.set_document(_in_window_of(document, self.document))

    @contextmanager
    def at_present(self) -> Iterator[None]:
        """What the block does is about the present choices and findings, whatever is shown.

        What is shown stays, but for what is about the window; the listeners hear of that at the end.
        """
        if self._aside is None:
            yield
            return
        shown, listeners = (self.document, self.undo_stack), self.listeners
        (present, self.undo_stack), self._aside = self._aside, None
        self.document, self.listeners = _in_window_of(present, self.document), []
        try:
            yield
        finally:
            self._aside, self.listeners = (self.document, self.undo_stack), listeners
            found = self.document
            self.document, self.undo_stack = shown
            self.set_document(_in_window_of(self.document, found))

    def choose(self, label: str, recipe: Recipe, *, subject: str = "") -> None:
        """Make this the recipe, as an undoable step. Steps of one ``subject`` in quick succession are merged."""
        if (read_only := self.document.read_only) is not None:
            self.report(read_only)
            self.tell({Part.RECIPE})
        elif recipe != self.document.recipe:
            self.undo_stack.push(label, self.document.recipe, recipe, subject=subject)
            self.set_recipe(recipe)

    def set_recipe(self, recipe: Recipe) -> None:
        """Replace the recipe without a step of undo, and remember it until it is saved."""
        self.change(recipe=recipe, is_dirty=recipe != self.saved)
        unsaved = self.unsaved()
        if unsaved is not None:
            with self.reporting():
                self.autosave.write(unsaved)
        else:
            self.autosave.forget(self.name)

    def unsaved(self) -> SavedChoices | None:
        """The choices that are in no recipe file; None if there are none."""
        document = self.present
        if not document.is_dirty:
            return None
        return SavedChoices(
            name=self.name,
            folder=document.folder,
            recipe_path=document.recipe_path,
            text=self.saved_text,
            recipe=document.recipe,
        )


def _in_window_of(document: Document, other: Document) -> Document:
    """A document with what the other one says about the window."""
    return replace(document, **{name: getattr(other, name) for name in ABOUT_THE_WINDOW})
