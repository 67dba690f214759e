"""Captured tiny models, and candidates built from them, each made once per session."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import Lowered, LoweringJob
from ace_studio.records.recipes.plan import Plan, Precision
from tests import tiny_models
from tests.engine.captured import captured_of

MODELS: dict[str, Callable[[], tiny_models.TinyModel]] = {
    "conv_net": tiny_models.conv_net,
    "mlp": tiny_models.mlp,
    "text_model": tiny_models.text_model,
}
"""Convolutions with batch norms; linear layers; keyword arguments, a nested dictionary and integer inputs."""


@cache
def captured_model(name: str) -> CapturedModel:
    """One of `MODELS`, captured on the CPU."""
    tiny = MODELS[name]()
    return captured_of(tiny.module, *tiny.examples)


def bound(target: str, captured: CapturedModel, precision: Precision) -> BoundPlan:
    """Everything at one precision, as far as the target can."""
    return bind_plan(Plan(default=precision), captured.table, op_problem=TARGETS[target].op_problem)


_SHARED: dict[int, tuple[CapturedModel, dict[str, Any]]] = {}


def make_job(captured: CapturedModel, plan: BoundPlan, folder: Path) -> LoweringJob:
    """A job on one thread, calibrated with the captured examples; all jobs of a capture share its ONNX model."""
    return LoweringJob(
        captured=captured,
        plan=plan,
        calibration=lambda: captured.examples,
        threads=1,
        device=torch.device("cpu"),
        folder=folder,
        shared=_SHARED.setdefault(id(captured), (captured, {}))[1],
    )


@pytest.fixture(scope="session")
def lower(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Precision, str], Lowered]:
    """Build a candidate, or give the one that was built before."""

    @cache
    def build(target: str, precision: Precision, model: str) -> Lowered:
        captured = captured_model(model)
        job = make_job(captured, bound(target, captured, precision), tmp_path_factory.mktemp(target))
        return TARGETS[target].lower(job)

    return build
