"""Calibration examples out of a file of arrays or a folder of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from ace_studio.engine.examples.arrays import ReadContent, examples_from_arrays
from ace_studio.engine.examples.images import ImageScaling, examples_from_images
from ace_studio.engine.examples.wanted import WantedInput, wanted_inputs
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.records.recipes.recipe import Recipe

WHERE = "[calibration] inputs"


def with_calibration_data(
    loaded: LoadedModel, examples: Sequence[Example], recipe: Recipe, *, read_content: ReadContent
) -> LoadedModel:
    """The model with a calibration function that reads the recipe's file or folder; as it is if there is none.

    Args:
        loaded: The model and its data sources.
        examples: What the model is traced with; sizes that differ between them are free in the data too.
        recipe: ``[calibration]`` and the dimensions of ``[inputs]`` count.
        read_content: Reads a file of arrays.
    """
    path = loaded.data.calibration_path
    if path is None or loaded.data.calibration is not None:
        return loaded
    inputs = wanted_inputs(loaded.module, examples, recipe)
    return loaded.with_data(calibration=partial(_read, path, examples[0], inputs, recipe, read_content))


def _read(
    path: Path, form: Example, inputs: Sequence[WantedInput], recipe: Recipe, read_content: ReadContent
) -> Iterable[Example]:
    chosen = recipe.calibration
    if path.is_dir():
        scaling = ImageScaling(chosen.mean, chosen.std)
        return examples_from_images(
            path, form, inputs, samples=chosen.samples, subset=chosen.subset, scaling=scaling, where=WHERE
        )
    return examples_from_arrays(
        read_content(path), form, inputs, samples=chosen.samples, subset=chosen.subset, where=f"{WHERE}: {path.name}"
    )
