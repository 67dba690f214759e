"""The verbs that change what is looked at: no choice, no finding, nothing to undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ace_studio.session.document import Document


class LookingVerbs:
    """Part of `Session`: selection, problems read, log emptied."""

    @property
    def document(self) -> Document:
        """What there is now."""
        raise NotImplementedError

    def _change(self, **values: Any) -> None:
        """Replace fields of the document, and tell the listeners."""
        raise NotImplementedError

    def select(self, op_ids: Sequence[str]) -> None:
        """Select ops, everywhere at once. Ids that the graph does not have are left out."""
        known = frozenset(self.document.graph.op_id if self.document.graph else ())
        chosen = tuple(op_id for op_id in dict.fromkeys(op_ids) if op_id in known)
        if chosen != self.document.selection.op_ids:
            self._change(selection=replace(self.document.selection, op_ids=chosen))

    def select_run(self, index: int | None) -> None:
        """Select a target run; None selects none."""
        if index is not None and not 0 <= index < len(self.document.runs):
            index = None
        if index != self.document.selection.run:
            self._change(selection=replace(self.document.selection, run=index))

    def dismiss_problem(self, index: int) -> None:
        """Take a problem off the list."""
        self._change(problems=tuple(one for at, one in enumerate(self.document.problems) if at != index))

    def clear_log(self) -> None:
        """Empty the log."""
        self._change(log=())
