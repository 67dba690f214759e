"""A loaded model made ready: on its device, with the examples to trace it with."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from ace_studio.engine.environment import choose_device
from ace_studio.engine.examples.calibration_data import with_calibration_data
from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.examples.reader import limit_examples
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.flow.plain_tensors import check_plain
from ace_studio.engine.load import check_translation, read_named_content, read_tensor
from ace_studio.engine.metrics import Score
from ace_studio.engine.pipeline.compress.calibration import WatchedMetric
from ace_studio.engine.pipeline.data_sizes import with_sizes_of_data
from ace_studio.engine.pipeline.frontends import FRONTENDS
from ace_studio.engine.pipeline.half_models import at_fp32
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Recipe, ShapesFrom


@dataclass(frozen=True)
class ReadyModel:
    """A model and the user's examples, on one device."""

    loaded: LoadedModel
    examples: tuple[Example, ...]
    device: torch.device
    score: Score | None = None
    """The metric of the user's model, if reading the sizes of the data took a whole evaluation."""


def make_ready(
    loaded: LoadedModel, recipe: Recipe, folder: Path, *, reporter: Reporter | None = None, must_fit: bool = False
) -> ReadyModel:
    """Move the model to the recipe's device, gather its examples there, and bind its calibration file to them.

    On the CPU, a model with 16-bit weights becomes one at fp32.

    Args:
        loaded: The model and its data sources.
        recipe: ``[inputs]``, ``[calibration]`` and ``[measure] device`` count.
        folder: Folder that the recipe's paths are relative to.
        reporter: Hears of progress and warnings.
        must_fit: Whether the data must do for a run: sizes that the examples do not cover, and a goal for the metric
            without one, are errors.

    Raises: AceError, as `gather_examples` and `with_sizes_of_data` say; AceError(NO_DATA) if there is no metric;
        AceError(WRONG_CAPTURE) if a translated TorchScript program differs.
    """
    reporter = reporter or Reporter()
    limit_examples(recipe.limits.examples)
    if must_fit:
        _check_metric(loaded, recipe)
    device = choose_device(recipe.measure.device if FRONTENDS[loaded.frontend].can_leave_the_cpu else "cpu")
    _check_names(loaded.module)
    own = itertools.chain(loaded.module.named_parameters(), loaded.module.named_buffers())
    check_plain(own, "The model has", code=ErrorCode.USER_CODE, kinds=("meta",))
    loaded.module.to(device)
    with torch.no_grad():
        gathered = gather_examples(loaded, recipe, folder, read_tensor=read_tensor, read_content=read_named_content)
        for number, one in enumerate(gathered, start=1):
            tensors = ((f"tensor {at}", leaf) for at, leaf in enumerate(one.tensors()))
            check_plain(tensors, f"Example {number} holds", code=ErrorCode.BAD_INPUT, where="[inputs]")
        examples = tuple(example.map_tensors(lambda leaf: leaf.to(device)) for example in gathered)
        if device.type == "cpu" and loaded.frontend == "torch":
            loaded, examples = at_fp32(loaded, examples, reporter)
        check_translation(loaded, examples)
        if loaded.data.evaluate is not None:
            loaded = loaded.with_data(evaluate=WatchedMetric(loaded.data.evaluate))
        score = None
        takes_data = recipe.inputs.shapes_from is ShapesFrom.DATA
        if (must_fit or takes_data) and loaded.frontend == "torch" and not recipe.capture.batch_only:
            examples, score = with_sizes_of_data(loaded, examples, recipe, folder, reporter)
    loaded = with_calibration_data(loaded, examples, recipe, read_content=read_named_content)
    return ReadyModel(loaded, examples, device, score)


def _check_metric(loaded: LoadedModel, recipe: Recipe) -> None:
    has_metric = loaded.data.evaluate is not None or loaded.data.labelled is not None or recipe.evaluate.data
    if recipe.goal.max_drop is not None and not has_metric:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "The goal limits the drop of the metric, but there is no metric",
            why="[goal] max_drop needs a metric, and [evaluate] names neither a function nor a metric with data",
            remedy="Name one of them in [evaluate], or use min_sqnr_db, which needs no labels.",
            where="[goal] max_drop",
        )


def _check_names(module: nn.Module) -> None:
    names = (name for name, _ in itertools.chain(module.named_modules(), module.named_buffers()))
    if bad := next((name for name in names if not name.isprintable()), ""):
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"A part of the model has a name that no graph can hold: {bad!a}",
            why="it has a line break, a control character or half a character in it",
            remedy="Name modules and buffers with letters, digits and underscores.",
        )
