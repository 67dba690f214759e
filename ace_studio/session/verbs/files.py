"""The verbs about files: opening a model or a recipe, saving the choices, getting back those of a crashed window."""

from __future__ import annotations

from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import read_recipe, write_recipe
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept.autosave import Autosave, SavedChoices
from ace_studio.session.kept.settings import Settings
from ace_studio.session.recipe_paths import rebase_recipe, require_file
from ace_studio.session.verbs.base import Verbs


class FileVerbs(Verbs):
    """Part of `Session`: where the choices come from and where they go."""

    settings: Settings
    _autosave: Autosave
    _saved: Recipe

    def _moved_to(self, recipe: Recipe, target: Path) -> None:
        raise NotImplementedError

    def _keep(self) -> None:
        raise NotImplementedError

    def open_path(self, path: str | Path) -> None:
        """Open a recipe (``.toml``), or a model file, about which the engine is then asked. Undo starts anew.

        A model of an installed package is opened by its name, ``timm:resnet18``.
        """
        file = Path(path).expanduser().absolute()
        with self._problems():
            require_file(file)
            if file.suffix == ".toml":
                self._open(read_recipe(file), folder=file.parent, recipe_path=file)
            else:
                self._open(Recipe(model=ModelChoice(source=file.name)), folder=file.parent, recipe_path=None)
            named = named_source(file)
            with self._problems():
                self.settings.add_recent(str(file) if named is None else named.text)
            self._change(recent_files=self.settings.recent_files)

    def forget_recent(self, path: str) -> None:
        """Take a path out of the recent files."""
        with self._problems():
            self.settings.forget_recent(path)
        self._change(recent_files=self.settings.recent_files)

    def save_recipe(self, path: str | Path | None = None) -> bool:
        """Save the choices to where they came from, or to a new file. Returns whether that worked."""
        saved = False
        with self._problems():
            if not path and not self.document.recipe_path:
                raise AceError.of(ErrorCode.USAGE, "The recipe has no file yet", remedy="Choose a name for it: Save as")
            target = Path(path or self.document.recipe_path).expanduser().absolute()
            recipe = rebase_recipe(self.document.recipe, Path(self.document.folder), target.parent)
            write_recipe(recipe, target)
            self._moved_to(recipe, target)
            saved = True
        return saved  # noqa: RET504 - set only if nothing went wrong in the block

    def restorable(self) -> tuple[SavedChoices, ...]:
        """Unsaved choices of windows that crashed, newest first."""
        return self._autosave.left_behind()

    def restore(self, saved: SavedChoices) -> None:
        """Go on with the choices of a window that crashed. They count as unsaved."""
        recipe = saved.recipe()
        if recipe is not None:
            path = Path(saved.recipe_path) if saved.recipe_path else None
            self._open(recipe, folder=Path(saved.folder), recipe_path=path)
            self._saved = Recipe()
            self._change(is_dirty=recipe != self._saved)
            self._keep()
        self._autosave.discard_left_behind()

    def discard_restorable(self) -> None:
        """Forget the choices of windows that crashed."""
        self._autosave.discard_left_behind()

    def close(self) -> None:
        """The window closes cleanly: nothing is left to restore."""
        self._autosave.clear()
