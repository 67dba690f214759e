"""The arguments that drawing functions share, and the limits of the levels of detail.

Height of an op on the screen decides: under 3 px one image of coloured pixels, under 5 px no lines, under 9 px no text,
under 16 px plain rectangles and straight lines, above that rounded boxes, curves and arrowheads.
"""

from dataclasses import dataclass

import numpy as np
from PySide6.QtGui import QPainter

from ace_studio.gui.graph_layout.hierarchy import Ints
from ace_studio.gui.graph_layout.sizes import OP_HEIGHT
from ace_studio.gui.graph_view.camera import Camera
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.texts import TextCache
from ace_studio.gui.style import Colours

IMAGE_BELOW = 3.0
LINES_FROM = 5.0
TEXT_FROM = 9.0
ROUND_FROM = 16.0
FULL_TEXT_FROM = 30.0
"""From this height on an op has a second line."""


@dataclass(kw_only=True)
class Stage:
    """All that the drawing functions need; one is made per frame."""

    painter: QPainter
    picture: Picture
    camera: Camera
    colours: Colours
    texts: TextCache
    width: float
    height: float
    current: int = -1
    """Node with the keyboard focus, or -1."""
    hovered: int = -1
    exposed: tuple[float, float, float, float] | None = None
    """Left, top, right and bottom of the area to draw; None for everything."""
    culls: bool = True
    """Off for an export, which draws everything in full."""

    @property
    def op_height(self) -> float:
        """Height of an op on the screen."""
        return OP_HEIGHT * self.camera.scale

    def inside(self, nodes: Ints) -> Ints:
        """The nodes that are at least partly visible."""
        if not self.culls:
            return nodes
        scene = self.picture.scene
        left, top, right, bottom = self.exposed_scene(margin=6.0)
        x, y = scene.x[nodes], scene.y[nodes]
        seen = (x < right) & (x + scene.width[nodes] > left) & (y < bottom) & (y + scene.height[nodes] > top)
        return nodes[seen]

    def exposed_scene(self, *, margin: float) -> tuple[float, float, float, float]:
        """The part of the scene that has to be drawn, widened by some pixels."""
        left, top, right, bottom = self.exposed or (0.0, 0.0, self.width, self.height)
        return (
            *self.camera.to_scene(left - margin, top - margin),
            *self.camera.to_scene(right + margin, bottom + margin),
        )

    def rects(self, nodes: Ints) -> np.ndarray:
        """[nodes, 4] left, top, width and height on the screen."""
        scene, camera = self.picture.scene, self.camera
        rects = np.empty((len(nodes), 4))
        rects[:, 0] = scene.x[nodes] * camera.scale + camera.dx
        rects[:, 1] = scene.y[nodes] * camera.scale + camera.dy
        rects[:, 2] = scene.width[nodes] * camera.scale
        rects[:, 3] = scene.height[nodes] * camera.scale
        return rects
