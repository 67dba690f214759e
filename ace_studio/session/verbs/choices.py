"""The verbs that change a choice; each is one step of undo, with a label for the menu."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.graph import OpKind
from ace_studio.records.recipes.families import ModelFamily
from ace_studio.records.recipes.paths import relative_to
from ace_studio.records.recipes.recipe import CaptureChoice, CaptureControl, Goal, MeasureChoice, Recipe
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session import choices
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.jobs import JobVerbs


class ChoiceVerbs:
    """Everything that the user can choose but precisions. Quick edits of the same thing are one step."""

    def __init__(self, state: SessionState, jobs: JobVerbs) -> None:
        self._state = state
        self._jobs = jobs

    def _choose(self, label: str, table: str, *, subject: str = "", **values: Any) -> None:
        """Change keys of one table of the recipe, as one step of undo."""
        self._state.choose(label, choices.change(self._state.document.recipe, table, **values), subject=subject)

    def undo(self) -> None:
        """Take the last choice back. Findings stay."""
        self._go_to(self._state.undo_stack.undo())

    def redo(self) -> None:
        """Put the choice back that was taken back last."""
        self._go_to(self._state.undo_stack.redo())

    def _go_to(self, recipe: Recipe | None) -> None:
        """Choose this, and look at the file of the model if it is another one, such as a patched copy."""
        before = self._state.document.recipe.model.source
        if recipe is not None:
            self._state.set_recipe(recipe)
            if recipe.model.source != before:
                self._jobs.inspect_source()

    def set_entry(self, name: str) -> None:
        """The callable that makes the model."""
        self._choose("entry", "model", entry=name, subject="entry")

    def set_weights(self, path: str) -> None:
        """The state dict to load into the model; empty for none."""
        relative = relative_to(Path(path), Path(self._state.document.folder)) if path else ""
        self._choose("weights", "model", weights=relative)

    def set_rows(self, rows: Sequence[dict[str, TensorSpec]]) -> None:
        """The rows of the shape table."""
        self._choose("example shapes", "inputs", rows=tuple(rows), caught="", subject="rows")

    def set_dim(self, name: str, choice: DimChoice) -> None:
        """Set whether one dimension (``x.0``) is dynamic or static."""
        self._state.choose(
            f"{name} {choice}", choices.with_dim(self._state.document.recipe, name, choice), subject=f"dim {name}"
        )

    def set_tracing(self, name: str) -> None:
        """The callable that gives the examples to trace with; empty for the rows."""
        self._choose("tracing inputs", "inputs", tracing=name, caught="", subject="tracing")

    def set_capture(self, capture: CaptureChoice) -> None:
        """Set the capture methods to try, their time limit, and the controls."""
        self._state.choose("capture options", replace(self._state.document.recipe, capture=capture), subject="capture")

    def set_rungs(self, names: Sequence[str]) -> None:
        """Set the capture methods to try, in order."""
        rungs = tuple(dict.fromkeys(names))
        if not rungs:
            what = "At least one capture method has to stay on"
            self._state.report(Problem(code=ErrorCode.USAGE, what=what, remedy="Switch another one on first"))
            return
        self._choose("capture methods", "capture", rungs=rungs)

    def add_control(self, control: CaptureControl) -> None:
        """Add a control to the capture; it replaces another control of the same function."""
        capture = self._state.document.recipe.capture
        if control not in capture.controls:
            others = tuple(one for one in capture.controls if one.function != control.function)
            self._choose(f"{control.treat_as} for {control.function}", "capture", controls=(*others, control))

    def apply_fix(self, fix: FixReport) -> None:
        """Add the control of a fix to the recipe.

        A fix that changes the source is refused with a problem: its patch is for the user to copy or save.
        """
        if fix.control is None:
            self._state.report(
                Problem(
                    code=ErrorCode.USAGE,
                    what="This fix changes the model's source, which ACE Studio does not write to",
                    why="the file is yours; the change is shown as a patch",
                    remedy="Copy the patch or save it, and apply it with `patch -p0 < FILE` or by hand.",
                    where=f"{fix.file}:{fix.line}",
                )
            )
            return
        controls = self._state.document.recipe.capture.controls
        if fix.control not in controls:
            self._choose(fix.title, "capture", controls=(*controls, fix.control))

    def remove_control(self, index: int) -> None:
        """Remove a control of the capture."""
        controls = self._state.document.recipe.capture.controls
        if 0 <= index < len(controls):
            kept = tuple(one for at, one in enumerate(controls) if at != index)
            label = f"no {controls[index].treat_as} for {controls[index].function}"
            self._choose(label, "capture", controls=kept)

    def with_family(self, family: ModelFamily) -> Recipe:
        """The present choices with those of the ready recipe of a family."""
        document = self._state.document
        rows = zip(document.graph.op_id, document.graph.kind, strict=True) if document.graph is not None else ()
        inputs = [op_id for op_id, kind in rows if kind is OpKind.INPUT]
        return choices.with_family(document.recipe, family, inputs=inputs)

    def use_family(self, family: ModelFamily) -> None:
        """Take over the ready recipe of a family of models."""
        self._state.choose(f"recipe {family.name}", self.with_family(family))

    def set_targets(self, names: Sequence[str]) -> None:
        """The targets to lower to; none means ``auto``."""
        self._choose("targets", "targets", names=tuple(dict.fromkeys(names)) or ("auto",))

    def set_goal(self, goal: Goal) -> None:
        """Set the bounds that the result must meet."""
        self._state.choose("goal", replace(self._state.document.recipe, goal=goal), subject="goal")

    def set_measure(self, measure: MeasureChoice) -> None:
        """Threads, rounds and device."""
        self._state.choose("how to measure", replace(self._state.document.recipe, measure=measure), subject="measure")

    def set_choice(self, table: str, label: str = "", **values: Any) -> None:
        """Keys of one table of the recipe, for forms that are made of rows.

        Args:
            table: ``plan``, ``calibration``, ``measure.decode``, ...
            label: Label of the undo step; the table's name by default.
            values: Key -> value.
        """
        subject = f"{table} {' '.join(values)}"
        with_values = choices.SPECIAL_TABLES.get(table, partial(choices.change, table=table))
        self._state.choose(label or table, with_values(self._state.document.recipe, **values), subject=subject)
