"""The verbs about past runs: list them, open one's choices again, forget some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import JobFinished
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.session.kept.history import History
from ace_studio.session.verbs.base import Verbs


class HistoryVerbs(Verbs):
    """Part of `Session`: the runs that were made on this machine, by windows and by the command line."""

    history: History

    def load_history(self) -> None:
        """Read the list of past runs, anew if it was read before."""
        with self._problems():
            self._change(history=self.history.list())

    def remove_past_runs(self, run_ids: Sequence[int]) -> None:
        """Forget runs. What they wrote stays on disk."""
        with self._problems():
            self.history.remove(run_ids)
            self._change(history=self.history.list())

    def open_past_run(self, run_id: int) -> None:
        """Open the choices of a past run as a recipe that has no file yet."""
        with self._problems():
            past = self.history.get(run_id)
            if not past.folder:
                raise AceError.of(
                    ErrorCode.NOT_FOUND,
                    f"Run {run_id} does not say where its model was",
                    why="it was kept by an earlier version, which did not write the folder down",
                    remedy="open the model and run it again",
                )
            recipe = parse_recipe(past.recipe_toml, name=f"recipe of run {run_id}")
            self._open(recipe, folder=Path(past.folder), recipe_path=None)

    def _file(self, event: JobFinished, recipe: Recipe, *, folder: str) -> None:
        """Put a finished run into the history."""
        if event.result is not None:
            with self._problems():
                title = Path(recipe.model.source).name or event.job
                text = recipe_text(recipe)
                self.history.add(event.result, recipe_toml=text, title=title, output=event.output, folder=folder)
                if self.document.history is not None:
                    self._change(history=self.history.list())
