"""What is known of the sensitivity of the ops, and the verb that finds it."""

from __future__ import annotations

from collections.abc import Sequence

from ace_studio.records.results import OpSensitivity
from ace_studio.session.document import Document
from ace_studio.session.job_queue import JobQueue
from ace_studio.session.verbs.base import Verbs


class SensitivityVerbs(Verbs):
    """Part of `Session`: findings like those of a run, and what they are good for in the plan."""

    _queue: JobQueue

    def scan_sensitivity(self, precisions: Sequence[str] = ()) -> None:
        """Find how much each op, compressed alone, disturbs the outputs; what comes in is shown as it comes."""
        if self._can_start():
            request = self._queue.sensitivity_request(self.document, trusted=self._trusted(), precisions=precisions)
            self._submit(request)

    def preview_pruning(self) -> None:
        """Prune a copy as the recipe says, and tell what goes and what it does to the outputs."""
        if self._can_start():
            self._change(pruning=None)
            self._submit(self._queue.prune_request(self.document, trusted=self._trusted()))


def known_sensitivity(document: Document) -> tuple[OpSensitivity, ...]:
    """What the last scan found, or what came with the last run."""
    if document.sensitivity is not None:
        return document.sensitivity.ops
    return document.result.sensitivity if document.result is not None else ()


def sensitivity_by_op(found: Sequence[OpSensitivity], precision: str = "") -> dict[str, float]:
    """Op id -> dB of the outputs if only this op is compressed; the lowest over the precisions if none is named."""
    values: dict[str, float] = {}
    for one in found:
        if precision in ("", one.precision):
            values[one.id] = min(values.get(one.id, float("inf")), one.sqnr_db)
    return values
