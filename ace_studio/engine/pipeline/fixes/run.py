"""Tries fixes: each in a copy, which is captured again and compared with the original model."""

import builtins
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch

from ace_studio.engine.capture import capture_model
from ace_studio.engine.capture.controls import CONTROL_ROWS
from ace_studio.engine.capture.eager import EagerRun, call_in_turn
from ace_studio.engine.capture.partial.capture import host
from ace_studio.engine.capture.verify import GraphRun, RepeatedRun
from ace_studio.engine.fixes import (
    HOOK,
    CannotRewriteError,
    ProposedFix,
    SourceText,
    Spot,
    noting,
    proposed_fixes,
    unified_diff,
)
from ace_studio.engine.flow import AnyCapture, Example, LoadedModel
from ace_studio.engine.load import changed_source
from ace_studio.engine.pipeline.fixes import outcomes
from ace_studio.engine.pipeline.fixes.check import Comparison, FixCheck, copy_state
from ace_studio.engine.pipeline.ready import ReadyModel
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.subgraphs.run_pieces import SubgraphRunner
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.fixes import FixKind, FixReport, FixStatus
from ace_studio.records.messages import AttemptEnded, Event, LogLine, Phase, Progress
from ace_studio.records.recipes.recipe import CaptureControl, Recipe
from ace_studio.records.results import CaptureAttempt

LEAST_LIMIT_S = 60.0
"""Smallest time limit of a capture method in a try; else four times the slowest attempt before."""


