"""Maps places of one graph to another with common ops, so that two views can share a camera."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout import Scene
from ace_studio.gui.graph_view.picture import Picture

NEAR = 60.0
"""Scene units; a common op within this distance decides nearly alone."""


class CommonPlaces:
    """Boxes of the same ops in two pictures, which map places of one to the other."""

    def __init__(self, first: Picture, second: Picture) -> None:
        """Pair the rows of ops that both have, by their ids."""
        self._pictures = (first, second)
        self._rows = (
            np.array(first.rows_of(second.table.op_id), dtype=np.int64),
            np.array(second.rows_of(first.table.op_id), dtype=np.int64),
        )
        self._scenes: tuple[Scene, Scene] | None = None
        self._middles = (np.zeros((0, 2)), np.zeros((0, 2)))

    def fits(self, first: Picture | None, second: Picture | None) -> bool:
        """Whether this pairs these two pictures."""
        return self._pictures == (first, second)

    def other_place(self, x: float, y: float, *, from_first: bool) -> tuple[float, float] | None:
        """The place of the other scene that matches one of this; None if no op is in both.

        Averages the offsets of all common ops, with weights that fall with the fourth
        power of the distance: the path is smooth, and a near op decides.
        Source: inverse distance weighting, Shepard 1968.
        """
        here, there = self._look() if from_first else self._look()[::-1]
        if not len(here):
            return None
        distance = ((here - (x, y)) ** 2).sum(axis=1) / NEAR**2
        weight = 1.0 / (distance + 1e-3) ** 2
        moved = ((there - here) * weight[:, None]).sum(axis=0) / weight.sum()
        return x + float(moved[0]), y + float(moved[1])

    def _look(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """[pairs, 2] the middles of the boxes that stand for common ops, in both."""
        first, second = (picture.scene for picture in self._pictures)
        if self._scenes is None or self._scenes[0] is not first or self._scenes[1] is not second:
            self._scenes = first, second
            boxes = np.unique(
                np.column_stack([first.stands_for[self._rows[0]], second.stands_for[self._rows[1]]]), axis=0
            )
            self._middles = _middles(first, boxes[:, 0]), _middles(second, boxes[:, 1])
        return self._middles


def _middles(scene: Scene, boxes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.column_stack([scene.x[boxes] + scene.width[boxes] / 2, scene.y[boxes] + scene.height[boxes] / 2])
