"""The files that a recipe names, and how to name them from another folder."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.tensors import DATA_SUFFIXES, TensorSpec, is_file_value


def require_file(path: Path) -> None:
    """Raises: AceError(NOT_FOUND) if there is no such file or folder, nor a model of a package with that name."""
    if not path.exists() and named_source(path) is None:
        raise missing_file(path)


def missing_file(path: Path) -> AceError:
    """The error for a path where nothing is: the cause, as far as it is known, and what to do."""
    why, remedy = f"{path} does not exist", "check the path, or open the file with the dialog of the window"
    file, _, entry = str(path).rpartition(":")
    if "\\udc" in str(path):  # what became of bytes that are not UTF-8 on their way to this process
        why, remedy = "a name that is not UTF-8 cannot be opened", "rename the file or its folder"
    elif entry.isidentifier() and Path(file).is_file():
        why = f"{entry} is a name in {Path(file).name} and no part of the path"
        remedy = f'give the file alone, and the name as the entry: entry = "{entry}", or --entry {entry}'
    return AceError.of(
        ErrorCode.NOT_FOUND, f"There is no file {path.name or path}", why=why, remedy=remedy, where=str(path)
    )


def rebase_recipe(recipe: Recipe, old_folder: Path, new_folder: Path) -> Recipe:
    """The same recipe with its relative paths written from another folder."""
    if old_folder == new_folder:
        return recipe

    def moved(path: str) -> str:
        stays = not path or Path(path).is_absolute() or named_source(path) is not None
        return path if stays else relative_to(old_folder / path, new_folder)

    return with_paths(recipe, moved)


def relative_to(path: Path, folder: Path) -> str:
    """The path relative to a folder, with forward slashes; absolute if it is on another drive."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return path.as_posix()


def with_paths(recipe: Recipe, moved: Callable[[str], str]) -> Recipe:
    """The recipe with every path in it replaced; ``moved`` also gets empty ones, and names of models of packages."""

    def moved_callable(text: str) -> str:
        file, colon, name = text.rpartition(":")
        return f"{moved(file)}:{name}" if colon else text

    def moved_data(text: str) -> str:
        if text.endswith("/"):
            return f"{moved(text)}/"
        return moved(text) if text.endswith(DATA_SUFFIXES) else moved_callable(text)

    def moved_tensor(spec: TensorSpec) -> TensorSpec:
        return replace(spec, values=moved(spec.values)) if is_file_value(spec.values) else spec

    model, inputs, calibration, finetune, judging = (
        recipe.model, recipe.inputs, recipe.calibration, recipe.finetune, recipe.evaluate
    )  # fmt: skip
    rows = tuple({name: moved_tensor(spec) for name, spec in row.items()} for row in inputs.rows)
    return replace(
        recipe,
        model=replace(
            model, source=moved(model.source), entry=moved_callable(model.entry), weights=moved(model.weights)
        ),
        inputs=replace(inputs, tracing=moved_data(inputs.tracing), rows=rows, caught=moved(inputs.caught)),
        calibration=replace(calibration, inputs=moved_data(calibration.inputs), caught=moved(calibration.caught)),
        finetune=replace(finetune, data=moved_callable(finetune.data), loss=moved_callable(finetune.loss)),
        evaluate=replace(judging, function=moved_callable(judging.function), data=moved_data(judging.data)),
    )


def paths_in(recipe: Recipe, folder: Path) -> Iterator[Path]:
    """Every path that a recipe names, as seen from its folder; of ``file:name`` also that of the file."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    with_paths(recipe, note)
    for text in filter(None, texts):
        if named_source(folder / text) is None:
            yield folder / text
            yield folder / text.rpartition(":")[0]
