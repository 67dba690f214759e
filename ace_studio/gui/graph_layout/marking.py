"""Find the line segments that belong to given edges; one edge has segments in several blocks."""

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout.arrange import Scene
from ace_studio.gui.graph_layout.hierarchy import Hierarchy, Ints
from ace_studio.gui.graph_layout.lifting import Links, lift_edges

Mask = npt.NDArray[np.bool_]


def marked_segments(tree: Hierarchy, scene: Scene, edge_source: Ints, edge_target: Ints) -> Mask:
    """Segments of the scene that these edges run along, also where they share them with others.

    Shapes: edge_source, edge_target [edges], rows of the table -> [segments].
    """
    lifted = lift_edges(tree, edge_source, edge_target)
    block, first, second = _columns(tree, lifted.inner)
    into, _, child = _columns(tree, lifted.entering)
    out_of, leaver, _ = _columns(tree, lifted.leaving)
    # An edge against execution order is drawn from its upper end.
    wanted = np.concatenate(
        [_keys(tree, block, first, second), _keys(tree, block, second, first),
         _keys(tree, into, into, child), _keys(tree, out_of, leaver, out_of)]
    )  # fmt: skip
    has_end = scene.segment_target >= 0
    drawn = _keys(tree, scene.segment_block, scene.segment_source, np.maximum(scene.segment_target, 0))
    last = has_end & np.isin(drawn, wanted)
    return last | leads_to(scene, last, node_count=tree.node_count)


def leads_to(scene: Scene, last: Mask, *, node_count: int) -> Mask:
    """Segments shared by several edges on the way to some of the last segments, which end at a node."""
    deepest = np.full(node_count + 1, -1)
    np.maximum.at(deepest, scene.segment_source[last], scene.segment_rank[last])
    return (scene.segment_target < 0) & (scene.segment_rank < deepest[scene.segment_source])


def _columns(tree: Hierarchy, links: Links) -> tuple[Ints, Ints, Ints]:
    """Block, first and second of each link."""
    blocks = np.arange(tree.root, tree.node_count)
    return np.repeat(blocks, np.diff(links.start)), links.first, links.second


def _keys(tree: Hierarchy, block: Ints, first: Ints, second: Ints) -> Ints:
    """One number per (block, node, node)."""
    size = tree.node_count + 1
    return ((block - tree.root) * size + first) * size + second
