"""Bands, columns and the segments of lines: from ranks and centres to a drawable picture of one block."""

import numpy as np
import pytest
from hypothesis import given

from ace_studio.gui.graph_layout.layered import BlockProblem, Edge, lay_out_block
from tests.gui.laying_out import overlaps, problems, relaxed


@given(problems())
@relaxed
def test_every_edge_can_be_followed_from_its_source_to_its_target(problem):
    layout = lay_out_block(problem)
    routes = layout.routes
    for edge in problem.edges:
        upper, lower = sorted((edge.source, edge.target))
        mine = (routes.source == upper) & ((routes.target == lower) | (routes.target == -1))
        joints = {}
        for x0, y0, x1, y1 in np.round(routes.ends[mine], 3).tolist():
            joints.setdefault((x0, y0), []).append((x1, y1))
        start = (layout.x[upper] + problem.widths[upper] / 2, layout.y[upper] + problem.heights[upper])
        end = (layout.x[lower] + problem.widths[lower] / 2, layout.y[lower])
        reached, waiting = set(), [tuple(np.round(start, 3).tolist())]
        while waiting:
            place = waiting.pop()
            if place not in reached:
                reached.add(place)
                waiting.extend(joints.get(place, ()))
        assert tuple(np.round(end, 3).tolist()) in reached


def test_a_long_chain_is_cut_into_columns_and_none_is_a_hairline():
    count = 120
    problem = BlockProblem(
        widths=(128.0,) * count,
        heights=(46.0,) * count,
        edges=tuple(Edge(source=at, target=at + 1) for at in range(count - 1)),
    )
    layout = lay_out_block(problem)
    assert layout.columns > 2
    assert 0.8 < layout.width / layout.height < 3.2
    assert overlaps(layout.x, layout.y, np.full(count, 128.0), np.full(count, 46.0)) == 0


def test_a_port_never_gets_a_column_of_its_own():
    edges = [Edge(source=3, target=0), *(Edge(source=at, target=at + 1) for at in range(2)), Edge(source=2, target=4)]
    problem = BlockProblem(
        widths=(200.0,) * 3, heights=(1200.0, 60.0, 900.0), edges=tuple(edges), entering=1, leaving=1
    )
    layout = lay_out_block(problem)
    assert layout.columns == 2
    assert layout.entering_x[0] == pytest.approx(layout.x[0] + 100.0)


def test_values_with_many_readers_share_one_line_down_the_ranks():
    readers = 10
    edges = [Edge(source=at, target=at + 1) for at in range(readers)]
    edges += [Edge(source=0, target=at) for at in range(2, readers + 1)]
    layout = lay_out_block(BlockProblem(widths=(96.0,) * 11, heights=(46.0,) * 11, edges=tuple(edges), may_fold=False))
    shared = layout.routes.ends[(layout.routes.source == 0) & (layout.routes.target == -1)]
    straight = shared[shared[:, 0] == shared[:, 2]]
    assert len(set(np.round(straight[:, 0], 3).tolist())) <= 2
