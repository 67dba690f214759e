"""The comparison: the graph that the selected run executes, beside the captured graph.

The second view has the smaller graph: what is fused into another op is drawn with it, what is folded or gone is not
there. The first says of such an op where it went. Both have the same blocks open, one selection, and one camera: they
look at the same ops, wherever each of them has these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from PySide6.QtWidgets import QWidget

from ace_studio.gui.graph_layout import Scene
from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.gui.graph_view import Colouring, GraphView
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.ops.colourings import FATE_LETTERS, LETTERS
from ace_studio.gui.ops.facts import Fate, OpFacts, op_facts
from ace_studio.gui.ops.running_graph import RunningGraph, running_graph
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.layouts import GAP, TIGHT, column, row
from ace_studio.gui.widgets.small import ElidedLabel
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import Document, EdgeChoice
from ace_studio.session.session import Session

ABSENT = frozenset({Fate.FUSED, Fate.FOLDED, Fate.GONE})
"""Fates of ops that do not run by themselves."""
_NAMED = 3
"""A box names at most this many fused ops."""


class CompareView(QWidget):
    """The second view, with a line above it that counts the fates."""

    def __init__(self, session: Session, first: GraphView, colours: Colours) -> None:
        """Follow ``first`` and lead it, from now on."""
        super().__init__()
        self._session = session
        self._first = first
        self._colours = colours
        self._shown: GraphTable | None = None
        self._beside: Picture | None = None
        self._facts: OpFacts | None = None
        self._edges: EdgeChoice | None = None
        self._is_following = False
        self._places: CommonPlaces | None = None
        self.running: RunningGraph | None = None
        """The graph of the second view; None before the first update."""
        self.summary = ElidedLabel()
        self.view = GraphView(colours=colours)
        self.view.setAccessibleName(tr("Graph as it really runs"))
        self.view.shows_map = False
        self.view.selection_changed.connect(self._selected)
        line = row(self.summary, margin=(GAP, TIGHT, GAP, TIGHT))
        self.setLayout(column(line, self.view, gap=0))
        self._tie(first, self.view)
        self._tie(self.view, first)

    def update_from(self, document: Document) -> None:
        """Show the document's graph as the selected run executes it."""
        graph, facts = document.graph, op_facts(document)
        if graph is None:
            return
        is_new = graph is not self._shown or self._first.picture is not self._beside
        if is_new or facts is not self._facts:
            has_same_fates = self._facts is not None and facts.fates == self._facts.fates
            self._facts, self._beside = facts, self._first.picture
            if is_new or not has_same_fates:
                self._show_graph(graph, document.capture)
            self._colour(facts)
        self._show_selection(document)

    def leave(self) -> None:
        """Close: the first view shows no fates any more."""
        self._first.set_notes({})
        self._facts = None

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._colours, self._facts = colours, None
        self.view.set_theme(colours)

    def _show_graph(self, graph: GraphTable, capture: CaptureReport | None) -> None:
        self._shown = graph
        self.running = running_graph(graph, self._facts.fates if self._facts else {})
        self._places = self._edges = None
        with _Held(self):
            self.view.show_graph(self.running.table, capture)
        self._follow_blocks(self._first, self.view)
        self._follow_camera(self._first, self.view)

    def _colour(self, facts: OpFacts) -> None:
        if self.running is None:
            return
        members = self.running.members
        self.view.set_notes({op_id: _joined(op_id, members.get(op_id, ()), facts) for op_id in facts.fates})
        self._first.set_notes(
            {op_id: (_short(op_id, facts), one.words) for op_id, one in facts.fates.items() if one.fate in ABSENT}
        )
        self.view.set_colouring(running_colouring(facts, self._colours))

    # --- selection ---

    def _selected(self, op_ids: tuple[str, ...]) -> None:
        """Select the chosen ops together with everything fused into them."""
        if self.running is not None:
            self._session.view.select(self.running.all_members(op_ids))

    def _show_selection(self, document: Document) -> None:
        running, op_ids = self.running, document.selection.op_ids
        if running is None or self._facts is None:
            return
        homes = running.homes(op_ids)
        if set(self.view.selected_ops) != set(homes):
            self.view.set_selection(homes)
        alone = self._facts.fates.get(op_ids[0]) if len(op_ids) == 1 else None
        said = f"{op_ids[0]}: {alone.words}" if alone is not None and alone.fate in ABSENT else ""
        self.summary.setText(said or running_summary(self._facts))
        if document.selection.edges is not self._edges and self.view.picture is not None:
            self._edges = document.selection.edges
            pairs = self._edges.edges if self._edges else ()
            homed = [running.homes(pair) for pair in pairs]
            self.view.picture.look_at_edges([(pair[0], pair[1]) for pair in homed if len(pair) == 2])
            self.view.canvas.update()

    # --- two views, one camera ---

    def _tie(self, leader: GraphView, follower: GraphView) -> None:
        leader.canvas.camera_moved.connect(self._once(lambda: self._follow_camera(leader, follower)))
        leader.canvas.scene_changed.connect(self._once(lambda: self._follow_blocks(leader, follower)))

    def _once(self, follow: Callable[[], None]) -> Callable[[], None]:
        """Call the function, but not while the other view follows: a follower must not lead in turn."""

        def act() -> None:
            if not self._is_following and self.isVisible():
                with _Held(self):
                    follow()

        return act

    def _common_places(self) -> CommonPlaces | None:
        first, second = self._first.picture, self.view.picture
        if first is None or second is None or self.running is None or first.table is not self._shown:
            return None
        if self._places is None or not self._places.fits(first, second):
            self._places = CommonPlaces(first, second)
        return self._places

    def _follow_camera(self, leader: GraphView, follower: GraphView) -> None:
        """Show the same ops as the leader, at the same scale."""
        places = self._common_places()
        camera, mine = leader.canvas.camera, follower.canvas
        x, y = camera.to_scene(leader.canvas.width() / 2, leader.canvas.height() / 2)
        place = places.other_place(x, y, from_first=leader is self._first) if places is not None else None
        if place is not None:
            mine.camera.scale = camera.scale
            mine.camera.center_on(*place, width=mine.width(), height=mine.height())
            if leader.canvas.shows_everything() and follower.picture is not None:
                scene = follower.picture.scene
                whole = (0.0, 0.0, scene.total_width, scene.total_height)
                mine.camera.nudge_into_view(whole, mine.width(), mine.height())
            mine.moved_from_outside()

    def _follow_blocks(self, leader: GraphView, follower: GraphView) -> None:
        """Open and close blocks as in the leader. Blocks that only one side has do not change."""
        if leader.picture is None or follower.picture is None or self._common_places() is None:
            return
        wanted, have = _open_paths(leader.picture), _open_paths(follower.picture)
        opened = [block for path, (block, is_open) in have.items() if not is_open and wanted.get(path, (0, False))[1]]
        closed = [block for path, (block, is_open) in have.items() if is_open and not wanted.get(path, (0, True))[1]]
        with _Held(self):
            follower.canvas.set_open(opened, to=True)
            follower.canvas.set_open(closed, to=False)
        self._follow_camera(leader, follower)


