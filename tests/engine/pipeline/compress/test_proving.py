"""A target that computes another function is not taken at any precision, and rounding is no other function."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import BoundPlan, LoadedModel
from ace_studio.engine.pipeline.compress import proving
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.proving import TargetProof, prove
from ace_studio.engine.progress import Cancelled
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.results import RunStatus, TargetRun
from tests.engine.captured import job_of


class Quiet(nn.Module):
    """As a spectrogram: a logarithm of what may be silent."""

    def __init__(self, epsilon=1e-10):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x):
        return torch.log(x.abs() + self.epsilon)


class Built:
    """A lowering that computes with a function."""

    def __init__(self, call, twin=None):
        self.call, self.twin_call = call, twin

    def __call__(self, *args):
        return self.call(*args)

    def twin(self):
        return self.twin_call


@pytest.fixture
def job(tmp_path):
    examples = [(torch.rand(n, 8) + 0.5,) for n in (2, 3)]
    return job_of(LoadedModel(module=Quiet(), source=tmp_path, sha256=""), *examples, output=tmp_path)


def candidate_of(call, precision=Precision.INT8_STATIC, twin=None):
    run = TargetRun(target="eager", status=RunStatus.OK, precision=str(precision))
    plan = BoundPlan(Plan()) if precision is Precision.FP32 else SimpleNamespace(precisions={precision})
    return Candidate(TARGETS["eager"], plan, run, lowered=Built(call, twin))


@pytest.fixture
def exact(monkeypatch):
    """What the target computes at fp32, and how often it was built."""
    made = SimpleNamespace(call=Quiet(), count=0)

    def lower(_, candidate):
        made.count += 1
        return Built(made.call)

    monkeypatch.setattr(proving, "lower", lower)
    return made


def test_what_rounds_is_taken_although_it_is_far_off(job, exact):
    low = candidate_of(lambda x: Quiet()(x) * 2)
    prove(job, low)
    assert low.run.same_function and low.run.probes >= 8


def test_a_target_that_drops_a_small_constant_is_refused_at_every_precision_and_built_once(job, exact):
    exact.call = Quiet(epsilon=0.0)  # equal on every example, and another function at silence
    for precision in (Precision.INT8_STATIC, Precision.BF16):
        low = candidate_of(Quiet(), precision)
        with pytest.raises(AceError, match="does not compute what the model does: for zeros") as caught:
            prove(job, low)
        assert caught.value.problem.code is ErrorCode.WRONG_CAPTURE and low.run.same_function is False
    assert exact.count == 1


def test_an_exact_candidate_proves_itself_and_its_target(job, exact):
    prove(job, candidate_of(Quiet(), Precision.FP32))
    prove(job, candidate_of(lambda x: Quiet()(x) * 2))
    assert exact.count == 0
    with pytest.raises(AceError, match="for example 1"):
        prove(job, candidate_of(lambda x: Quiet()(x) * 1.001, Precision.FP32))


@pytest.mark.parametrize("wrong", [lambda x: x * torch.nan, lambda x: Quiet()(x)[:, :4], lambda x: 1 / 0])
def test_nan_another_shape_and_a_call_that_fails_are_other_functions(job, exact, wrong):
    exact.call = wrong
    with pytest.raises(AceError, match="does not compute what the model does"):
        prove(job, candidate_of(Quiet()))


def test_what_is_compiled_is_compared_with_the_graph_that_it_was_compiled_from(job, exact):
    def rounded(x):
        return Quiet()(x) * 1.01

    prove(job, candidate_of(lambda x: rounded(x) * (1 + 1e-6), twin=rounded))
    with pytest.raises(AceError, match="for zeros") as caught:
        prove(job, candidate_of(lambda x: rounded(x).clamp(min=-20.0), twin=rounded))
    assert "compiled from" in caught.value.problem.why
    assert exact.count == 0


def test_compiled_programs_are_compared_on_the_examples_however_long_that_takes(job, exact, monkeypatch):
    monkeypatch.setattr(proving, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(proving, "TWIN_SHARE", 0.0)
    low = candidate_of(Quiet(), twin=Quiet())
    prove(job, low)
    assert low.run.probes == 2
    with pytest.raises(AceError, match="for example 1"):
        prove(job, candidate_of(lambda x: Quiet()(x) * 1.1, twin=Quiet()))


def test_an_exact_build_that_fails_proves_nothing_and_a_stop_ends_the_job(job, monkeypatch):
    def fails(*_):
        raise RuntimeError("the compiler is broken")

    monkeypatch.setattr(proving, "lower", fails)
    low = candidate_of(Quiet())
    prove(job, low)
    assert low.run.same_function is None and job.state.proofs == {"eager": TargetProof()}

    def stops(*_):
        raise Cancelled.of(ErrorCode.CANCELLED, "stop")

    job.state.proofs.clear()
    monkeypatch.setattr(proving, "lower", stops)
    with pytest.raises(Cancelled):
        prove(job, candidate_of(Quiet()))


def test_integers_that_need_64_bits_are_named(tmp_path):
    class Buckets(nn.Module):
        def forward(self, ids):
            return (ids % 4099).float()

    examples = [(torch.randint(2**40, 2**41, (n, 3)),) for n in (2, 3)]
    job = job_of(LoadedModel(module=Buckets(), source=tmp_path, sha256=""), *examples, output=tmp_path)
    with pytest.raises(AceError) as caught:
        prove(job, candidate_of(lambda ids: (ids.int() % 4099).float(), Precision.FP32))
    assert "integers that need 64 bits" in caught.value.problem.why
