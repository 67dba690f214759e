"""Examples to trace with out of a file of arrays or a folder of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from torch import nn

from ace_studio.engine.examples.data_files import ImageScaling, examples_from_images, images_to_trace
from ace_studio.engine.examples.from_arrays import stored_examples
from ace_studio.engine.examples.gather import MAX_EXAMPLES
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.pipeline.calibration_data import named_content, wanted_inputs
from ace_studio.records.recipes.recipe import Recipe

WHERE = "[inputs] tracing"
_IMAGE_CHANNELS = (1, 3)


def read_tracing_data(loaded: LoadedModel, recipe: Recipe) -> None:
    """Give the loaded model a tracing function that reads the recipe's file or folder; nothing without one.

    Args:
        loaded: Changed here.
        recipe: How images are scaled stands in ``[calibration]``.
    """
    if loaded.tracing_data is not None and loaded.tracing is None:
        loaded.tracing = partial(_read, loaded, recipe)


def _read(loaded: LoadedModel, recipe: Recipe) -> Iterable[Example]:
    path = loaded.tracing_data
    assert path is not None  # or nobody would ask
    if not path.is_dir():
        return stored_examples(named_content(path), loaded.module, giver=path.name, where=WHERE)[:MAX_EXAMPLES]
    scaling = ImageScaling(recipe.calibration.mean, recipe.calibration.std)
    if not loaded.examples:
        return images_to_trace(path, channels=_image_channels(loaded.module), scaling=scaling, where=WHERE)
    inputs = wanted_inputs(loaded, loaded.examples, recipe)  # the entry's own examples say what size fits
    return examples_from_images(path, loaded.examples[0], inputs, samples=2, scaling=scaling, where=WHERE)


def _image_channels(module: nn.Module) -> int:
    """What the first convolution takes, if pictures have so many channels; 3 else."""
    shapes: Sequence[tuple[int, ...]] = [tuple(one.shape) for one in module.parameters() if one.dim() == 4]
    return shapes[0][1] if shapes and shapes[0][1] in _IMAGE_CHANNELS else 3