class _Held:
    """Inside, neither view follows the other."""

    def __init__(self, view: CompareView) -> None:
        self._view = view
        self._before = False

    def __enter__(self) -> None:
        self._before, self._view._is_following = self._view._is_following, True

    def __exit__(self, *_: object) -> None:
        self._view._is_following = self._before


def _short(op_id: str, facts: OpFacts) -> str:
    """A fate in few letters, for the box."""
    one = facts.fates[op_id]
    if one.into:
        return f"→ {one.into}"
    report = facts.reports.get(op_id)
    return report.actual if report is not None else str(one.fate)


def _joined(op_id: str, members: Sequence[str], facts: OpFacts) -> tuple[str, str]:
    """The ops fused into an op that runs: short for the box, and in full for the tooltip."""
    along = [member for member in members if member != op_id]
    own = _short(op_id, facts)
    if not along:
        return own, facts.fates[op_id].words
    names = [short_op(facts.reports[member].op) if member in facts.reports else member for member in along]
    more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
    listed = "; ".join(f"{member} {facts.fates[member].fate}" for member in along if member in facts.fates)
    return f"+ {', '.join(names[:_NAMED])}{more}", tr(
        "{words}; with it {listed}", words=facts.fates[op_id].words, listed=listed
    )


def _open_paths(picture: Picture) -> dict[str, tuple[int, bool]]:
    """Module path -> block, and whether it is open."""
    arrangement, root = picture.arrangement, picture.tree.root
    return {path: (root + at, arrangement.is_open(root + at)) for at, path in enumerate(picture.tree.paths) if at}


def running_colouring(facts: OpFacts, colours: Colours) -> Colouring | None:
    """Colours by actual precision; ops that do not run by themselves are a category of their own."""
    if not facts.fates:
        return None
    actual = {op_id: report.actual for op_id, report in facts.reports.items()}
    is_named = (*ABSENT, Fate.UNKNOWN)
    labels = {op_id: str(one.fate) if one.fate in is_named else actual[op_id] for op_id, one in facts.fates.items()}
    letters = LETTERS | {str(fate): letter for fate, letter in FATE_LETTERS.items()}
    by_fate = {Fate.FUSED: "fused", Fate.FOLDED: "folded", Fate.GONE: "folded", Fate.UNKNOWN: "unknown"}
    chosen = dict(colours.precision) | {str(fate): colours.precision[look] for fate, look in by_fate.items()}
    target = facts.run.target if facts.run else ""
    return Colouring.from_labels(tr("as {target} runs it", target=target), labels, colours=chosen, letters=letters)


def running_summary(facts: OpFacts) -> str:
    """How many ops ended how, in words."""
    if facts.run is None:
        return tr("Select a run to see the graph as it really runs")
    if not facts.fates:
        return tr("{target} does not report what it did with the ops", target=facts.run.target)
    counts = Counter(one.fate for one in facts.fates.values())
    words = {
        Fate.AS_PLANNED: str(Fate.AS_PLANNED),
        Fate.OTHERWISE: tr("at another precision than planned"),
        Fate.FUSED: tr("fused into others"),
        Fate.FOLDED: tr("folded away"),
        Fate.GONE: tr("gone"),
        Fate.UNKNOWN: tr("unknown"),
    }
    running = counts[Fate.AS_PLANNED] + counts[Fate.OTHERWISE]
    parts = [f"{counts[fate]} {text}" for fate, text in words.items() if counts[fate]]
    return tr(
        "{target}: {count} ops became {running}  ·  ", target=facts.run.target, count=len(facts.fates), running=running
    ) + ", ".join(parts)


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
