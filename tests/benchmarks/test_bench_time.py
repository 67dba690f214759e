"""The recipes of the benchmark of whole jobs are sound, and its figures are lost as its docstring says."""

import pytest

from ace_studio.records.recipes.file import parse_recipe
from ace_studio.records.results import Result, ResultStatus, RunStatus, TargetRun
from tests.benchmarks.bench_time import IDS, PICTURES, RECIPE, figure_of


@pytest.mark.parametrize("inputs", [IDS, PICTURES])
def test_the_recipes_can_be_read(inputs):
    recipe = parse_recipe(RECIPE.format(source="model", inputs=inputs), name="recipe.toml")
    assert recipe.goal.min_sqnr_db == 20.0
    assert recipe.inputs.rows


@pytest.mark.parametrize(("took_s", "verified", "lost"), [(29.0, True, False), (31.0, True, True), (1.0, False, True)])
def test_a_job_beyond_its_limit_or_without_a_verified_artifact_is_lost(took_s, verified, lost):
    run = TargetRun(target="openvino", status=RunStatus.OK, verified=verified)
    assert (
        figure_of(
            "digits", took_s, Result(status=ResultStatus.OK, fingerprint="", environment={}, runs=(run,), chosen=0)
        ).lost
        is lost
    )
