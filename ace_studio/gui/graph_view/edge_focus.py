"""Highlighted edges: their lines stand out, and boxes at none of them are dimmed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ace_studio.gui.graph_layout import Hierarchy, Scene
from ace_studio.gui.graph_layout.hierarchy import Ints
from ace_studio.gui.graph_layout.marking import Mask, marked_segments


class EdgeFocus:
    """Edges of one picture, by the rows at their ends."""

    def __init__(self, tree: Hierarchy, pairs: Sequence[tuple[int, int]]) -> None:
        """Highlight the edge from the first row of each pair to the second."""
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self._tree = tree
        self.source: Ints = ends[:, 0]
        self.target: Ints = ends[:, 1]
        self._scene: Scene | None = None
        self._segments: Mask = np.zeros(0, dtype=bool)
        self._boxes: Mask = np.zeros(0, dtype=bool)

    def segments(self, scene: Scene) -> Mask:
        """[segments] Which segments of lines belong to the edges."""
        self._look_at(scene)
        return self._segments

    def misses(self, scene: Scene, boxes: Ints) -> Mask:
        """Which of these boxes no edge starts or ends in."""
        self._look_at(scene)
        return ~self._boxes[boxes]

    def hidden(self, scene: Scene) -> int:
        """How many edges lie inside closed blocks."""
        return int(np.count_nonzero(scene.stands_for[self.source] == scene.stands_for[self.target]))

    def _look_at(self, scene: Scene) -> None:
        if scene is not self._scene:
            self._scene = scene
            self._segments = marked_segments(self._tree, scene, self.source, self.target)
            self._boxes = np.zeros(self._tree.node_count, dtype=bool)
            self._boxes[scene.stands_for[np.concatenate([self.source, self.target])]] = True
