"""Core ML packages that the tests of this folder build."""

import pytest

from ace_studio.engine.plan import bind_plan
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.targets.conftest import captured_model, make_job

TARGET = TARGETS["coreml"]
needs_coreml = pytest.mark.skipif(not TARGET.available().ok, reason=TARGET.available().reason)
WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"


def build(model: str, plan: Plan, folder):
    captured = captured_model(model)
    bound = bind_plan(plan, captured.table, op_problem=TARGET.op_problem)
    return TARGET.lower(make_job(captured, bound, folder))


def operations(spec):
    return next(iter(spec.mlProgram.functions["main"].block_specializations.values())).operations


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The saved ``mlp`` with 8-bit weights."""
    folder = tmp_path_factory.mktemp("mlp")
    return build("mlp", Plan(default=Precision.INT8_WEIGHT), folder).save(folder)
