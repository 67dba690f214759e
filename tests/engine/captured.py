"""Captures of small modules, and jobs that compress them, for the tests of what follows the capture."""

from pathlib import Path

import torch
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe

CPU = torch.device("cpu")


def captured_of(module: nn.Module, *inputs: object) -> CapturedModel:
    """A module captured by torch.export on the CPU, with one or more examples of its inputs."""
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    examples = [Example.of(example) for example in inputs]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    return capture_model(loaded, examples, recipe, device=CPU, reporter=Reporter())[0]


def job_of(
    loaded: LoadedModel, *inputs: object, recipe: Recipe | None = None, output: Path, reporter: Reporter | None = None
) -> CompressionJob:
    """The job that compresses a module, after its capture."""
    recipe, reporter = recipe or Recipe(), reporter or Reporter()
    examples = [Example.of(example) for example in inputs]
    captured, report = capture_model(loaded, examples, recipe, device=CPU, reporter=Reporter())
    return CompressionJob.of(loaded, captured, report, recipe=recipe, output=output, reporter=reporter)
