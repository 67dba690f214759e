"""The rules by which two layouts are compared."""

import sys

import numpy as np
import pytest

from tests.benchmarks import bench_layout
from tests.benchmarks.bench_layout import LayoutFound, Peer, compare, crossings, table_text

SQUARE = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])


def found(**changes):
    row = {
        "graph": "stages",
        "ops": 4,
        "edges": 2,
        "ours_ms": 1.0,
        "peer_ms": 2.0,
        "ratios": [2.0],
        "ours_crossings": 1,
    }
    return LayoutFound(**(row | changes))


@pytest.mark.parametrize(("edges", "count"), [([(0, 1), (2, 3)], 1), ([(0, 2), (3, 1)], 0), ([(0, 1), (1, 2)], 0)])
def test_only_edges_without_a_common_end_cross(edges, count):
    assert crossings(SQUARE, edges) == count


@pytest.mark.parametrize(
    ("changes", "is_held"),
    [({"peer_crossings": 1}, True), ({"peer_crossings": 0}, False), ({"ratios": [3.0, 0.9]}, False), ({}, True)],
)
def test_a_row_is_held_by_speed_in_every_round_and_few_crossings(changes, is_held):
    row = found(**changes)
    assert row.is_held == is_held
    assert ("lost" in table_text([row])) != is_held


def test_a_peer_that_fails_ends_the_benchmark_and_one_that_is_late_does_not(tmp_path, monkeypatch):
    (tmp_path / "node_modules/@dagrejs/dagre").mkdir(parents=True)
    monkeypatch.setattr(bench_layout.shutil, "which", lambda _: sys.executable)
    options = type("Options", (), {"engine": tmp_path, "limit": 0.2, "rounds": 1})
    monkeypatch.setattr(Peer, "COMMAND", ["-c", "import time; time.sleep(60)"])
    assert compare("stages", 30, options).is_limit
    monkeypatch.setattr(Peer, "COMMAND", ["-c", "raise SystemExit(3)"])
    options.limit = 30.0
    with pytest.raises(SystemExit, match="status 3"):
        compare("stages", 30, options)
