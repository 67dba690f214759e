"""The verbs that change what the window shows: selection, source, dismissed problems. None can be undone."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable
from ace_studio.session.document import EdgeChoice
from ace_studio.session.seams import rows_of_seam, seam_of_ops
from ace_studio.session.state import SessionState

SOURCE_LIMIT_BYTES = 2_000_000
"""Larger files are not shown as source code."""


class ViewVerbs:
    """Selection, source to look at, and problems that the user has read."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def select(self, op_ids: Sequence[str]) -> None:
        """Select ops, everywhere at once. Ids that the graph does not have are left out."""
        graph = self._state.document.graph
        chosen = _known_ids(graph, tuple(op_ids)) if graph is not None else ()
        before = self._state.document.selection
        if chosen != before.op_ids or before.seam is not None or before.place is not None:
            capture = self._state.document.capture
            seam = seam_of_ops(self._state.document.graph, capture.graph_breaks if capture else (), chosen)
            wanted = replace(before, op_ids=chosen, seam=seam, place=None)
            if wanted != before:
                self._state.change(selection=wanted)

    def select_seam(self, index: int | None) -> None:
        """Select a graph break: its rows in the graph, and its line in the source. None selects none."""
        document = self._state.document
        breaks = document.capture.graph_breaks if document.capture else ()
        if index is None or not 0 <= index < len(breaks):
            self.select(())
            return
        graph = document.graph
        rows = rows_of_seam(graph, breaks, index) if graph is not None else ()
        op_ids = tuple(graph.op_id[row] for row in rows) if graph is not None else ()
        graph_break = breaks[index]
        self._show(replace(document.selection, op_ids=op_ids, seam=index), graph_break.file, graph_break.line)

    def look_at_edges(self, choice: EdgeChoice | None) -> None:
        """Highlight some edges of the graph and select the ops at their ends; None ends the highlight.

        Other ops can be selected meanwhile; a new graph ends it.
        """
        before = self._state.document.selection
        if choice is None or not choice.edges or self._state.document.graph is None:
            if before.edges is not None:
                self._state.change(selection=replace(before, edges=None))
            return
        if choice != before.edges:
            ends = dict.fromkeys(op_id for pair in choice.edges for op_id in pair)
            op_ids = tuple(op_id for op_id in self._state.document.graph.op_id if op_id in ends)
            self._state.change(selection=replace(before, op_ids=op_ids, seam=None, place=None, edges=choice))

    def select_place(self, file: str, line: int) -> None:
        """Show a line of the user's code. A file that the capture did not send is read, not run."""
        self._show(replace(self._state.document.selection, op_ids=(), seam=None), file, line)

    def read_model_source(self) -> None:
        """Read the code of the opened ``.py`` file to show it before a capture; it is not run."""
        document = self._state.document
        path = Path(document.folder) / document.recipe.model.source
        if path.suffix == ".py" and str(path) not in document.sources:
            text = _read_source(path)
            if text is not None:
                self._state.change(sources={**document.sources, str(path): text})

    def look_closer(self) -> None:
        """Zoom the graph to the selection."""
        selection = self._state.document.selection
        self._state.change(selection=replace(selection, closer=selection.closer + 1))

    def _show(self, selection: Any, file: str, line: int) -> None:
        document, sources = self._state.document, self._state.document.sources
        if file and file not in sources:
            file = str(Path(document.folder) / file)
        if file and file not in sources and (text := _read_source(Path(file))) is not None:
            sources = {**sources, file: text}
        wanted = replace(selection, place=(file, line) if file in sources and line > 0 else None)
        self._state.change(sources=sources, selection=document.selection if wanted == document.selection else wanted)

    def select_run(self, index: int | None) -> None:
        """Select a target run; None selects none."""
        if index is not None and not 0 <= index < len(self._state.document.runs):
            index = None
        if index != self._state.document.selection.run:
            self._state.change(selection=replace(self._state.document.selection, run=index))

    def dismiss_problem(self, index: int) -> None:
        """Remove a problem from the list."""
        self._state.change(problems=tuple(one for at, one in enumerate(self._state.document.problems) if at != index))


def _known_ids(graph: GraphTable, op_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Those that the graph has, once each. All of them are the graph's own tuple, which `rows_of_ops` knows at once."""
    if op_ids == graph.op_id:
        return graph.op_id
    return tuple(filter(_ids(graph).__contains__, dict.fromkeys(op_ids)))


@kept_by_identity
def _ids(graph: GraphTable) -> frozenset[str]:
    return frozenset(graph.op_id)


def _read_source(path: Path) -> str | None:
    """The text of a file; None if it cannot be read as text."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.is_file() and path.stat().st_size <= SOURCE_LIMIT_BYTES:
            return path.read_text(encoding="utf-8")
    return None
