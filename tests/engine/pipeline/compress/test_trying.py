"""A pruned or trained model is compared with the original, and its lowering with what was lowered."""

from __future__ import annotations

import copy

import pytest
import torch

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import BoundPlan, Example, LoadedModel
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.trying import check
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import RunStatus, TargetRun
from tests import tiny_models


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    tiny = tiny_models.mlp()
    changed = copy.deepcopy(tiny.module)
    with torch.no_grad():
        changed[0].weight[:16] = 0.0
        loaded = LoadedModel(module=changed, source=tmp_path_factory.mktemp("m"), sha256="", original=tiny.module)
        examples = [Example.of(one) for one in tiny.examples]
        captured, report = capture_model(loaded, examples, Recipe(), device=torch.device("cpu"), reporter=Reporter())
        return CompressionJob.of(
            loaded,
            captured,
            report,
            recipe=Recipe(),
            output=tmp_path_factory.mktemp("out"),
            reporter=Reporter(),
        )


def candidate_that_computes(call):
    run = TargetRun(target="eager", status=RunStatus.OK, precision="fp32")
    plan = BoundPlan(Plan())
    return Candidate(TARGETS["eager"], plan, run, lowered=call)


def test_a_right_lowering_of_a_changed_model_tells_how_far_it_is_from_the_original(job):
    candidate = candidate_that_computes(job.captured.module)
    with torch.no_grad():
        check(job, candidate)
    assert 0 < candidate.run.sqnr_db < 30  # half of a layer is gone, and that is told, not refused


def test_a_lowering_that_computes_something_else_than_what_was_lowered_is_refused(job):
    with torch.no_grad(), pytest.raises(AceError) as caught:
        check(job, candidate_that_computes(lambda x: job.captured.module(x) * 1.5))
    assert caught.value.problem.code is ErrorCode.WRONG_CAPTURE
