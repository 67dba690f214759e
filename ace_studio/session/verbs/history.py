"""The verbs about past runs: list them, open one's choices again, tag them, forget some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import JobFinished
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.session.kept.history import History
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.files import FileVerbs


class HistoryVerbs:
    """The runs that were made on this machine, by windows and by the command line."""

    def __init__(self, state: SessionState, store: History, files: FileVerbs) -> None:
        self._state = state
        self._files = files
        self.store = store

    def load_history(self) -> None:
        """Read the list of past runs, anew if it was read before."""
        with self._state.reporting():
            self._state.change(history=self.store.list())

    def remove_past_runs(self, run_ids: Sequence[int]) -> None:
        """Forget runs. What they wrote stays on disk."""
        with self._state.reporting():
            self.store.remove(run_ids)
            self._state.change(history=self.store.list())

    def set_tags(self, run_id: int, tags: Sequence[str]) -> None:
        """Replace the tags of a run."""
        with self._state.reporting():
            self.store.set_tags(run_id, tags)
            self._state.change(history=self.store.list())

    def open_past_run(self, run_id: int) -> None:
        """Open the choices of a past run as a recipe that has no file yet."""
        with self._state.reporting():
            past = self.store.get(run_id)
            if not past.folder:
                raise AceError.of(
                    ErrorCode.NOT_FOUND,
                    f"The record of run {run_id} does not name the folder of its model",
                    why="an earlier version of ACE Studio recorded it, without the folder",
                    remedy="open the model and run it again",
                )
            recipe = parse_recipe(past.recipe_toml, name=f"recipe of run {run_id}")
            self._files.open_recipe(recipe, folder=Path(past.folder), name=f"run {run_id} of {past.summary.date}")

    def add_finished(self, event: JobFinished, recipe: Recipe, *, folder: str) -> None:
        """Put a finished run into the history."""
        if event.result is not None:
            with self._state.reporting():
                title = Path(recipe.model.source).name or event.job
                text = recipe_text(recipe)
                self.store.add(event.result, recipe_toml=text, title=title, output=event.output, folder=folder)
                if self._state.document.history is not None:
                    self._state.change(history=self.store.list())
