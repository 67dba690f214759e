"""Where every op, block and edge of a graph is drawn. Numbers only: nothing here imports a widget.

    hierarchy.build_hierarchy(table)   the tree of blocks from the module paths, from blocks (planting, tidying) and
                                       folding (identical layers, and segments of long lists)
    lifting.lift_edges(...)            every edge moved once to the block in which it is drawn
    layered.lay_out_block(problem)           one block alone: ranks, order, coordinates, routes
    arrange.Arrangement                which blocks are open, the layout of each, and the flat `Scene` to draw

Opening or closing a block lays out that block and its ancestors only; equal blocks share one layout.
"""

from ace_studio.gui.graph_layout.arrange import Arrangement, Scene
from ace_studio.gui.graph_layout.hierarchy import Hierarchy, build_hierarchy
from ace_studio.gui.graph_layout.routes import SegmentKind
