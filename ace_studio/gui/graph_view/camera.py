"""Which part of the scene a widget shows, and how large."""

from dataclasses import dataclass

MAX_SCALE = 3.0
FIT_SCALE = 1.15
"""Largest scale to which fitting enlarges a small graph."""
_MARGIN = 28.0


@dataclass
class Camera:
    """Screen position = scene position * scale + offset, in device independent pixels."""

    scale: float = 1.0
    dx: float = 0.0
    dy: float = 0.0

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the scene is on the widget."""
        return x * self.scale + self.dx, y * self.scale + self.dy

    def to_scene(self, x: float, y: float) -> tuple[float, float]:
        """Which point of the scene is at a place of the widget."""
        return (x - self.dx) / self.scale, (y - self.dy) / self.scale

    def zoom_at(self, x: float, y: float, *, factor: float, least: float) -> None:
        """Zoom so that the point of the scene under (x, y) stays there."""
        scale = min(MAX_SCALE, max(least, self.scale * factor))
        at_x, at_y = self.to_scene(x, y)
        self.scale = scale
        self.dx, self.dy = x - at_x * scale, y - at_y * scale

    def show(
        self, bounds: tuple[float, float, float, float], width: float, height: float, *, most: float = FIT_SCALE
    ) -> None:
        """Show a part of the scene as large as fits, in the middle."""
        left, top, right, bottom = bounds
        room_x, room_y = room_of(width, height)
        wide, tall = max(right - left, 1e-6), max(bottom - top, 1e-6)
        self.scale = min(room_x / wide, room_y / tall, most)
        self.dx = width / 2 - (left + right) / 2 * self.scale
        self.dy = height / 2 - (top + bottom) / 2 * self.scale

    def center_on(self, x: float, y: float, *, width: float, height: float) -> None:
        """Move a point of the scene to the middle."""
        self.dx, self.dy = width / 2 - x * self.scale, height / 2 - y * self.scale

    def nudge_into_view(
        self, bounds: tuple[float, float, float, float], width: float, height: float, *, margin: float = 24.0
    ) -> None:
        """Scroll as little as needed so that a part of the scene is visible."""
        left, top = self.to_screen(bounds[0], bounds[1])
        right, bottom = self.to_screen(bounds[2], bounds[3])
        self.dx += _shift(left, right, size=width, margin=margin)
        self.dy += _shift(top, bottom, size=height, margin=margin)


def room_of(width: float, height: float) -> tuple[float, float]:
    """Width and height that a fitted picture may have in a widget of this size, in pixels."""
    return max(width - 2 * _MARGIN, 8.0), max(height - 2 * _MARGIN, 8.0)


def _shift(low: float, high: float, *, size: float, margin: float) -> float:
    if high - low > size - 2 * margin or low < margin:
        return margin - low if low < margin or high - low > size - 2 * margin else 0.0
    return min(0.0, size - margin - high)
