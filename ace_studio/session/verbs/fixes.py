"""The verbs about fixes: have them tried where capture stops, and take one of them."""

from __future__ import annotations

from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.session.job_queue import JobQueue
from ace_studio.session.verbs.base import Verbs


class FixVerbs(Verbs):
    """Part of `Session`: what was tried is in `Document.fixes`; a control that is taken is a choice like any other."""

    _queue: JobQueue

    def try_fixes(self, file: str = "", line: int = 0) -> None:
        """Try what fits one place where capture stops, as a graph break or a problem names it; without one, all."""
        if self._can_start():
            kept = (fix for fix in self.document.fixes if file and (fix.file, fix.line) != (file, line))
            self._change(fixes=tuple(kept))
            self._submit(self._queue.fix_request(self.document, trusted=self._trusted(), file=file, line=line))

    def apply_fix(self, fix: FixReport) -> None:
        """Put the control of a fix into the recipe, as an undoable choice.

        A fix that changes the source is refused with a problem: its patch is for the user to copy or save.
        """
        if fix.control is None:
            self._report(
                Problem(
                    code=ErrorCode.USAGE,
                    what="This fix changes the model's source, and ACE Studio does not write into that",
                    why="the file is yours; the change is shown as a patch",
                    remedy="Copy the patch or save it, and apply it with `patch -p0 < FILE` or by hand.",
                    where=f"{fix.file}:{fix.line}",
                )
            )
            return
        capture = self.document.recipe.capture
        if fix.control not in capture.controls:
            capture = replace(capture, controls=(*capture.controls, fix.control))
        self._choose(fix.title, replace(self.document.recipe, capture=capture))
