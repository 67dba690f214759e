"""The verb that catches inputs: a script of the user's runs, and what it calls a module with becomes the examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_studio.records.messages import CatchRequest, InputsCaught
from ace_studio.records.tensors import TensorSpec
from ace_studio.session.choices import change
from ace_studio.session.job_queue import JobQueue
from ace_studio.session.recipe_paths import relative_to
from ace_studio.session.verbs.base import Verbs

CAUGHT_FOLDER = "caught"
"""Beside the recipe, or the model."""


class CatchVerbs(Verbs):
    """Part of `Session`: what was caught is in `Document.caught`, and becomes a choice that can be undone."""

    _queue: JobQueue

    def catch_inputs(
        self, script: str | Path, module: str = "", *, calls: int = 8, arguments: Sequence[str] = ()
    ) -> None:
        """Run a script, and take what it calls a module with as the examples to trace with.

        Args:
            script: The ``.py`` file.
            module: A class, or a dotted path inside of the outermost module; empty for the outermost.
            calls: How many calls to keep at most.
            arguments: What the script finds behind its name.
        """
        path = Path(script).expanduser().absolute()
        if self._can_start():
            self._submit(
                CatchRequest(
                    job=self._queue.new_job(CatchRequest),
                    script=str(path),
                    module=module,
                    calls=calls,
                    arguments=tuple(arguments),
                    folder=str(path.parent),
                    output=str(Path(self.document.folder) / CAUGHT_FOLDER / path.stem),
                    trusted_sha256=self._trusted(),
                )
            )

    def _caught(self, event: InputsCaught) -> None:
        """Take in the answer: rows where the shape table can show the calls, else the files as they are."""
        self._change(caught=event)
        if event.problem is not None:
            self._report(event.problem)
        folder = Path(self.document.folder)
        rows = tuple({name: _moved(spec, folder) for name, spec in row.items()} for row in event.rows)
        caught = "" if rows else relative_to(Path(event.path), folder)
        changed = change(self.document.recipe, "inputs", tracing="", rows=rows, caught=caught)
        self._choose("caught inputs", changed)


def _moved(spec: TensorSpec, folder: Path) -> TensorSpec:
    values = relative_to(Path(spec.values), folder)
    return TensorSpec(shape=spec.shape, dtype=spec.dtype, values=values)
