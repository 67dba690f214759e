"""The exact build of a target is timed beside its compressed candidates where the result has no fp32 there."""

import pytest
import torch

from ace_studio.engine.flow import LoadedModel
from ace_studio.engine.pipeline.compress import stages
from ace_studio.engine.pipeline.compress.candidates import make_candidate
from ace_studio.engine.pipeline.compress.proving import TargetProof
from ace_studio.engine.pipeline.compress.stages import float_references
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Plan, Precision
from tests import tiny_models
from tests.engine.captured import job_of


@pytest.fixture
def job(tmp_path):
    """With a compressed candidate of a target whose exact build is kept."""
    tiny = tiny_models.mlp()
    loaded = LoadedModel(module=tiny.module, source=tmp_path, sha256="", original=tiny.module)
    with torch.no_grad():
        made = job_of(loaded, *tiny.examples, output=tmp_path)
        made.state.candidates = [built(made, Precision.INT8_WEIGHT)]
        made.state.proofs["eager"] = TargetProof(exact=made.captured.module, probes=1)
        yield made


def built(job, precision):
    made = make_candidate(TARGETS["eager"], Plan(default=precision), job.captured.table, device=torch.device("cpu"))
    made.lowered = job.captured.module
    return made


def test_the_exact_build_is_given_once_and_its_memory_is_free_again(job):
    with float_references(job) as found:
        assert list(found) == ["eager"]
    assert not job.state.proofs


def test_where_fp32_is_a_run_nothing_is_given(job):
    job.state.candidates.append(built(job, Precision.FP32))
    with float_references(job) as found:
        assert found == {}


def test_what_was_not_kept_is_not_given(job):
    job.state.proofs["eager"] = TargetProof(probes=1)
    with float_references(job) as found:
        assert found == {}


def test_where_its_rounds_would_take_long_it_is_not_measured(job, monkeypatch):
    monkeypatch.setattr(stages, "LONGEST_TIMING_S", 0.0)
    monkeypatch.setattr(stages, "SHARE", 0.0)
    with float_references(job) as found:
        assert found == {}
