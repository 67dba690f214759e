"""fp32 of a runtime is built for comparison only where the result has none and it costs little."""

import pytest
import torch

from ace_studio.engine.flow import LoadedModel
from ace_studio.engine.pipeline.compress import stages, trying
from ace_studio.engine.pipeline.compress.candidates import make_candidate
from ace_studio.engine.pipeline.compress.stages import float_references
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import Progress, TargetAtWork
from ace_studio.records.recipes.plan import Plan, Precision
from tests import tiny_models
from tests.engine.captured import job_of

TOLD = []


@pytest.fixture(scope="module")
def whole_job(tmp_path_factory):
    tiny = tiny_models.mlp()
    loaded = LoadedModel(module=tiny.module, source=tmp_path_factory.mktemp("m"), sha256="", original=tiny.module)
    output, reporter = tmp_path_factory.mktemp("out"), Reporter(TOLD.append)
    with torch.no_grad():
        return job_of(loaded, *tiny.examples, output=output, reporter=reporter)


@pytest.fixture
def job(whole_job):
    """With a compressed candidate of a target whose fp32 is no other than itself, which takes milliseconds to build."""
    whole_job.state.candidates = [built(whole_job, Precision.INT8_WEIGHT)]
    TOLD.clear()
    with torch.no_grad():
        yield whole_job


def built(job, precision, seconds=0.1):
    made = make_candidate(TARGETS["eager"], Plan(default=precision), job.captured.table, device=torch.device("cpu"))
    made.lowered = job.captured.module
    made.note(build_seconds=seconds)
    return made


def test_a_soon_built_target_without_fp32_gets_one_that_computes_as_the_original_and_is_no_run(job):
    with float_references(job) as found:
        assert list(found) == ["eager"]
        (given,) = job.captured.examples[0].args
        assert torch.allclose(found["eager"](given), job.captured.module(given), atol=1e-5)
        assert len(job.state.candidates) == 1
    assert found == {}  # its memory is free again
    assert job.reporter.warnings == []
    assert "eager fp32, to compare with" in [one.detail for one in TOLD if isinstance(one, Progress)]
    assert [one.target for one in TOLD if isinstance(one, TargetAtWork)] == ["eager", ""]


def test_where_fp32_is_a_run_or_the_build_took_long_nothing_is_built(job, monkeypatch):
    monkeypatch.setattr(stages, "built_at_fp32", None)
    compressed = job.state.candidates[0]
    job.state.candidates = [compressed, built(job, Precision.FP32)]
    with float_references(job) as found:
        assert found == {}
    job.state.candidates = [built(job, Precision.INT8_WEIGHT, seconds=stages.SOON_BUILT_S + 1)]
    monkeypatch.setattr(stages, "SHARE", 0.0)
    with float_references(job) as found:
        assert found == {}


def test_a_long_build_is_repeated_in_fp32_where_the_job_was_far_longer(job, monkeypatch):
    job.state.candidates = [built(job, Precision.INT8_WEIGHT, seconds=30.0)]
    monkeypatch.setattr(Reporter, "seconds_by_phase", lambda _: {"lower": 100.0, "evaluate": 100.0})
    with float_references(job) as found:
        assert list(found) == ["eager"]


def test_where_its_rounds_would_take_long_it_is_not_measured(job, monkeypatch):
    monkeypatch.setattr(stages, "LONGEST_TIMING_S", 0.0)
    monkeypatch.setattr(stages, "SHARE", 0.0)
    with float_references(job) as found:
        assert found == {}


def test_one_that_cannot_be_built_does_not_end_the_job_and_a_stop_does(job, monkeypatch):
    def fails(*_):
        raise RuntimeError("the compiler is broken")

    monkeypatch.setattr(trying, "lower", fails)
    with float_references(job) as found:
        assert found == {}

    def stops(*_):
        raise Cancelled.of(ErrorCode.CANCELLED, "stop")

    monkeypatch.setattr(trying, "lower", stops)
    with pytest.raises(Cancelled), float_references(job):
        pass
