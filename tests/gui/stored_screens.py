"""Pictures of the window: how each is brought about, and how one is compared with the one stored under ``screens``.

``python -m tests.gui.renew_screens`` stores them anew. Look at the pictures before you commit them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed
from tests.gui.replay import recorded_events

FOLDER = Path(__file__).with_name("screens")
SIZE = (1000, 640)
THEMES = ("dark", "light")
BLOCK = 20
"""Pixels. Fonts are drawn a little differently on every machine; the mean colour of a block hardly changes."""
MEAN_LIMIT = 1.5
"""Of 255, over all blocks and channels."""
BLOCK_LIMIT = 35.0
"""Of 255, for the worst block in its worst channel."""


def prepare(desk) -> None:
    """The size of the pictures, and folders that are the same on every machine."""
    desk.engine._recorded = recorded_events(root="/home/ada")
    desk.window.resize(*SIZE)
    desk.settle()


def _graph(desk) -> None:
    desk.traced()
    graph = desk.document.graph
    desk.session.view.select((next(graph.op_id[row] for row in graph.op_rows()),))


def _plan(desk) -> None:
    desk.traced().panel("plan")


def _results(desk) -> None:
    desk.ran().panel("results")


def _charts(desk) -> None:
    desk.ran().panel("charts")


def _problems(desk) -> None:
    desk.traced()
    desk.engine.by_itself = False
    desk.do("run")
    problem = Problem(
        code=ErrorCode.NOT_CAPTURED,
        what="forward() of DigitsNet chooses a branch by a tensor's value",
        why="a graph records one path; this value is known only when it runs",
        remedy="use torch.where or torch.cond there, or allow partial capture",
        where="model.py:41, module blocks.3.gate",
    )
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    desk.panel("problems")


SCREENS: dict[str, Callable[..., None]] = {
    "start": lambda _: None,
    "graph": _graph,
    "plan": _plan,
    "results": _results,
    "charts": _charts,
    "problems": _problems,
}
"""Name -> what brings the window of a desk there."""


def grab(desk, theme: str) -> QImage:
    """The window as it is now, in a theme. Its colours are rounded: fewer of them make the file a third smaller."""
    desk.session.set_setting("theme", theme)
    desk.settle()
    image = desk.window.grab()
    while desk.bot.wait(30) or image.toImage() != (now := desk.window.grab()).toImage():
        image = now  # charts arrange their axes over several frames
    image = image.toImage().convertToFormat(QImage.Format.Format_RGB32)
    rounded = np.minimum((_pixels(image).astype(np.uint16) + 4) // 8 * 8, 255).astype(np.uint8).tobytes()
    return QImage(rounded, image.width(), image.height(), 4 * image.width(), QImage.Format.Format_RGB32).copy()


def path_of(name: str, theme: str) -> Path:
    """The file of a stored picture."""
    return FOLDER / f"{name}-{theme}.png"


def difference(image: QImage, stored: QImage) -> str:
    """In what a picture differs from the stored one; empty if it does not."""
    if image.size() != stored.size():
        return f"{image.width()} x {image.height()} instead of {stored.width()} x {stored.height()}"
    off = np.abs(_blocks(image) - _blocks(stored))
    worst = off.max(axis=2)
    row, column = np.unravel_index(np.argmax(worst), worst.shape)
    if off.mean() <= MEAN_LIMIT and worst.max() <= BLOCK_LIMIT:
        return ""
    place = f"most at x {column * BLOCK}, y {row * BLOCK}: {worst.max():.0f} (limit {BLOCK_LIMIT:.0f})"
    return f"differs by {off.mean():.2f} of 255 on average (limit {MEAN_LIMIT:.1f}), {place}"


def _blocks(image: QImage) -> np.ndarray:
    """Mean colour of every block, [rows, columns, 3]."""
    pixels = _pixels(image.convertToFormat(QImage.Format.Format_RGB32))[..., :3].astype(np.float64)
    rows, columns = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    return pixels.reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def _pixels(image: QImage) -> np.ndarray:
    return np.frombuffer(image.constBits(), dtype=np.uint8).reshape(image.height(), image.width(), 4)
