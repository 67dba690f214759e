"""Frontends: how the graph of a loaded model is obtained, one row each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from ace_studio.engine.capture import capture_fingerprint, capture_model
from ace_studio.engine.flow import AnyCapture, Example, LoadedModel
from ace_studio.engine.load.import_gate import GATE
from ace_studio.engine.pipeline import onnx_file
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import report_support, select_targets
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Baseline, CaptureAttempt, CaptureReport

Capture = Callable[
    [LoadedModel, Sequence[Example], Recipe, torch.device, Reporter, tuple[CaptureAttempt, ...]],
    tuple[AnyCapture, CaptureReport],
]


@dataclass(frozen=True)
class Frontend:
    """One way to obtain a graph."""

    capture: Capture
    baseline: str = Baseline().name
    """Name of what every target is compared with."""
    can_leave_the_cpu: bool = True
    can_change_weights: bool = True
    """Whether the module can be pruned and trained."""
    shared: Callable[[AnyCapture], dict[str, Any]] = lambda captured: {}  # noqa: ARG005 - the row's interface
    """What the targets of one job share from the start."""
    fit_recipe: Callable[[Recipe], Recipe] = lambda recipe: recipe
    """The recipe, limited to the targets that this frontend serves."""


def _capture_module(
    loaded: LoadedModel,
    examples: Sequence[Example],
    recipe: Recipe,
    device: torch.device,
    reporter: Reporter,
    rungs_done: tuple[CaptureAttempt, ...],
) -> tuple[AnyCapture, CaptureReport]:
    try:
        captured, report = capture_model(
            loaded, examples, recipe, device=device, reporter=reporter, rungs_done=rungs_done
        )
    finally:
        GATE.raise_refused()  # forward() may import late, and its own code or a capture method may hide the refusal
    support = report_support(captured, select_targets(recipe.targets.names))
    return captured, msgspec.structs.replace(report, support=support)


def _read_file(
    loaded: LoadedModel,
    examples: Sequence[Example],
    recipe: Recipe,
    device: torch.device,
    reporter: Reporter,
    _: tuple[CaptureAttempt, ...],
) -> tuple[AnyCapture, CaptureReport]:
    fingerprint = capture_fingerprint(loaded, recipe, device)
    return onnx_file.capture_onnx_file(loaded, examples, fingerprint=fingerprint, reporter=reporter)


FRONTENDS: dict[str, Frontend] = {
    "torch": Frontend(capture=_capture_module),
    "onnx": Frontend(
        capture=_read_file,
        baseline=onnx_file.BASELINE_NAME,
        can_leave_the_cpu=False,
        can_change_weights=False,
        shared=onnx_file.program_of,
        fit_recipe=onnx_file.with_its_targets,
    ),
}
"""`Loader.frontend` -> row."""
