"""A loaded model made ready: on its device, with the examples to trace it with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from ace_studio.engine.environment import choose_device
from ace_studio.engine.examples.calibration_data import with_calibration_data
from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.load import check_translation, read_named_content, read_tensor
from ace_studio.engine.pipeline.frontends import FRONTENDS
from ace_studio.records.recipes.recipe import Recipe


@dataclass(frozen=True)
class ReadyModel:
    """A model and the user's examples, on one device."""

    loaded: LoadedModel
    examples: tuple[Example, ...]
    device: torch.device


def make_ready(loaded: LoadedModel, recipe: Recipe, folder: Path) -> ReadyModel:
    """Move the model to the recipe's device, gather its examples there, and bind its calibration file to them.

    Args:
        loaded: The model and its data sources.
        recipe: ``[inputs]``, ``[calibration]`` and ``[measure] device`` count.
        folder: Folder that the recipe's paths are relative to.

    Raises: AceError, as `gather_examples` says; AceError(WRONG_CAPTURE) if a translated TorchScript program differs.
    """
    device = choose_device(recipe.measure.device if FRONTENDS[loaded.frontend].can_leave_the_cpu else "cpu")
    loaded.module.to(device)
    with torch.no_grad():
        gathered = gather_examples(loaded, recipe, folder, read_tensor=read_tensor, read_content=read_named_content)
        examples = tuple(example.map_tensors(lambda leaf: leaf.to(device)) for example in gathered)
        check_translation(loaded, examples)
    return ReadyModel(
        with_calibration_data(loaded, examples, recipe, read_content=read_named_content), examples, device
    )
