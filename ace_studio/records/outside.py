"""Data and weights that a recipe names outside of its own folder: nobody expects a recipe to reach there."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.tensors import is_file_value


def outside_files(recipe: Recipe, folder: Path) -> dict[str, Problem]:
    """The request to allow each path of data or weights that leaves the folder, by the hash that allows it.

    Source code is asked for by its content instead. What a link in the folder leads to is in the folder.
    """
    asked: dict[str, Problem] = {}
    for text in _named_files(recipe):
        path = Path(os.path.abspath(folder / text))  # noqa: PTH100 - `..` without following links
        inside = path.is_relative_to(folder.absolute()) or Path(os.path.realpath(path)).is_relative_to(folder.resolve())
        if inside or text.partition(":")[0].endswith(".py"):
            continue
        sha256 = hashlib.sha256(f"read:{path}".encode("utf-8", "surrogateescape")).hexdigest()
        asked[sha256] = Problem(
            code=ErrorCode.UNTRUSTED,
            what=f"{path.name} lies outside of the recipe's folder",
            why=f"the recipe asks to read {path}",
            remedy="if that is what you want, press Trust, or add --trust on the command line",
            where=str(path),
            details=f"sha256:{sha256}",
        )
    return asked


def sent_along(recipe: Recipe, folder: Path, root: Path) -> tuple[str, ...]:
    """The hashes that allow what lies outside of the folder and below a root: the user let it be sent, to be read."""
    found = outside_files(recipe, folder)
    return tuple(sha256 for sha256, problem in found.items() if Path(problem.where).is_relative_to(root))


def _named_files(recipe: Recipe) -> Iterator[str]:
    """What may name a file of data or weights; a bare word is a function, or a file in the folder."""
    inputs, calibration = recipe.inputs, recipe.calibration
    yield from (recipe.model.weights, inputs.tracing, inputs.caught, calibration.inputs, calibration.caught)
    yield from (recipe.evaluate.data, recipe.finetune.data)
    yield from (spec.values for row in inputs.rows for spec in row.values() if is_file_value(spec.values))
