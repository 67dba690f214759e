"""Breaks and subgraphs of a partial capture, as the picture shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from ace_studio.gui.graph_layout import Hierarchy, Scene
from ace_studio.gui.style import tr
from ace_studio.gui.words.formatting import plural
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import CaptureReport, GraphBreak, SubgraphReport
from ace_studio.session.seams import seam_numbers

SPAN_MARGIN = 10.0
"""How far the line of a break reaches beyond the subgraphs beside it, in the scene."""


@dataclass(frozen=True, kw_only=True)
class Seam:
    """One row that is a break."""

    number: int
    """From 1, as in the list of breaks; 0 for a row that the list does not name."""
    about: GraphBreak

    @property
    def place(self) -> str:
        """File name and line."""
        return f"{PurePath(self.about.file).name}:{self.about.line}" if self.about.line else ""

    @property
    def facts(self) -> str:
        """Where, how often, and what it costs, on one line."""
        ops = self.about.ops_left_eager
        parts = [
            self.place,
            f"×{self.about.count}" if self.about.count > 1 else "",
            tr("{ops} left eager", ops=plural(ops, "op")) if ops else "",
        ]
        return "  ·  ".join(part for part in parts if part)


def seams_of(table: GraphTable, breaks: Sequence[GraphBreak]) -> dict[int, Seam]:
    """Row -> the break that it is."""
    rows = [row for row, kind in enumerate(table.kind) if kind is OpKind.BREAK]
    numbers, found = seam_numbers(table, breaks) if rows else {}, {}
    for row in rows:
        at = numbers.get(row)
        about = breaks[at] if at is not None else _unlisted(table, row)
        found[row] = Seam(number=0 if at is None else at + 1, about=about)
    return found


class Partial:
    """Breaks and subgraphs of one graph; empty for a graph that was captured whole."""

    def __init__(self, table: GraphTable, tree: Hierarchy, capture: CaptureReport | None) -> None:
        self.subgraphs: Sequence[SubgraphReport] = capture.pieces if capture is not None else ()
        self.seams = seams_of(table, capture.graph_breaks if capture is not None else ())
        self.is_break = np.zeros(len(table), dtype=bool)
        self.is_break[list(self.seams)] = True
        self.subgraph_of_block = {
            tree.root + at: subgraph for at, subgraph in enumerate(tree.subgraphs) if subgraph >= 0
        }
        known = {
            block: subgraph for block, subgraph in self.subgraph_of_block.items() if subgraph < len(self.subgraphs)
        }
        self.eager_blocks = frozenset(block for block, subgraph in known.items() if self.subgraphs[subgraph].error)
        stacks = _stacks_of_subgraphs(tree)
        self.looks_like_subgraph = frozenset(self.subgraph_of_block) | frozenset(stacks)
        """Subgraphs, and runs of identical subgraphs that are folded into one block."""
        self.looks_eager = self.eager_blocks | {block for block, first in stacks.items() if first in self.eager_blocks}
        self._neighbours = self._find_neighbours(table, tree)

    def __bool__(self) -> bool:
        return bool(self.seams or self.subgraph_of_block)

    def subgraph(self, block: int) -> SubgraphReport | None:
        """The report of a block's subgraph."""
        at = self.subgraph_of_block.get(block, -1)
        return self.subgraphs[at] if 0 <= at < len(self.subgraphs) else None

    def _find_neighbours(self, table: GraphTable, tree: Hierarchy) -> dict[int, tuple[int, ...]]:
        """Row of a break -> the nodes of its own level that it is linked with."""
        found: dict[int, set[int]] = {row: set() for row in self.seams}
        source, target = np.array(table.edge_source, dtype=np.int64), np.array(table.edge_target, dtype=np.int64)
        for here, there in ((source, target), (target, source)):
            at = self.is_break[here] if len(here) else np.zeros(0, dtype=bool)
            for row, other in zip(here[at].tolist(), there[at].tolist(), strict=True):
                found[row].add(int(tree.ancestors[other, min(int(tree.depth[row]), tree.ancestors.shape[1] - 1)]))
        return {row: tuple(sorted(nodes)) for row, nodes in found.items()}

    def spans(self, scene: Scene) -> npt.NDArray[np.float64]:
        """[breaks, 4] row, left end, right end and height in the scene of the line of each visible break."""
        lines = []
        for row, beside in self._neighbours.items():
            if not scene.visible[row]:
                continue
            left, right = float(scene.x[row]), float(scene.x[row] + scene.width[row])
            middle = (left + right) / 2
            for node in beside:
                low, high = float(scene.x[node]), float(scene.x[node] + scene.width[node])
                # The next subgraph may be in another column.
                if scene.visible[node] and low <= middle <= high:
                    left, right = min(left, low), max(right, high)
            lines.append((row, left - SPAN_MARGIN, right + SPAN_MARGIN, scene.y[row] + scene.height[row] / 2))
        return np.array(lines, dtype=np.float64).reshape(-1, 4)


def _stacks_of_subgraphs(tree: Hierarchy) -> dict[int, int]:
    """Block that stands for several identical subgraphs -> the first of them."""
    folded = (tree.root + at for at, repeats in enumerate(tree.repeats) if repeats)
    firsts = {block: int(tree.children(block)[0]) for block in folded}
    return {
        block: first for block, first in firsts.items() if first >= tree.root and tree.subgraphs[first - tree.root] >= 0
    }


def _unlisted(table: GraphTable, row: int) -> GraphBreak:
    file = table.files[table.file[row]] if 0 <= table.file[row] < len(table.files) else ""
    return GraphBreak(file=file, line=table.line[row], reason=tr("The graph stops here"), id=table.op_id[row])
