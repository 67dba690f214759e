"""The graph a second time, as the selected run really runs it: what each op became, beside what was captured.

Both views have the same places, the same open blocks, one camera and one selection, so that an op and what became of
it are always at the same spot of both. What is fused or folded away is there as a dimmed ghost with its fate in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from ace_studio.gui.colourings import FATE_LETTERS, LETTERS
from ace_studio.gui.fates import Fate
from ace_studio.gui.graph_colours import graph_colours
from ace_studio.gui.graph_view import Colouring, GraphView
from ace_studio.gui.op_facts import OpFacts, op_facts
from ace_studio.gui.theme import Colours
from ace_studio.gui.widgets import GAP, ElidedLabel, column, row
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import Document
from ace_studio.session.session import Session

GHOSTS = (Fate.FUSED, Fate.FOLDED, Fate.GONE)
"""Nothing of these runs by itself."""


class CompareView(QWidget):
    """The second view with a line above it that counts the fates."""

    def __init__(self, session: Session, first: GraphView, colours: Colours) -> None:
        """Follow ``first`` from now on, and lead it."""
        super().__init__()
        self._first = first
        self._colours = colours
        self._shown: GraphTable | None = None
        self._facts: object = None
        self._is_following = False
        self.summary = ElidedLabel()
        self.view = GraphView(colours=graph_colours(colours))
        self.view.setAccessibleName("Graph as it really runs")
        self.view.shows_map = False
        self.view.selection_changed.connect(session.select)
        line = row(self.summary)
        line.setContentsMargins(GAP, 5, GAP, 5)
        self.setLayout(column(line, self.view, gap=0))
        self._tie(first, self.view)
        self._tie(self.view, first)

    def update_from(self, document: Document) -> None:
        """Show the graph of the document and what the selected run made of it."""
        graph, facts = document.graph, op_facts(document)
        if graph is None:
            return
        if graph is not self._shown:
            self._show_graph(graph, document.capture)
        if facts is not self._facts:
            self._facts = facts
            self._colour(facts)
        if self.view.selected_ops != document.selection.op_ids:
            self.view.set_selection(document.selection.op_ids)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._colours, self._facts = colours, None
        self.view.set_theme(graph_colours(colours))

    def _show_graph(self, graph: GraphTable, capture: CaptureReport | None) -> None:
        self._shown = graph
        with _Held(self):
            self.view.show_graph(graph, capture)
        self._follow_blocks(self._first, self.view)
        self._follow_camera(self._first, self.view)

    def _colour(self, facts: OpFacts) -> None:
        self.summary.setText(summary_of(facts))
        self.view.set_notes({op_id: (_short(op_id, facts), one.words) for op_id, one in facts.fates.items()})
        colouring = running_colouring(facts, self._colours)
        self.view.set_colouring(colouring)
        ghosts = {at for at, name in enumerate(colouring.categories) if name in GHOSTS} if colouring else set()
        for at, entry in self.view.legend.entries.items():
            entry.setChecked(at not in ghosts)

    # --- two views, one camera ---

    def _tie(self, leader: GraphView, follower: GraphView) -> None:
        leader.canvas.camera_moved.connect(self._once(lambda: self._follow_camera(leader, follower)))
        leader.canvas.scene_changed.connect(self._once(lambda: self._follow_blocks(leader, follower)))

    def _once(self, follow: Callable[[], None]) -> Callable[[], None]:
        """A follower that moves must not lead in turn."""

        def act() -> None:
            if not self._is_following and self.isVisible():
                with _Held(self):
                    follow()

        return act

    def _follow_camera(self, leader: GraphView, follower: GraphView) -> None:
        camera, mine = leader.canvas.camera, follower.canvas
        x, y = camera.to_scene(leader.canvas.width() / 2, leader.canvas.height() / 2)
        mine.camera.scale = camera.scale
        mine.camera.center_on(x, y, width=mine.width(), height=mine.height())
        mine.moved_from_outside()

    def _follow_blocks(self, leader: GraphView, follower: GraphView) -> None:
        if leader.picture is None or follower.picture is None or leader.picture.table is not follower.picture.table:
            return
        wanted, have = (set(view.picture.arrangement.open_blocks()) for view in (leader, follower) if view.picture)
        if wanted == have:
            return
        with _Held(self):
            follower.canvas.set_open(sorted(wanted - have), to=True)
            follower.canvas.set_open(sorted(have - wanted), to=False)
        self._follow_camera(leader, follower)


class _Held:
    """While it lasts, neither view follows the other."""

    def __init__(self, view: CompareView) -> None:
        self._view = view
        self._before = False

    def __enter__(self) -> None:
        self._before, self._view._is_following = self._view._is_following, True

    def __exit__(self, *_: object) -> None:
        self._view._is_following = self._before


def _short(op_id: str, facts: OpFacts) -> str:
    """A fate in as few letters as a box has room for."""
    one = facts.fates[op_id]
    if one.into:
        return f"→ {one.into}"
    report = facts.reports.get(op_id)
    return report.actual if report is not None else str(one.fate)


def running_colouring(facts: OpFacts, colours: Colours) -> Colouring | None:
    """The precision that an op really runs at; what does not run by itself is a category of its own."""
    if not facts.fates:
        return None
    actual = {op_id: report.actual for op_id, report in facts.reports.items()}
    labels = {
        op_id: str(one.fate) if one.fate in (*GHOSTS, Fate.UNKNOWN) else actual[op_id]
        for op_id, one in facts.fates.items()
    }
    letters = LETTERS | {str(fate): letter for fate, letter in FATE_LETTERS.items()}
    chosen = dict(colours.precision) | {str(Fate.GONE): colours.precision["folded"]}
    target = facts.run.target if facts.run else ""
    return Colouring.from_labels(f"as {target} runs it", labels, colours=chosen, letters=letters)


def summary_of(facts: OpFacts) -> str:
    """How many ops ended how, in words."""
    if facts.run is None:
        return "Select a run: it is shown here as it really runs"
    if not facts.fates:
        return f"{facts.run.target} does not say what it made of the ops"
    counts = Counter(one.fate for one in facts.fates.values())
    words = {
        Fate.AS_PLANNED: "run as planned",
        Fate.OTHERWISE: "run at another precision",
        Fate.FUSED: "fused into others",
        Fate.FOLDED: "folded away",
        Fate.GONE: "gone",
        Fate.UNKNOWN: "unknown",
    }
    running = counts[Fate.AS_PLANNED] + counts[Fate.OTHERWISE]
    parts = [f"{counts[fate]} {text}" for fate, text in words.items() if counts[fate]]
    return f"{facts.run.target}: {len(facts.fates)} ops became {running}  ·  " + ", ".join(parts)
