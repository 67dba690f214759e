"""Calibration data out of files: bound to the model once its examples say what its inputs look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from ace_studio.engine.examples.data_files import ImageScaling, WantedInput, examples_from_arrays, examples_from_images
from ace_studio.engine.examples.leaves import forward_parameters, named_leaves
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.load.tensors import read_arrays, read_checkpoint
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.tensors import DimChoice

WHERE = "[calibration] inputs"


def read_calibration_data(loaded: LoadedModel, examples: Sequence[Example], recipe: Recipe) -> None:
    """Give the loaded model a calibration function that reads the recipe's file or folder; nothing without one.

    Args:
        loaded: Changed here.
        examples: What the model is traced with; sizes that differ between them are free in the data too.
        recipe: ``[calibration]`` and the dimensions of ``[inputs]`` count.
    """
    if loaded.calibration_data is not None and loaded.calibration is None:
        inputs = wanted_inputs(loaded, examples, recipe)
        loaded.calibration = partial(_read, loaded.calibration_data, examples[0], inputs, recipe)


def wanted_inputs(loaded: LoadedModel, examples: Sequence[Example], recipe: Recipe) -> list[WantedInput]:
    """Name, traced tensor and free dimensions of every tensor input."""
    leaves = [leaf for leaf in named_leaves(examples[0], forward_parameters(loaded.module)) if leaf.tensor is not None]
    others = [example.tensors() for example in examples]
    found = []
    for index, leaf in enumerate(leaves):
        assert leaf.tensor is not None
        shapes = [tuple(one[index].shape) for one in others if len(one) == len(leaves)]
        free = {
            dim
            for dim in range(leaf.tensor.dim())
            if len({shape[dim] for shape in shapes if len(shape) == leaf.tensor.dim()}) > 1
            or recipe.inputs.dims.get(f"{leaf.name}.{dim}") is DimChoice.DYNAMIC
        }
        found.append(WantedInput(leaf.name, leaf.tensor, frozenset(free)))
    return found


def _read(path: Path, form: Example, inputs: Sequence[WantedInput], recipe: Recipe) -> Iterable[Example]:
    chosen = recipe.calibration
    if path.is_dir():
        scaling = ImageScaling(chosen.mean, chosen.std)
        return examples_from_images(
            path, form, inputs, samples=chosen.samples, subset=chosen.subset, scaling=scaling, where=WHERE
        )
    return examples_from_arrays(
        named_content(path), form, inputs, samples=chosen.samples, subset=chosen.subset, where=f"{WHERE}: {path.name}"
    )


def named_content(path: Path) -> Mapping[str, Any]:
    """What the file holds, by name; a list or a lone tensor of a ``.pt`` file under an empty name."""
    if path.suffix != ".pt":
        return read_arrays(path)
    content = read_checkpoint(path)
    if not isinstance(content, Mapping):
        return {"": content}
    return {str(key): value for key, value in content.items() if isinstance(value, Tensor | list | tuple)}
