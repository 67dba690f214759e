"""Examples to trace with out of a file of arrays or a folder of images."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torch import nn

from ace_studio.engine.examples.arrays import ReadContent, stored_examples
from ace_studio.engine.examples.images import IMAGE_CHANNELS, ImageScaling, examples_from_images, images_to_trace
from ace_studio.engine.examples.wanted import wanted_inputs
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.records.recipes.recipe import Recipe

_WHERE = "[inputs] tracing"


def tracing_examples(path: Path, loaded: LoadedModel, recipe: Recipe, read_content: ReadContent) -> Iterable[Example]:
    """The examples of a file or folder; ``[calibration]`` of the recipe says how images are scaled."""
    if not path.is_dir():
        return stored_examples(read_content(path), loaded.module, giver=path.name, where=_WHERE)
    scaling = ImageScaling(recipe.calibration.mean, recipe.calibration.std)
    own = loaded.data.examples
    if not own:
        return images_to_trace(path, channels=_image_channels(loaded.module), scaling=scaling, where=_WHERE)
    inputs = wanted_inputs(loaded.module, own, recipe)  # the entry's own examples say what size fits
    return examples_from_images(path, own[0], inputs, samples=2, scaling=scaling, where=_WHERE)


def _image_channels(module: nn.Module) -> int:
    """Channels that the first convolution takes, if images have so many; else 3."""
    shapes = [tuple(weight.shape) for weight in module.parameters() if weight.dim() == 4]
    return shapes[0][1] if shapes and shapes[0][1] in IMAGE_CHANNELS else 3