@dataclass
class FixJob:
    """What every try needs: the original model, how it was captured, and how to load it again."""

    ready: ReadyModel
    recipe: Recipe
    folder: Path
    reporter: Reporter
    reload: Callable[[Reporter], LoadedModel] | None
    """Loads the model from the current content of its files; None if it came from no file."""

    def prepare(self) -> None:
        """Capture the model as it is. Raises: AceError if it does not even run; Cancelled."""
        self.reporter.phase(Phase.FIX, "capturing the model as it is")
        self.before = self._attempt(self.ready.loaded, self.recipe, "as it is")
        if self.before.problem is not None and self.before.problem.code is not ErrorCode.NOT_CAPTURED:
            raise AceError(self.before.problem)
        with torch.no_grad():
            self.check = FixCheck.of(self.ready.loaded.module, self.ready.examples, self.reporter)

    def run(self, file: str, line: int) -> Iterator[FixReport]:
        """Try the fixes for one place; without a file, for every place where the capture stops.

        Raises: AceError with what stops the capture if nothing at all is captured and nothing is known to try.
        """
        stops = () if outcomes.is_whole(self.before.outcome) else self.before.places
        wanted = [(file, line)] if file else list(stops)
        spots = [
            Spot.of(str((self.folder / name).absolute()), number, self.ready.loaded.module) for name, number in wanted
        ]
        worth = [candidate for spot in spots for candidate in proposed_fixes(spot) if self._is_worth_a_try(candidate)]
        found = list({candidate.change: candidate for candidate in reversed(worth)}.values())[::-1]  # the first of each
        if not found and self.before.problem is not None:
            raise AceError(self.before.problem)
        for number, candidate in enumerate(found):
            self.reporter.phase(Phase.FIX, candidate.title)
            self.reporter.advance(number / len(found), _short_title(candidate))
            yield self._tried(candidate)

    def _is_worth_a_try(self, candidate: ProposedFix) -> bool:
        """Whether the recipe lacks the control and uses it, or, for a patch, whether the model can be loaded again."""
        control, capture = candidate.control, self.recipe.capture
        if control is None:
            return self.reload is not None
        return control not in capture.controls and not CONTROL_ROWS[control.treat_as].methods.isdisjoint(capture.rungs)

    # --- one try ---

    def _tried(self, candidate: ProposedFix) -> FixReport:
        started = time.monotonic()
        report = FixReport(
            kind=candidate.kind,
            title=candidate.title,
            status=FixStatus.FAILED,
            file=candidate.file,
            line=candidate.line,
            control=candidate.control,
            before=self.before.outcome,
            note=candidate.note,
        )
        try:
            with torch.no_grad():
                report = self._judged(candidate, report)
        except Cancelled:
            raise
        except CannotRewriteError as error:
            report = outcomes.failed(report, outcomes.cannot(candidate, str(error)))
        except AceError as error:
            report = outcomes.failed(report, error.problem)
        except Exception as error:  # noqa: BLE001 - code that we changed may break anything; the others are still tried
            report = outcomes.failed(report, outcomes.unexpected(error, candidate))
        return msgspec.structs.replace(report, seconds=time.monotonic() - started)

    def _judged(self, candidate: ProposedFix, report: FixReport) -> FixReport:
        if candidate.refusal:
            raise CannotRewriteError(candidate.refusal)
        if outcomes.is_whole(self.before.outcome):
            note = f"Nothing to gain: {self.before.outcome.rung} captures the whole graph without it. {candidate.note}"
            patch = self._patch(candidate, candidate.text) if candidate.text else ""
            return msgspec.structs.replace(report, status=FixStatus.NO_EFFECT, note=note.strip(), patch=patch)
        if candidate.control is not None:
            return self._with_control(candidate, candidate.control, report)
        text = self._text(candidate)
        report = msgspec.structs.replace(report, patch=self._patch(candidate, text))
        with self._copy(candidate, text) as (copy, loaded):
            return outcomes.renamed(self._with_change(candidate, loaded, report), copy, candidate.file)

    def _with_control(self, candidate: ProposedFix, control: CaptureControl, report: FixReport) -> FixReport:
        concerned = CONTROL_ROWS[control.treat_as].methods
        capture = msgspec.structs.replace(
            self.recipe.capture,
            controls=(*self.recipe.capture.controls, control),
            rungs=tuple(name for name in self.recipe.capture.rungs if name in concerned),
        )
        return self._captured(
            candidate, self.ready.loaded, msgspec.structs.replace(self.recipe, capture=capture), report
        )

    def _with_change(self, candidate: ProposedFix, loaded: LoadedModel, report: FixReport) -> FixReport:
        """Compare the changed code first, which is quick, then its graph."""
        inputs = self.check.inputs
        if candidate.kind is FixKind.CONSTANT:
            inputs = [one for one in inputs if not one.has_other_integers]
        verdict = self.check.compare(EagerRun.of(loaded.module).output, inputs)
        if verdict.difference:
            return outcomes.wrong_report(report, "The changed code does not compute what the model computes", verdict)
        if len(inputs) < len(self.check.inputs):
            others = [one for one in self.check.inputs if one.has_other_integers]
            if self.check.compare(EagerRun.of(loaded.module).output, others).difference:
                note = "With other integers in the inputs (lengths, ids, steps) the model gives another result."
                report = msgspec.structs.replace(report, note=f"{report.note} {note}".strip())
        return self._captured(candidate, loaded, self.recipe, report)

    def _captured(self, candidate: ProposedFix, loaded: LoadedModel, recipe: Recipe, report: FixReport) -> FixReport:
        after = self._attempt(loaded, recipe, _short_title(candidate))
        report = msgspec.structs.replace(report, after=after.outcome)
        if after.wrong - self.before.wrong and not outcomes.is_whole(after.outcome) and after.problem is not None:
            return msgspec.structs.replace(report, status=FixStatus.WRONG, problem=after.problem)
        if after.captured is None:
            is_there = (candidate.file, candidate.line) in after.places
            status = FixStatus.NO_EFFECT if is_there else FixStatus.FAILED
            return msgspec.structs.replace(report, status=status, problem=after.problem)
        verdict = self._compare_graph(after.captured)
        report = msgspec.structs.replace(report, inputs_compared=verdict.compared)
        if verdict.difference:
            return outcomes.wrong_report(report, "The graph does not compute what the model computes", verdict)
        if not outcomes.is_better(self.before.outcome, after.outcome):
            return msgspec.structs.replace(report, status=FixStatus.NO_EFFECT)
        more = after.outcome.ops_left_eager - self.before.outcome.ops_left_eager
        note = (
            f"{report.note} {more} more ops are left eager." if self.before.outcome.rung and more > 0 else report.note
        )
        return msgspec.structs.replace(report, status=FixStatus.GREEN, note=note)

    def _compare_graph(self, captured: AnyCapture) -> Comparison:
        """Compare the graph with the original model on all inputs and at the made-up sizes of the capture."""
        known = len(self.check.inputs)
        for example in captured.unseen:
            self.check.add("a size that nobody gave", example)
        inputs, self.check.inputs = self.check.inputs, self.check.inputs[:known]
        return self.check.compare(_runner(captured), inputs)

    # --- the copy ---

    def _patch(self, candidate: ProposedFix, text: str) -> str:
        source = SourceText.read(Path(candidate.file))
        return unified_diff(source, text, folder=self.folder) if source is not None else ""

    def _text(self, candidate: ProposedFix) -> str:
        """The text of the changed file; values that it needs are recorded by an instrumented copy on all examples."""
        calls = candidate.values
        if calls is None:
            return candidate.text
        seen: list[list[Any]] = [[] for _ in calls.calls]
        with self._copy(candidate, calls.instrumented(), noting(seen)) as (_, loaded):
            eager = EagerRun.of(loaded.module)
            for example in self.ready.examples:
                eager.output(example)
        return calls.with_constants(seen)

    @contextlib.contextmanager
    def _copy(
        self, candidate: ProposedFix, text: str, hook: Callable[[int, Any], Any] | None = None
    ) -> Iterator[tuple[Path, LoadedModel]]:
        """The model loaded from a changed copy, with the tensors of the original. Raises: AceError."""
        assert self.reload is not None, "patches are tried only of what can be loaded anew"
        path = Path(candidate.file)
        with contextlib.ExitStack() as stack:
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ace-fix-"))) / path.name
            copy.write_bytes(text.encode())
            stack.enter_context(changed_source(path, copy))
            if hook is not None:
                stack.enter_context(replaced_attribute(builtins, HOOK, hook))
            loaded = self.reload(self._quiet(_short_title(candidate), []))
            loaded.module.to(self.ready.device)
            why = copy_state(self.ready.loaded.module, loaded.module)
            if why:
                raise CannotRewriteError(why)
            yield copy, loaded

    # --- capturing quietly ---

    def _attempt(self, loaded: LoadedModel, recipe: Recipe, title: str) -> outcomes.Attempt:
        """Capture, and return a failure as an attempt too. Raises: Cancelled."""
        rungs: list[CaptureAttempt] = []
        if hasattr(self, "before"):
            limit_s = max(LEAST_LIMIT_S, 4 * self.before.slowest_s)
            limited = msgspec.structs.replace(
                recipe.capture, time_limit_s=min(recipe.capture.time_limit_s, limit_s), compare_rungs=False, cache=False
            )
            recipe = msgspec.structs.replace(recipe, capture=limited)
        try:
            captured, report = capture_model(
                loaded, self.ready.examples, recipe, device=self.ready.device, reporter=self._quiet(title, rungs)
            )
        except Cancelled:
            raise
        except AceError as error:
            return outcomes.not_captured(error.problems, rungs)
        return outcomes.as_attempt(captured, report, rungs)

    def _quiet(self, title: str, rungs: list[CaptureAttempt]) -> Reporter:
        """A reporter that shows progress as a detail of the try, and collects capture attempts in ``rungs``."""

        def take(event: Event) -> None:
            match event:
                case Progress(detail=detail) if detail:
                    self.reporter.advance(None, f"{title}: {detail}")
                case AttemptEnded(outcome=outcome):
                    rungs.append(outcome)
                case LogLine():
                    self.reporter.emit(event)

        return Reporter(take, job=self.reporter.job, is_cancelled=lambda: self.reporter.is_cancelled)


def _runner(captured: AnyCapture) -> Callable[[Example], Any]:
    """A function that runs a capture from the same state at every call."""
    run: RepeatedRun
    if captured.is_whole:
        run = GraphRun(captured.program)
    else:
        hosted = [host(subgraph) for subgraph in captured.subgraphs]
        runner = SubgraphRunner(captured.module, hosted, controls=captured.controls)
        call_in_turn(runner, [captured.example])  # the example with the most telling sizes comes first
        run = partial(EagerRun.of(runner.module).outputs, function=runner)
    return lambda example: run([example])[0]


def _short_title(candidate: ProposedFix) -> str:
    return candidate.title.partition(":")[0]
