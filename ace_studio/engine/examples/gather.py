"""Where examples come from: rows of the recipe, a tracing function or file, the entry itself, or calibration data."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path

import torch
from torch import nn

from ace_studio.engine.examples.arrays import ReadContent, examples_from_arrays, stored_examples
from ace_studio.engine.examples.forms import in_one_form, places_of_forward
from ace_studio.engine.examples.images import IMAGE_CHANNELS, ImageScaling, examples_from_images, images_to_trace
from ace_studio.engine.examples.reader import MAX_EXAMPLES, prepared, read_examples
from ace_studio.engine.examples.rows import ReadTensor, examples_from_rows
from ace_studio.engine.examples.wanted import WantedInput, wanted_inputs
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.flow.module_state import state_put_back
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Recipe

CALIBRATION_EXAMPLES = 2


def gather_examples(
    loaded: LoadedModel, recipe: Recipe, folder: Path, *, read_tensor: ReadTensor, read_content: ReadContent
) -> tuple[Example, ...]:
    """The user's examples, from the first source that there is: rows, tracing callable, entry, calibration callable.

    Args:
        loaded: The model and the callables found beside it.
        recipe: What the user asked for.
        folder: Folder that file names in rows are relative to.
        read_tensor: Reads the tensor of a file that a row names.
        read_content: Reads the file of arrays that the recipe names.

    Raises: AceError(BAD_INPUT, USER_CODE or NO_DATA); each says what to do.
    """
    data = loaded.data
    if recipe.inputs.rows:
        if data.calibration is None and data.calibration_path is not None:
            read = partial(tracing_examples, data.calibration_path, loaded, recipe, read_content)
            loaded = loaded.with_data(calibration=read)
        return examples_from_rows(loaded, recipe, folder, read_tensor)
    if data.tracing is None and data.tracing_path is not None:
        data = replace(data, tracing=partial(tracing_examples, data.tracing_path, loaded, recipe, read_content))
    examples = in_one_form(_given_examples(data, places_of_forward(loaded.module)), loaded.module)
    is_calibration = data.tracing is None and not data.examples
    return _with_another_batch(examples, loaded.module) if is_calibration and data.evaluate is not None else examples


def _with_another_batch(examples: tuple[Example, ...], module: nn.Module) -> tuple[Example, ...]:
    """The examples, the last one cut to half its batch if all have the same sizes and the model takes that.

    A metric calls the model with batches of its own, which a graph that was traced at one size would refuse.
    """
    sizes = {tuple(tensor.shape for tensor in one.tensors()) for one in examples}
    batches = {shape[:1] for shapes in sizes for shape in shapes}
    if len(sizes) != 1 or len(batches) != 1 or next(iter(batches)) < (2,):
        return examples
    (size,) = next(iter(batches))
    cut = examples[-1].map_tensors(lambda tensor: tensor[: size // 2])
    try:
        with torch.no_grad(), state_put_back(module):
            cut.copied().call(module)
    except Exception:  # noqa: BLE001 - the user's forward raises anything for a batch that it cannot take
        return examples
    return (*(examples if len(examples) == 1 else examples[:-1]), cut)


def _given_examples(data: DataSources, places: float) -> tuple[Example, ...]:
    """The examples that the user's code or file gives; those of calibration without labels, which forward lacks."""
    if data.tracing is not None:
        return read_examples(
            data.tracing,
            role="tracing",
            where="[inputs] tracing",
            limit=MAX_EXAMPLES,
            remedy="Return at least one example; two that differ in a size show which sizes may change.",
        )
    if data.examples:
        return prepared(data.examples)
    if data.calibration is not None:
        found = read_examples(
            data.calibration,
            role="calibration",
            where="[calibration] inputs",
            limit=CALIBRATION_EXAMPLES,
            remedy="Return at least one example.",
        )
        return tuple(
            replace(one, args=tuple(islice(one.args, None if places == inf else int(places)))) for one in found
        )
    raise AceError.of(
        ErrorCode.NO_DATA,
        "There is nothing to run the model with",
        why="the recipe names no examples, and the entry returned none" + (f"; {data.refused}" if data.refused else ""),
        remedy="Add rows to the shape table (on the command line: --input x=1x3x224x224), or name a function that "
        "returns a list of examples as the tracing inputs.",
        where="[inputs]",
    )


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
