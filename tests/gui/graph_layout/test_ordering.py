"""The order of nodes within each rank: shared chains for long edges, then barycentre sweeps."""

from ace_studio.gui.graph_layout import SegmentKind
from ace_studio.gui.graph_layout.layered import BlockProblem, Edge, lay_out_block


def test_an_edge_too_long_to_draw_becomes_a_stub_at_both_ends():
    count = 6000
    chain = [Edge(source=at, target=at + 1) for at in range(count - 1)]
    far = [Edge(source=at, target=count - 1 - at) for at in range(40)]
    layout = lay_out_block(BlockProblem(widths=(96.0,) * count, heights=(46.0,) * count, edges=tuple(chain + far)))
    assert (layout.routes.kind == SegmentKind.STUB).sum() % 2 == 0
    assert (layout.routes.kind == SegmentKind.STUB).any()
