"""Drawing one frame: what is inside the window, at the level of detail that its size on the screen deserves."""

from __future__ import annotations

from ace_studio.gui.graph_view.boxes import draw_boxes
from ace_studio.gui.graph_view.frames import draw_frame_names, draw_frames
from ace_studio.gui.graph_view.lines import draw_lines
from ace_studio.gui.graph_view.stage import LINES_FROM, Stage


def paint_scene(stage: Stage) -> None:
    """Draw everything of one frame, back to front."""
    stage.texts.begin_frame()
    draw_frames(stage)
    if stage.op_height >= LINES_FROM:
        draw_lines(stage)
    draw_boxes(stage)
    draw_frame_names(stage)
