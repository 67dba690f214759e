"""The times of the ops, and those of the whole beside them."""

import pytest
import torch

import ace_studio
from ace_studio.engine.flow import Example
from ace_studio.engine.measure import Samples
from ace_studio.engine.pipeline.compress import profiling
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.targets.torch import eager
from tests.engine.pipeline.compress.small_net import net, points


@pytest.fixture
def timed_nodes(monkeypatch):
    """Sizes of the inputs that ops are timed with; every op takes a millisecond, the whole seven."""
    sizes = []

    def time_nodes(graph_module, example, **_):
        sizes.append(Example(tuple(example)).size_words)
        return {node.name: 1.0 for node in graph_module.graph.nodes}

    for module in (profiling, eager):
        monkeypatch.setattr(module, "time_nodes", time_nodes)
    whole = Samples(wall_ms=[7.0] * 3, cpu_ms=[7.0] * 3)
    really = CompressionJob.timed

    def timed(job, calls, *, rounds):
        return dict.fromkeys(calls, whole) if profiling._WHOLE in calls else really(job, calls, rounds=rounds)

    monkeypatch.setattr(CompressionJob, "timed", timed)
    torch.set_num_threads(1)
    return sizes


def test_ops_and_whole_are_timed_on_one_input_where_a_batch_of_one_was_traced_as_a_larger_one(timed_nodes):
    report = ace_studio.compile(net(), tracing_inputs=[points(1, 1), points(4, 2)], target="eager", rounds=2).report
    assert report.environment["measured_input"] == "1x8"
    assert set(timed_nodes) == {"4x8"}
    for one in (report.baseline, report.runs[0]):
        assert one.profile is not None and one.profile.measured_input == "4x8"
        assert one.profile.latency_ms == 7.0
        assert one.profile.uncovered_ms == 7.0 - one.profile.ops_ms


def test_the_measured_latency_is_taken_where_the_first_example_was_traced(timed_nodes):
    report = ace_studio.compile(net(), tracing_inputs=[points(4, 2)], target="eager", rounds=2).report
    assert set(timed_nodes) == {"4x8"}
    assert report.baseline.profile.latency_ms == report.baseline.latency_ms.p50
