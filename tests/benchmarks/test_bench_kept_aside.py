"""The comparison on models kept aside names the rows that are lost, and why."""

import pytest
import torch

from ace_studio.engine.measure import Samples
from tests.benchmarks.bench_kept_aside import KeptFound, compare, table
from tests.benchmarks.kept.rows import _characters, _edits, _explained, _overlap
from tests.benchmarks.peers.found import EAGER, OURS, ToolFound
from tests.benchmarks.peers.fresh import FreshTimes


def compared(*, ours=0.995, peer=0.995, **ms):
    names = {EAGER: 1.0, OURS: ours, "quick": peer, "OpenVINO float": 1.0}
    tools = [ToolFound(name=name, metric=metric) for name, metric in names.items()]
    found = KeptFound(name="a row", tools=tools, goal_metric=0.99)
    found.tool(OURS).what = "openvino int8-static"
    given = {EAGER: 50.0, OURS: 10.0, "quick": 10.0, "OpenVINO float": 20.0} | ms
    samples = {name: [Samples(wall_ms=[one] * 8, cpu_ms=[one] * 8)] * 3 for name, one in given.items()}
    compare(found, FreshTimes(samples=samples, errors={}))
    return found


def test_a_row_is_held_where_ours_keeps_the_goal_and_is_as_fast():
    found = compared()
    assert found.reasons == []
    assert (found.fastest.peer, found.fastest.ratio, found.same_float.ratio) == ("quick", 1.0, 2.0)
    assert "lost: 0 of 1" in table([found])


def test_a_missed_goal_and_a_faster_peer_are_reasons():
    assert "misses the goal" in compared(ours=0.98).reasons[0]
    assert compared(quick=8.0).reasons == ["slower than quick: 0.80 (0.80-0.80)"]


def test_a_faster_peer_that_misses_the_goal_is_none():
    found = compared(peer=0.9, quick=1.0)
    assert found.reasons == []
    assert found.fastest.peer == "OpenVINO float"
    assert "MISSED" in table([found])


def test_what_is_slower_than_the_float_of_its_own_runtime_is_lost():
    assert any("OpenVINO float" in one for one in compared(**{"OpenVINO float": 9.0}).reasons)


def test_a_row_without_times_is_lost_with_its_error():
    assert KeptFound(name="a row", error="stopped after 600 s").reasons == ["not measured: stopped after 600 s"]


def test_the_metrics_count_what_is_wrong():
    assert _edits([1, 2, 3], [1, 3, 4]) == 2
    logits = torch.nn.functional.one_hot(torch.tensor([[0, 3, 3, 0, 5]]), 11).float()
    assert _characters([logits], torch.tensor([[2, 4]])) == 1.0
    assert _characters([logits], torch.tensor([[2, 5]])) == 0.5
    wanted = torch.tensor([[1.0], [3.0]])
    assert _explained([wanted[:1], wanted[1:]], wanted) == 1.0
    strokes = torch.zeros(1, 64, 64, dtype=torch.long)
    strokes[0, :32] = 1
    found = torch.stack([1 - strokes, strokes], 1).float()
    assert _overlap([found], strokes) == pytest.approx(1.0)
    assert _overlap([found.flip(1)], strokes) == 0.0
