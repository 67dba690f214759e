"""The layout of one block alone: ranks from top to bottom, few crossings, straight long edges."""

import numpy as np
from hypothesis import given

from ace_studio.gui.graph_layout.layered import lay_out_block
from tests.gui.laying_out import problems, relaxed


@given(problems())
@relaxed
def test_edges_go_down_except_those_against_execution_order(problem):
    layout = lay_out_block(problem)
    for edge in problem.edges:
        upper, lower = sorted((edge.source, edge.target))
        assert layout.y[upper] + problem.heights[upper] < layout.y[lower]
        arrow = 1 if edge.source < edge.target else -1
        routes = layout.routes
        mine = (routes.source == upper) & (routes.arrow == arrow)
        mine &= (routes.target == lower) | ((routes.target == -1) & (arrow < 0))
        assert mine.any()


@given(problems())
@relaxed
def test_lines_do_not_pass_through_nodes(problem):
    layout = lay_out_block(problem)
    widths, heights = np.array(problem.widths), np.array(problem.heights)
    for x0, y0, x1, y1 in layout.routes.ends:
        steps = np.linspace(0.02, 0.98, 25)
        xs, ys = x0 + (x1 - x0) * steps, y0 + (y1 - y0) * steps
        for at in range(len(widths)):
            inside = (xs > layout.x[at] + 0.5) & (xs < layout.x[at] + widths[at] - 0.5)
            inside &= (ys > layout.y[at] + 0.5) & (ys < layout.y[at] + heights[at] - 0.5)
            assert not inside.any()
