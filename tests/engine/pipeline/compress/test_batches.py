"""Throughput over batch sizes in a whole job."""

import torch

import ace_studio
from ace_studio.engine.targets.torch import eager
from ace_studio.engine.targets.torch.eager import EagerLowered
from ace_studio.records.results import RunStatus
from tests.engine.pipeline.compress.small_net import net, points

torch.set_num_threads(1)


def test_throughput_is_measured_at_every_batch_size_that_is_asked_for() -> None:
    report = ace_studio.compile(
        net(), tracing_inputs=[points(2, 1), points(3, 2)], target="eager", default="fp32", rounds=2, batches=[1, 16],
        profile=False,
    ).report  # fmt: skip
    for one in (report.baseline, report.runs[0]):
        assert [found.batch for found in one.throughput] == [1, 16]
        for found in one.throughput:
            assert abs(found.samples_per_s * found.latency_ms / 1e3 / found.batch - 1) < 0.01
    assert report.ceilings is None
    assert not report.worst


def test_a_fixed_batch_is_said() -> None:
    report = ace_studio.compile(
        net(), tracing_inputs=[points(2, 1)], target="eager", default="fp32", rounds=2, batches=[4], profile=False,
        dims={"input.0": "static"},
    ).report  # fmt: skip
    assert report.baseline.throughput == ()
    assert "static-batch" in {one.code for one in report.warnings}


def test_the_eager_target_times_its_ops_like_the_baseline() -> None:
    report = ace_studio.compile(
        net(), tracing_inputs=[points(2, 1), points(3, 2)], target="eager", default="bf16", rounds=2
    ).report
    assert {op.id for op in report.baseline.ops if op.latency_ms} == {
        op.id for op in report.runs[0].ops if op.latency_ms
    }
    assert report.runs[0].profile.timed_ops == report.baseline.profile.timed_ops == 3
    assert all(op.error_db is not None for op in report.runs[0].ops)


class Bounded(EagerLowered):
    def bare(self, example):
        return None

    def __call__(self, *args, **kwargs):
        if args[0].shape[0] > 8:
            raise RuntimeError("more than 8 are not taken")
        return super().__call__(*args, **kwargs)


def test_a_batch_that_a_target_does_not_take_leaves_a_run_that_works(monkeypatch) -> None:
    monkeypatch.setattr(eager, "EagerLowered", Bounded)
    report = ace_studio.compile(
        net(), tracing_inputs=[points(2, 1), points(3, 2)], target="eager", default="bf16", rounds=2, batches=[4, 16],
        profile=False,
    ).report  # fmt: skip
    assert report.runs[0].status is RunStatus.OK
    assert [one.batch for one in report.runs[0].throughput] == [4]
    assert [one.batch for one in report.baseline.throughput] == [4, 16]
    assert "throughput at batch 16" in next(one.what for one in report.warnings if one.code == "figure-missing")
