"""The contents of a graph view, without a widget: the scene, the category of every box, selection and matches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout import Arrangement, Hierarchy, Scene
from ace_studio.gui.graph_layout.hierarchy import Ints
from ace_studio.gui.graph_layout.marking import Mask, marked_segments
from ace_studio.gui.graph_layout.sizes import detail_of, title_of
from ace_studio.gui.graph_view.colours import Colouring
from ace_studio.gui.graph_view.partial import Partial
from ace_studio.gui.style import tr
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import CaptureReport


def _bounds_of(segments: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], ...]:
    """Left, top, right and bottom of each segment; small and contiguous, because every frame looks through all."""
    low = np.minimum(segments[:, :2], segments[:, 2:]).astype(np.float32)
    high = np.maximum(segments[:, :2], segments[:, 2:]).astype(np.float32)
    return tuple(np.ascontiguousarray(column) for column in (low[:, 0], low[:, 1], high[:, 0], high[:, 1]))


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Which blocks are open, and what is drawn of that."""

    arrangement: Arrangement
    scene: Scene
    segment_bounds: tuple[npt.NDArray[np.float32], ...]
    seam_spans: npt.NDArray[np.float64]


class Picture:
    """One graph and how it is shown."""

    def __init__(
        self,
        table: GraphTable,
        colouring: Colouring,
        capture: CaptureReport | None = None,
        *,
        check: Callable[[], object] = bool,
    ) -> None:
        """Open as many blocks as stay readable.

        Args:
            table: The graph.
            colouring: What the colours mean.
            capture: Names the breaks and the subgraphs, if there are any.
            check: Called now and then; may raise to end the work.
        """
        self.table = table
        arrangement = Arrangement(table, subgraphs=capture.pieces if capture is not None else (), check=check)
        arrangement.open_readably()
        self.tree: Hierarchy = arrangement.tree
        self.partial = Partial(table, self.tree, capture)
        self.version = 0
        self.show(self.drawn(arrangement))
        self.selected: Mask = np.zeros(len(table), dtype=bool)
        self.matched: Mask = np.zeros(len(table), dtype=bool)
        self.edges: EdgeFocus | None = None
        """Highlighted edges; None without any."""
        self._row_of = dict(zip(table.op_id, range(len(table)), strict=True))
        self._op_rows = np.array(tuple(table.op_rows()), dtype=np.int64)
        self._titles: dict[int, tuple[str, str]] = {}
        self._notes: dict[int, tuple[str, str]] = {}
        self.set_colouring(colouring)

    def set_colouring(self, colouring: Colouring) -> None:
        """Show another property; every category is visible again."""
        self.colouring = colouring
        by_row = colouring.by_row
        found = map(colouring.value_of.get, self.table.op_id, repeat(-1)) if by_row is None else by_row
        self.category = np.fromiter(found, dtype=np.int64, count=len(self.table))
        self.hidden_categories: frozenset[int] = frozenset()
        self.mix = self._count_categories()
        self.version += 1

    def _count_categories(self) -> npt.NDArray[np.int64]:
        """[blocks, categories] how many ops of each category a block contains."""
        kinds = len(self.colouring.categories)
        counts = np.zeros((len(self.tree.names), kinds), dtype=np.int64)
        counted = self._op_rows[self.category[self._op_rows] >= 0]
        for level in range(self.tree.ancestors.shape[1]):
            node = self.tree.ancestors[counted, level]
            inside = node >= self.tree.root
            flat = (node[inside] - self.tree.root) * kinds + self.category[counted[inside]]
            counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
        return counts

    def set_notes(self, notes: Mapping[str, tuple[str, str]]) -> None:
        """Set the second line of ops (by id), and its tooltip."""
        self._notes = {self._row_of[op_id]: words for op_id, words in notes.items() if op_id in self._row_of}
        self._titles = {}
        self.version += 1

    def look_at_edges(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Highlight the edges between these ops; no pairs end it. Unknown ops are left out."""
        known = self._row_of
        rows = [(known[source], known[to]) for source, to in pairs if source in known and to in known]
        self.edges = EdgeFocus(self.tree, rows) if rows else None
        self.version += 1

    def note_of(self, row: int) -> str:
        """The tooltip set by `set_notes`; empty without one."""
        return self._notes.get(row, ("", ""))[1]

    def rows_of(self, op_ids: Iterable[str]) -> list[int]:
        """Rows of these ops; unknown ids are left out."""
        if op_ids is self.table.op_id:
            return list(range(len(self.table)))
        return [row for row in map(self._row_of.get, op_ids) if row is not None]

    def op_ids(self, mask: Mask) -> tuple[str, ...]:
        """Ids of the marked rows."""
        return tuple(map(self.table.op_id.__getitem__, np.flatnonzero(mask).tolist()))

    def rows_inside(self, node: int) -> npt.NDArray[np.int64]:
        """Rows in a block, or the row itself."""
        if node < self.tree.root:
            return np.array([node])
        return np.flatnonzero(self.tree.ancestors[:, self.tree.depth[node]] == node)

    def share_of(self, mask: Mask, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Fraction of the rows in each visible box or frame that are marked, 0..1."""
        rows = np.flatnonzero(mask)
        drawn_as, count = self.scene.stands_for[rows], self.tree.node_count
        marked = np.bincount(drawn_as, minlength=count)
        for level in range(self.tree.ancestors.shape[1] - 1):
            block = self.tree.ancestors[rows, level]
            inside = (block >= self.tree.root) & (drawn_as != block)
            marked += np.bincount(block[inside], minlength=count)
        return marked[nodes] / np.maximum(self.tree.rows_inside[nodes], 1)

    def dimmed(self, boxes: npt.NDArray[np.int64]) -> Mask:
        """Which boxes the legend has filtered out, or no edge that is looked at touches.

        Blocks are only if nothing inside is left.
        """
        missed = self.edges.misses(self.scene, boxes) if self.edges is not None else np.zeros(len(boxes), dtype=bool)
        if not self.hidden_categories:
            return missed
        off = np.zeros(len(self.colouring.categories) + 1, dtype=bool)
        off[list(self.hidden_categories)] = True
        dim = np.zeros(len(boxes), dtype=bool)
        rows = boxes < self.tree.root
        dim[rows] = off[self.category[boxes[rows]]]
        kept = self.mix[boxes[~rows] - self.tree.root][:, ~off[:-1]].sum(axis=1)
        dim[~rows] = kept == 0
        return dim | missed

    def drawn(self, arrangement: Arrangement) -> Drawn:
        """What `show` would show, for an arrangement of this graph. May be called in another thread."""
        scene = arrangement.scene()
        bounds, spans = _bounds_of(scene.segments), self.partial.spans(scene)
        return Drawn(arrangement=arrangement, scene=scene, segment_bounds=bounds, seam_spans=spans)

    def show(self, drawn: Drawn) -> None:
        """Show other blocks open."""
        self.arrangement, self.scene = drawn.arrangement, drawn.scene
        self.segment_bounds, self.seam_spans = drawn.segment_bounds, drawn.seam_spans
        self.version += 1

    def refresh(self) -> None:
        """Rebuild the scene after blocks were opened or closed."""
        self.show(self.drawn(self.arrangement))

    def open_readably(self, width: float, height: float) -> None:
        """Open so many blocks that the picture fits into this area of the scene; see `Arrangement.open_readably`."""
        self.arrangement.open_readably(width, height)
        self.refresh()

    def first_box(self) -> int:
        """The box of the first op."""
        return int(self.scene.boxes[np.argmin(self.tree.first_row[self.scene.boxes])])

    def titles(self, node: int) -> tuple[str, str]:
        """The two lines written on a box."""
        known = self._titles.get(node)
        if known is None:
            known = self._titles[node] = self._make_titles(node)
        return known

    def _make_titles(self, node: int) -> tuple[str, str]:
        if node in self.partial.seams:
            seam = self.partial.seams[node]
            return tr("break {number}", number=seam.number) if seam.number else tr("break"), seam.about.reason
        if node < self.tree.root:
            return title_of(self.table, node), self._notes.get(node, ("", ""))[0] or detail_of(self.table, node)
        at = node - self.tree.root
        kind = tr("stays eager") if node in self.partial.looks_eager else self.tree.types[at]
        return self.tree.names[at] or tr("model"), kind

    def spoken(self, node: int) -> str:
        """A node in words for a screen reader: name, operator or class, and what its colour means."""
        words = [part for part in self.titles(node) if part]
        if node < self.tree.root:
            category = int(self.category[node])
            coloured = self.colouring.categories[category] if category >= 0 else ""
            words = [self.table.op_id[node], *words, f"{self.colouring.label} {coloured}" if coloured else ""]
        return ", ".join(dict.fromkeys(word for word in words if word))

    def node_at(self, x: float, y: float) -> int:
        """The box under a point, else the innermost open block, else -1."""
        found = self._last_at(self.scene.boxes, x, y)
        return found if found >= 0 else self.frame_at(x, y)

    def frame_at(self, x: float, y: float) -> int:
        """The innermost open block around a point, or -1."""
        return self._last_at(self.scene.frames, x, y)

    def _last_at(self, nodes: npt.NDArray[np.int64], x: float, y: float) -> int:
        scene = self.scene
        left, top = scene.x[nodes], scene.y[nodes]
        is_across = (left <= x) & (x <= left + scene.width[nodes])
        found = nodes[is_across & (top <= y) & (y <= top + scene.height[nodes])]
        return int(found[-1]) if len(found) else -1

    def bounds(self, nodes: Iterable[int]) -> tuple[float, float, float, float] | None:
        """Left, top, right and bottom around visible nodes; None without any."""
        kept = np.array([node for node in nodes if self.scene.visible[node]], dtype=np.int64)
        if not len(kept):
            return None
        scene = self.scene
        right, bottom = scene.x[kept] + scene.width[kept], scene.y[kept] + scene.height[kept]
        return float(scene.x[kept].min()), float(scene.y[kept].min()), float(right.max()), float(bottom.max())


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
