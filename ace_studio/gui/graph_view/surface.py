"""The surface on which the graph lies: picture, camera, selection, and the verbs on them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtWidgets import QWidget

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_view.background import Background, Check, Worked
from ace_studio.gui.graph_view.camera import Camera, room_of
from ace_studio.gui.graph_view.painting import EMPTY_HINT, EMPTY_TEXT
from ace_studio.gui.graph_view.paths import shortest_path
from ace_studio.gui.graph_view.picture import Drawn, Picture
from ace_studio.gui.style import DARK, Colours, number, tr

FIT_MARGIN = 14.0
READABLE_SCALE = 0.54
"""The least scale of a picture that is shown first: names of ops are 9 to 10 pixels high."""
AT_ONCE = 150
"""So many boxes of opened blocks are placed at once, in about 25 ms; more are placed in the background."""


@dataclass(frozen=True)
class Opening:
    """Blocks to open or close."""

    blocks: list[int]
    anchor: int
    """The block that stays where it is on the screen."""
    to: bool
    then: Callable[[], object]
    """Called when it is done."""


def _opened(picture: Picture, arrangement: Arrangement, openings: Sequence[Opening], check: Check) -> Drawn:
    for opening in openings:
        arrangement.set_open(opening.blocks, to=opening.to, check=check)
    check()
    return picture.drawn(arrangement)


class GraphSurface(QWidget):
    """Shows one picture through a camera. `GraphCanvas` adds the drawing, the mouse and the keyboard."""

    selected_by_user = Signal()
    activated = Signal(int)
    """Row of an op that was double-clicked or entered."""
    camera_moved = Signal()
    scene_changed = Signal()
    current_changed = Signal(int)
    edges_dismissed = Signal()
    """Escape, while some edges are highlighted."""
    layout_changed = Signal()
    """A layout in the background began or ended."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, focusPolicy=Qt.FocusPolicy.StrongFocus, accessibleName=tr("Graph"))
        self.picture: Picture | None = None
        self.camera = Camera()
        self.colours: Colours = DARK
        self.current = -1
        self.hovered = -1
        self.spoken: object = None
        """What describes it to screen readers; None until one asks."""
        self.reserved_left = 0.0
        """Pixels at the left that the legend covers; `fit` avoids them if there is room at the right."""
        self._is_fitted = True
        self.placing = ""
        """Number and kind of what is laid out in the background; empty if nothing is."""
        self._unasked = ""
        """What is too large to lay out unasked."""
        self.stopped: Callable[[], object] | None = None
        """Starts the layout of the whole graph again, after the user stopped it."""
        self._background = Background(self)
        self._openings: list[Opening] = []
        """What the background is opening and closing."""
        self._again: Callable[[], object] | None = None
        self._is_opening = False
        """Whether the picture is as it was first shown: nothing has moved it or opened a block."""
        self.setMinimumSize(120, 90)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """A size for a readable picture."""
        return QSize(900, 640)

    # What is shown

    def show_picture(self, picture: Picture | None) -> None:
        """Show another graph with texts that can be read: see `open`."""
        self._end_layout()
        self.picture = picture
        self.current = self.hovered = -1
        self.open()
        self.scene_changed.emit()
        self.describe()

    def open(self) -> None:
        """Show everything, with fewer blocks open where texts would be too small; else the beginning of the graph."""
        picture = self.picture
        if picture is not None and len(picture.table):
            picture.open_readably(*(size / READABLE_SCALE for size in room_of(self.width(), self.height())))
        self.show_beginning()

    def show_beginning(self) -> None:
        """Show everything if its texts can be read, else the first box and what is around it."""
        self.fit()
        picture = self.picture
        if picture is not None and self.camera.scale < READABLE_SCALE:
            self.camera.scale = READABLE_SCALE
            scene, first = picture.scene, picture.first_box()
            middle = float(scene.x[first] + scene.width[first] / 2)
            self.camera.center_on(middle, 0.0, width=self.width(), height=2 * FIT_MARGIN)
            # No empty space at the sides while there is something to show.
            low = self.width() - FIT_MARGIN - scene.total_width * self.camera.scale
            high = max(FIT_MARGIN, self.reserved_left)
            self.camera.dx = (low + high) / 2 if low > high else min(max(self.camera.dx, low), high)
            self._moved()
        self._is_opening = True

    def fit(self) -> None:
        """Show everything."""
        if self.picture is not None and len(self.picture.table):
            scene = self.picture.scene
            whole = (0.0, 0.0, scene.total_width, scene.total_height)
            self.camera.show(whole, self.width(), self.height())
            left = self.camera.dx
            right = self.width() - self.camera.to_screen(scene.total_width, 0)[0]
            self.camera.dx += max(0.0, min(self.reserved_left - left, right - FIT_MARGIN))
        self._moved()
        self._is_fitted = True

    def frame(self, nodes: Iterable[int], *, at_most: float = math.inf) -> None:
        """Show these visible nodes as large as fits, up to a scale; does nothing if none is visible."""
        bounds = self.picture.bounds(nodes) if self.picture is not None else None
        if bounds is not None:
            self.camera.show(bounds, self.width(), self.height())
            if self.camera.scale > at_most:
                self.zoom(at_most / self.camera.scale)
            self._moved()

    def show_node(self, node: int) -> None:
        """Scroll to a node if it is out of sight; zoom in if it is too small to read."""
        bounds = self.picture.bounds([node]) if self.picture is not None else None
        if bounds is None:
            return
        middle = (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2
        if self.camera.scale < 0.45:
            self.camera.scale = 0.8
            self.camera.center_on(*middle, width=self.width(), height=self.height())
        margin = min(170.0, 0.25 * min(self.width(), self.height()))
        self.camera.nudge_into_view(bounds, self.width(), self.height(), margin=margin)
        if self._is_covered(bounds):
            self.camera.center_on(*middle, width=self.width(), height=self.height())
        self._moved()

    def _is_covered(self, bounds: tuple[float, float, float, float]) -> bool:
        """Whether a part of the scene is under what lies on it: the map or the legend."""
        left, top = self.camera.to_screen(bounds[0], bounds[1])
        right, bottom = self.camera.to_screen(bounds[2], bounds[3])
        box = QRectF(left, top, right - left, bottom - top).toAlignedRect()
        above = self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return any(one.isVisible() and one.geometry().intersects(box) for one in above)

    def frame_selection(self) -> None:
        """Show the selection as large as fits, else the current node, else everything."""
        picture = self.picture
        if picture is not None and picture.selected.any():
            self.frame(np.unique(picture.scene.stands_for[picture.selected]).tolist())
        elif picture is not None and self.current >= 0:
            self.frame([self.current])
        else:
            self.fit()

    def zoom(self, factor: float, *, at: tuple[float, float] | None = None) -> None:
        """Zoom about a place of the widget, or about its middle."""
        x, y = at or (self.width() / 2, self.height() / 2)
        self.camera.zoom_at(x, y, factor=factor, least=self._least_scale())
        self._moved()

    def pan(self, dx: float, dy: float) -> None:
        """Move the picture by pixels."""
        self.camera.dx += dx
        self.camera.dy += dy
        self._moved()

    def shows_everything(self) -> bool:
        """Whether the whole graph is within the window."""
        if self.picture is None:
            return True
        scene = self.picture.scene
        left, top = self.camera.to_screen(0, 0)
        right, bottom = self.camera.to_screen(scene.total_width, scene.total_height)
        return left >= 0 and top >= 0 and right <= self.width() and bottom <= self.height()

    def _least_scale(self) -> float:
        """Zooming out ends when the whole graph is a quarter of the widget."""
        if self.picture is None:
            return 0.01
        scene = self.picture.scene
        fits = min(self.width() / max(scene.total_width, 1.0), self.height() / max(scene.total_height, 1.0))
        return min(1.0, fits * 0.25)

    def moved_from_outside(self) -> None:
        """Redraw and emit `camera_moved` after the camera was set from outside."""
        self._moved()

    def _moved(self) -> None:
        self._is_fitted = self._is_opening = False
        self.update()
        self.camera_moved.emit()

    # Opening and closing

    def lay_out(
        self,
        what: str,
        work: Callable[[Check], Worked],
        then: Callable[[Worked], object],
        *,
        again: Callable[[], object] | None = None,
    ) -> None:
        """Lay out ``what`` in the background, unless `stop_layout` is called; see `Background`."""

        def arrived(result: Worked) -> None:
            self._end_layout()
            then(result)

        self.placing, self._unasked, self.stopped, self._again = what, "", None, again
        self._background.start(work, arrived)
        self._tell_layout()

    def offer_layout(self, what: str, ask: Callable[[], object]) -> None:
        """Say that ``what`` is too large to lay out unasked, with a button that asks."""
        self._end_layout()
        self._unasked, self.stopped = what, ask
        self._tell_layout()

    @property
    def layout_words(self) -> str:
        """What is laid out in the background, or that it is not; empty if there is nothing to say."""
        if self._unasked:
            return tr("{ops}: too many to lay out unasked. The panels Ops and Modules list them", ops=self._unasked)
        if self.stopped is not None:
            return tr("The graph is not laid out")
        return tr("Laying out {placing} …", placing=self.placing) if self.placing else ""

    def stop_layout(self) -> None:
        """Stop the layout that is made in the background; what is shown stays."""
        again = self._again
        self._end_layout()
        self.stopped = again
        self._tell_layout()

    def _end_layout(self) -> None:
        self._background.stop()
        self._openings = []
        self.placing, self._unasked, self.stopped, self._again = "", "", None, None
        self.layout_changed.emit()

    def _tell_layout(self) -> None:
        self.layout_changed.emit()
        self.describe()
        self.update()

    def set_open(
        self, blocks: list[int], *, to: bool, anchor: int | None = None, then: Callable[[], object] = bool
    ) -> None:
        """Open or close blocks; the anchor block stays where it is on the screen. ``then`` is called when it is done.

        Large blocks are laid out in the background. What is opened or closed meanwhile is done together with them.
        """
        picture = self.picture
        if picture is None:
            return
        if not blocks:
            then()
            return
        openings = [*self._openings, Opening(blocks, blocks[0] if anchor is None else anchor, to, then)]
        boxes = sum(picture.arrangement.work_of(opening.blocks) for opening in openings)
        prepare = partial(_opened, picture, picture.arrangement.copy(), openings)
        if boxes <= AT_ONCE:
            self._show_opened(openings, prepare(bool))
        else:
            self.lay_out(tr("{count} boxes", count=number(boxes, ",")), prepare, partial(self._show_opened, openings))
            self._openings = openings

    def _show_opened(self, openings: Sequence[Opening], drawn: Drawn) -> None:
        picture = self.picture
        if picture is None:
            return
        anchor = openings[-1].anchor
        before = self._corner(anchor)
        picture.show(drawn)
        after = self._corner(anchor)
        if before is not None and after is not None:
            self.camera.dx += before[0] - after[0]
            self.camera.dy += before[1] - after[1]
        if not openings[-1].to:
            self._bring_back(anchor)
        if self.current >= 0 and not picture.scene.visible[self.current]:
            self.set_current(anchor)
        self.hovered = -1
        self._moved()
        self.scene_changed.emit()
        self.describe()
        for opening in openings:
            opening.then()

    def _corner(self, node: int) -> tuple[float, float] | None:
        """Upper left corner of a visible node on the screen."""
        scene = self.picture.scene if self.picture is not None else None
        if scene is None or not scene.visible[node]:
            return None
        return self.camera.to_screen(float(scene.x[node]), float(scene.y[node]))

    def _bring_back(self, node: int) -> None:
        """A block closed from its far end may be off the screen: scroll just to it."""
        bounds = self.picture.bounds([node]) if self.picture is not None else None
        if bounds is not None:
            right, bottom = self.camera.to_screen(bounds[2], bounds[3])
            left, top = self.camera.to_screen(bounds[0], bounds[1])
            if right < 0 or bottom < 0 or left > self.width() or top > self.height():
                self.camera.nudge_into_view(bounds, self.width(), self.height())

    def toggle(self, node: int) -> None:
        """Open a closed block, close an open one; activate an op."""
        if self.picture is None or node < 0:
            return
        if not self.picture.arrangement.is_block(node):
            self.activated.emit(node)
            return
        self.set_open([node], to=not self.picture.arrangement.is_open(node))

    def open_everything(self) -> None:
        """Open all blocks and show the whole graph."""
        self._set_all_open(to=True)

    def close_everything(self) -> None:
        """Close all blocks and show the whole graph."""
        self._set_all_open(to=False)

    def _set_all_open(self, *, to: bool) -> None:
        if self.picture is not None:
            self.set_open(self.picture.arrangement.inner_blocks(self.picture.tree.root), to=to, then=self.fit)

    def close_around(self) -> None:
        """Close the block in which the current node is; without one, the block in the middle of the window."""
        if self.picture is None:
            return
        block = self._around()
        if block >= 0 and block != self.picture.tree.root:
            self.set_open([block], to=False, then=partial(self.set_current, block))

    def _around(self) -> int:
        """The open block that Backspace closes; -1 if there is none."""
        picture = self.picture
        if picture is None:
            return -1
        if self.current >= 0:
            is_open_block = picture.arrangement.is_block(self.current) and picture.arrangement.is_open(self.current)
            return self.current if is_open_block else int(picture.tree.parent[self.current])
        return picture.frame_at(*self.camera.to_scene(self.width() / 2, self.height() / 2))

    # Selection

    @property
    def selected_ops(self) -> tuple[str, ...]:
        """Ids of the selected ops, in execution order."""
        return self.picture.op_ids(self.picture.selected) if self.picture is not None else ()

    def show_path(self, start: str, end: str) -> tuple[str, ...]:
        """Select a shortest path between two ops along the edges; empty if there is none."""
        if self.picture is None:
            return ()
        rows = self.picture.rows_of([start, end])
        path = shortest_path(self.picture.table, *rows) if len(rows) == 2 else []
        if path:
            self.select(path)
            self.frame(np.unique(self.picture.scene.stands_for[path]).tolist())
        return tuple(self.picture.table.op_id[row] for row in path)

    def set_current(self, node: int) -> None:
        """Move the keyboard focus within the graph."""
        if node != self.current:
            self.current = node
            self.current_changed.emit(node)
            self.describe()
            self.update()

    def select(self, nodes: Iterable[int], *, adds: bool = False) -> None:
        """Select the rows in these nodes because the user asked for it. Adding a selected node removes it."""
        picture = self.picture
        if picture is None:
            return
        before = picture.selected.copy()
        if not adds:
            picture.selected[:] = False
        for node in nodes:
            if node < picture.tree.root and not adds:
                picture.selected[node] = True
                continue
            rows = picture.rows_inside(node)
            picture.selected[rows] = not (adds and picture.selected[rows].all())
        self.update()
        if not np.array_equal(before, picture.selected):
            self.selected_by_user.emit()
            self.describe()

    def describe(self) -> None:
        """Describe the graph for screen readers."""
        picture = self.picture
        if picture is None or not len(picture.table):
            self.setAccessibleName(tr("Graph"))
            self.setAccessibleDescription(self.layout_words or f"{EMPTY_TEXT}. {EMPTY_HINT}")
            return
        chosen = np.flatnonzero(picture.selected)
        op = f": {picture.spoken(int(chosen[0]))}" if len(chosen) == 1 else ""
        self.setAccessibleName(tr("Graph of {name}{op}", name=picture.table.name or tr("the model"), op=op))
        here = tr(" At {node}.", node=picture.spoken(self.current)) if self.current >= 0 else ""
        subgraphs, breaks = len(picture.partial.subgraph_of_block), len(picture.partial.seams)
        words = tr(" Captured in {subgraphs} subgraphs with {breaks} breaks between them.")
        partial = words.format(subgraphs=subgraphs, breaks=breaks) if subgraphs else ""
        self.setAccessibleDescription(
            tr(
                "{op_count} ops in {count} boxes and {count2} open blocks; {count3} selected.{partial}{here}",
                op_count=picture.table.op_count,
                count=len(picture.scene.boxes),
                count2=len(picture.scene.frames),
                count3=int(picture.selected.sum()),
                partial=partial,
                here=here,
            )
        )
