"""The verbs about files: open a model or a recipe, save the choices, restore those of a crashed window."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import parse_recipe, parse_toml, read_recipe_text, text_with, write_recipe
from ace_studio.records.recipes.holding import holding
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.paths import rebase_recipe, relative_to, require_file
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.sweep_file import checked_sweep
from ace_studio.session.artifacts import export_place, export_run, run_artifact
from ace_studio.session.choices import change
from ace_studio.session.document import DiskChange
from ace_studio.session.findings import moved_to
from ace_studio.session.kept.autosave import SavedChoices
from ace_studio.session.kept.settings import Settings
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.jobs import JobVerbs


class FileVerbs:
    """Where the choices come from, and where choices and artifacts go."""

    def __init__(self, state: SessionState, jobs: JobVerbs, settings: Settings) -> None:
        self._state = state
        self._jobs = jobs
        self._settings = settings
        self.opened: Callable[[], None] = lambda: None
        """Called when other choices were opened."""
        self.open_sweep: Callable[[Path], None] = lambda _path: None
        """Opens the file of a sweep, whose first recipe is open."""

    def open_paths(self, paths: Sequence[str]) -> None:
        """Open one file, or Python code together with its weights, in either order."""
        code, weights = _code_and_weights(paths)
        self.open_path(code, weights=weights)

    def open_path(self, path: str | Path, *, weights: str | Path = "") -> None:
        """Open a recipe (``.toml``), or a model file, which the engine then inspects. Undo starts anew.

        A model of an installed package is opened by its name, ``timm:resnet18``. With the file of
        a sweep its first recipe is opened.

        Args:
            path: The file, folder or name.
            weights: A file of weights to load into the model.
        """
        file = Path(path).expanduser().absolute()
        with self._state.reporting():
            require_file(file)
            if file.suffix == ".toml":
                text = read_recipe_text(file)
                if "recipes" in (document := parse_toml(text, file.name)):
                    sweep = checked_sweep(document, name=file.name, text=text)
                    self.open_path(file.parent / sweep.recipes[0])
                    self.open_sweep(file)
                    return
                recipe = parse_recipe(text, name=file.name)
                self.open_recipe(recipe, folder=file.parent, recipe_path=file, text=text)
            else:
                relative = relative_to(Path(weights).expanduser().absolute(), file.parent) if weights else ""
                self.open_recipe(Recipe(model=ModelChoice(source=file.name, weights=relative)), folder=file.parent)
            named = named_source(file)
            with self._state.reporting():
                self._settings.add_recent(str(file) if named is None else named.text)
            self._state.change(recent_files=self._settings.recent_files)

    def open_recipe(
        self, recipe: Recipe, *, folder: Path, recipe_path: Path | None = None, text: str = "", name: str = ""
    ) -> None:
        """Begin with other choices, or with those that were left unsaved the last time; undo takes these back.

        Args:
            recipe: The choices.
            folder: What its paths are relative to.
            recipe_path: Its file; None if it has none yet.
            text: The text of that file.
            name: What its unsaved changes are remembered by; the path of the recipe or of the model by default.
        """
        self._state.look_back()
        self._jobs.cancel(abandon=True)
        state = self._state
        state.undo_stack.clear()
        state.name = name or str(recipe_path or folder / recipe.model.source)
        state.saved, state.saved_text, state.given_up = recipe, text, ""
        remembered = state.autosave.recall(state.name)
        state.are_remembered = remembered is not None
        if remembered is not None:
            with suppress(AceError):
                # If another program changed the file since then, `check_disk` will say so.
                state.saved = parse_recipe(remembered.text, name=state.name)
                state.saved_text = remembered.text
            weights = recipe.model.weights or remembered.recipe.model.weights
            recipe = change(remembered.recipe, "model", weights=weights)
            state.undo_stack.push("the choices of the last time", state.saved, recipe)
        is_dirty = recipe != state.saved
        path = str(recipe_path or "")
        state.set_document(state.fresh(recipe, recipe_path=path, is_dirty=is_dirty, folder=str(folder)))
        self.opened()
        self._jobs.inspect_source(is_opening=recipe_path is None)

    def is_gone(self, path: str) -> bool:
        """Whether a recent file cannot be opened because it is not there any more."""
        try:
            require_file(Path(path))
        except AceError:
            return True
        return False

    def forget_recent(self, path: str) -> None:
        """Take a path out of the recent files."""
        with self._state.reporting():
            self._settings.forget_recent(path)
        self._state.change(recent_files=self._settings.recent_files)

    def save_recipe(self, path: str | Path | None = None) -> bool:
        """Save the choices to where they came from, or to a new file, and return whether that worked.

        Comments, order and blanks of the file that the choices came from stay. A file that somebody else changed is not
        overwritten: `Document.disk_change` then waits for a decision.
        """
        document = self._state.document
        saved = False
        chosen = path or document.recipe_path
        target = Path(chosen).expanduser().absolute()
        with self._state.reporting(), holding(target if chosen else None):
            if not chosen:
                raise AceError.of(ErrorCode.USAGE, "The recipe has no file yet", remedy="Choose a name for it: Save as")
            if str(target) == document.recipe_path and self.check_disk():
                return False
            old_folder = Path(document.folder)
            recipe = rebase_recipe(document.recipe, old_folder, target.parent)
            if document.read_only is not None:
                write_recipe(recipe, target)
                return True  # the present choices are not what was saved
            self._state.saved_text = write_recipe(recipe, target, text=self._state.saved_text)
            # Earlier choices must name files from the new place too.
            self._state.undo_stack.rewrite(lambda earlier: rebase_recipe(earlier, old_folder, target.parent))
            self._state.undo_stack.break_merge()
            self._state.saved = recipe
            self._state.autosave.forget(self._state.name)
            self._state.name = str(target)
            self._state.set_document(moved_to(document, recipe, target))
            saved = True
        return saved  # noqa: RET504 - set only if nothing went wrong in the block

    def check_disk(self) -> bool:
        """Look whether somebody else changed the choices in the recipe's file: `Document.disk_change` says what.

        A change of nothing but comments is taken over without a question.
        """
        state, found = self._state, None
        path = Path(state.document.recipe_path)
        if state.document.recipe_path and path.exists():
            text, base, problem = "", state.saved_text, None
            try:
                text = base = read_recipe_text(path)
                if text != state.saved_text and parse_recipe(text, name=path.name) == state.saved:
                    state.saved_text = text
            except AceError as error:
                base, problem = state.saved_text, error.problem
            if text not in (state.saved_text, state.given_up):
                found = DiskChange(text=text, mine=text_with(base, state.document.recipe), problem=problem)
        if found != state.document.disk_change:
            state.change(disk_change=found)
        return found is not None

    def keep_mine(self) -> None:
        """Go on with the choices of the window; saving puts them into the file that somebody else changed."""
        found = self._state.document.disk_change
        if found is not None:
            # A file that is no recipe any more gives neither choices to compare with nor comments to keep.
            is_sound = found.problem is None
            self._state.saved = parse_recipe(found.text, name="recipe") if is_sound else Recipe()
            self._state.saved_text = found.text if is_sound else self._state.saved_text
            self._state.given_up = found.text
            self._state.change(disk_change=None, is_dirty=self._state.document.recipe != self._state.saved)

    def take_from_disk(self) -> None:
        """Take the choices that somebody else wrote into the file, as a step that can be undone."""
        found = self._state.document.disk_change
        if found is not None and found.problem is None:
            recipe = parse_recipe(found.text, name="recipe")
            self._state.saved, self._state.saved_text = recipe, found.text
            self._state.change(disk_change=None, is_dirty=self._state.document.recipe != recipe)
            self._state.choose("the choices of the changed file", recipe)

    def export_artifact(self, run_index: int, destination: str | Path) -> tuple[Path, ...]:
        """Copy a run's artifact to a file or folder, with its checksum beside it; returns the files written."""
        written: tuple[Path, ...] = ()
        with self._state.reporting():
            document = self._state.document
            folder, chosen = Path(document.output), Path(destination).expanduser().absolute()
            place = export_place(run_artifact(document.runs, run_index, folder), chosen)
            written = tuple(export_run(document.runs, run_index, folder=folder, destination=chosen))
            self._state.change(exported_to=str(place))
        return written

    def restorable(self) -> tuple[SavedChoices, ...]:
        """Unsaved choices of windows that have ended, newest first."""
        return self._state.autosave.left_behind()

    def unsaved(self) -> SavedChoices | None:
        """The choices of this window that are in no recipe file; None if there are none."""
        return self._state.unsaved()

    def restore(self, saved: SavedChoices) -> None:
        """Go on with choices that were left unsaved."""
        self._state.autosave.decline()
        with self._state.reporting():
            self._state.autosave.write(saved)
        self.open_recipe(
            Recipe(model=ModelChoice(source=saved.recipe.model.source)),
            folder=Path(saved.folder),
            recipe_path=Path(saved.recipe_path) if saved.recipe_path else None,
            name=saved.name,
        )

    def decline_restorable(self) -> None:
        """Do not offer these choices again; they come back when their model or recipe is opened."""
        self._state.autosave.decline()


def is_one_model(paths: Sequence[str]) -> bool:
    """Whether the files are at most one model: nothing, one file, or Python code and one file beside it."""
    return len(paths) < 2 or (len(paths) == 2 and sum(path.endswith(".py") for path in paths) == 1)


def _code_and_weights(paths: Sequence[str]) -> tuple[str, str]:
    """The file to open, and the weights to load into it."""
    if len(paths) == 2 and is_one_model(paths):
        code, weights = sorted(paths, key=lambda path: not path.endswith(".py"))
        return code, weights
    return paths[0], ""
