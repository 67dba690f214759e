"""The benchmark of goals compares what fresh processes timed, and its verdict can fail."""

import pytest
import torch

from ace_studio.engine.measure import Samples
from tests.benchmarks import bench_goals
from tests.benchmarks.bench_goals import AS_FAST, time_artifacts, verdict
from tests.benchmarks.peers.fresh import FreshTimes
from tests.benchmarks.peers.opening import Left

MAX_DROP = 0.005
LEFTS = {name: Left(kind="bare openvino f32", path=f"{name}.xml") for name in ("ours", "nncf")}
FOUND = {name: {"metric": 0.9, "megabytes": 1.0} for name in LEFTS}
CALL = (torch.zeros(1),)


def steady(*ms):
    return [Samples(wall_ms=[one] * 4, cpu_ms=[one] * 4) for one in ms]


def row(*, ours=0.9, nncf=0.9, ratio=1.0, evaluations=3):
    judged = {
        "original": {"metric": 0.9},
        "ours": {"metric": ours, "ms": ratio},
        "nncf": {"metric": nncf, "ms": 1.0},
        "time_over_peer": {"median": ratio},
    }
    return {"judge": judged, "ours": {"met": True, "evaluations": evaluations}, "nncf": {"evaluations": 3}}


def test_the_times_are_pooled_over_the_processes(tmp_path, monkeypatch):
    times = FreshTimes(samples={"ours": steady(1.0, 1.1, 1.3), "nncf": steady(1.0, 1.0, 1.0)}, errors={})
    monkeypatch.setattr(bench_goals, "time_freshly", lambda folder, **_: times)
    found = time_artifacts(FOUND, LEFTS, CALL, tmp_path)
    assert found["time_over_peer"] == pytest.approx({"median": 1.1, "low": 1.0, "high": 1.3})
    assert found["ours"] == {"metric": 0.9, "megabytes": 1.0, "ms": 1.1}


def test_an_artifact_that_cannot_be_timed_ends_the_case(tmp_path, monkeypatch):
    times = FreshTimes(samples={"nncf": steady(1.0)}, errors={"ours": "ValueError: no"})
    monkeypatch.setattr(bench_goals, "time_freshly", lambda folder, **_: times)
    with pytest.raises(RuntimeError, match="ValueError: no"):
        time_artifacts(FOUND, LEFTS, CALL, tmp_path)


def test_a_goal_that_is_missed_or_dearly_met_or_slow_is_told():
    good = verdict(row(), MAX_DROP)
    assert good["met"]
    assert good["fewer"]
    assert good["as_fast"]
    assert not verdict(row(ours=0.89), MAX_DROP)["met"]
    assert not verdict(row(evaluations=4), MAX_DROP)["fewer"]
    assert not verdict(row(ratio=AS_FAST + 0.01), MAX_DROP)["as_fast"]


def test_a_peer_that_misses_the_goal_may_be_faster():
    assert verdict(row(nncf=0.8, ratio=2.0), MAX_DROP)["as_fast"]
