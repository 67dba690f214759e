"""One compression job: its inputs, fixed at the start, and what its stages have found so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ace_studio.engine import evaluate, measure
from ace_studio.engine.flow import AnyCapture, Example, LoadedModel
from ace_studio.engine.fresh import Preparation
from ace_studio.engine.load import OnnxModule
from ace_studio.engine.metrics import Score
from ace_studio.engine.pipeline.builders import Builders
from ace_studio.engine.pipeline.compress.calibration import CalibrationExamples
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.improving import Improvements
from ace_studio.engine.pipeline.problems import build_problem
from ace_studio.engine.pipeline.sensitivity import Sensing
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.base import Lowered
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import BaselineMeasured, Phase, TargetAtWork, TargetFinished
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Baseline, CaptureReport, Ceilings, FrontPoint, Region, SearchStep, WorstSample

if TYPE_CHECKING:
    from ace_studio.engine.pipeline.compress.probes import Probes
    from ace_studio.engine.pipeline.compress.proving import TargetProof

TRACING_EXAMPLES = "the tracing examples"


@dataclass
class JobState:
    """What the stages have found so far."""

    baseline: Baseline = field(default_factory=Baseline)
    baseline_score: Score | None = None
    """The baseline's metric sample by sample, for the intervals of the candidates' drops."""
    lost: Mapping[str, Problem] = field(default_factory=dict)
    """Targets that crashed an earlier process of this job, by name, and how."""
    proofs: dict[str, TargetProof] = field(default_factory=dict)
    """Target -> whether it computes the model's function."""
    probes: Probes | None = None
    """What targets are compared on; made for the first of them."""
    candidates: list[Candidate] = field(default_factory=list)
    left_out: list[Candidate] = field(default_factory=list)
    """What ``auto`` did not try because the target cannot do the plan."""
    leader: Candidate | None = None
    """The candidate that is not clearly slower than any other so far and keeps the accuracy."""
    sensing: Sensing | None = None
    """The sensitivity of the ops; None until a stage asked for it."""
    search: list[SearchStep] = field(default_factory=list)
    """What the search for the goal evaluated, in order."""
    search_notes: dict[str, list[str]] = field(default_factory=dict)
    """Why the search stopped where it did: reason -> the variants or targets that it holds for."""
    regions: dict[str, tuple[Region, ...]] = field(default_factory=dict)
    """Target -> what a search chose from there."""
    front: list[FrontPoint] = field(default_factory=list)
    """The mixtures that it predicts to be the best, target by target."""
    ceilings: Ceilings | None = None
    worst: tuple[WorstSample, ...] = ()
    others: Mapping[str, tuple[Sequence[Example], Sequence[Sequence[Tensor]]]] | None = None
    """Inputs that no ranges were found on, with the original's outputs; the kind if they are made up. None: not yet."""
    calibrated_on: str = ""
    """What ranges are found on; empty if on calibration data."""

    @property
    def has_data(self) -> bool:
        """Whether nothing is made up that ranges would be found on; else a search leaves out what needs ranges."""
        return self.calibrated_on in {"", TRACING_EXAMPLES}

    @property
    def alive(self) -> list[Candidate]:
        """The candidates that were built and are right so far."""
        return [candidate for candidate in self.candidates if candidate.lowered is not None]

    @property
    def running(self) -> list[Candidate]:
        """Those of them that can be run on this machine: only these are compared, measured and chosen."""
        return [candidate for candidate in self.candidates if candidate.runs]


@dataclass(frozen=True, kw_only=True)
class CompressionJob:
    """What every stage is given. Only `state` changes; `of` makes one."""

    loaded: LoadedModel
    captured: AnyCapture
    """What is lowered; ``captured.module`` is the eager module that it was captured from."""
    capture_report: CaptureReport
    recipe: Recipe
    output: Path
    reporter: Reporter
    threads: int
    references: Sequence[Sequence[Tensor]]
    """What the reference gives for every example."""
    calibration: CalibrationExamples
    improvements: Improvements
    shared: dict[str, Any]
    """What several targets need and one of them made, such as the exported ONNX program."""
    builders: Builders | None = None
    """Processes that build candidates beside this one; None if this process builds alone."""
    verifier: Preparation | None = None
    """The process that artifacts will be verified with, which may still be importing."""
    state: JobState = field(default_factory=JobState)

    @classmethod
    def of(
        cls,
        loaded: LoadedModel,
        captured: AnyCapture,
        capture_report: CaptureReport,
        *,
        recipe: Recipe,
        output: Path,
        reporter: Reporter,
        baseline: str = Baseline().name,
        shared: dict[str, Any] | None = None,
    ) -> CompressionJob:
        """A job at its start, with the reference's outputs for every example.

        Args:
            loaded: The model and its data sources.
            captured: What is lowered.
            capture_report: What the capture found.
            recipe: What to do.
            output: Folder of the result.
            reporter: Hears of progress, warnings and findings.
            baseline: Name of what everything is compared with.
            shared: What the targets find ready.
        """
        calibration = CalibrationExamples(loaded.data, captured, recipe.calibration, reporter)
        threads, cores = measure.resolve_threads(recipe.measure.threads), measure.resolve_threads("all")
        if threads > cores:
            what = f"{threads} threads were asked for, and {cores} are used: as many as there are cores here"
            reporter.warn("fewer-cores", what, where="[measure] threads")
            threads = cores
        if recipe.measure.threads == measure.BEST:
            reporter.phase(Phase.MEASURE, "with how many threads the original is fastest")
            call = bound_call(captured.examples[0], loaded.original or captured.module)
            threads = measure.best_threads(call, reporter, timer=measure.timer_for(captured.device))
        return cls(
            loaded=loaded,
            captured=captured,
            capture_report=capture_report,
            recipe=recipe,
            output=output,
            reporter=reporter,
            threads=threads,
            references=evaluate.eager_outputs(loaded.original or captured.module, captured.examples),
            calibration=calibration,
            improvements=Improvements(captured, recipe, calibration, reporter),
            shared={} if shared is None else shared,
            state=JobState(baseline=Baseline(name=baseline)),
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nothing that the job has started computes while the block runs."""
        if self.verifier is not None:
            self.verifier.wait(self.reporter.check)
        with self.builders.paused() if self.builders is not None else nullcontext():
            yield

    @property
    def reference(self) -> nn.Module:
        """The eager fp32 module that everything is compared with: the user's own, also if a pruned one is lowered."""
        return self.loaded.original or self.captured.module

    def timed(self, calls: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, measure.Samples]:
        """The calls in turn, on the clock of the device."""
        timer = measure.timer_for(self.captured.device)
        return measure.measure_interleaved(calls, rounds=rounds, reporter=self.reporter, timer=timer)

    def score_of(self, call: Callable[..., Any], *, what: str) -> Score | None:
        """The metric of a model, sample by sample if it gives that; None if there is no metric."""
        metric = self.loaded.data.evaluate
        if metric is None:
            return None
        self.reporter.phase(Phase.EVALUATE, what)
        predict = self._cancellable(evaluate.on_device(call, self.captured.device))
        better = self.recipe.evaluate.is_higher_better
        return evaluate.measure_score(metric, predict, what=what, higher_is_better=better)

    def _cancellable(self, predict: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            self.reporter.check()
            return predict(*args, **kwargs)

        return checked

    def guarded(self, candidate: Candidate, step: Callable[[CompressionJob, Candidate], None]) -> None:
        """Run one step; an error is recorded in the candidate. Only a stop ends the job, or a crash this process."""
        if (problem := self._problem_of(candidate, step)) is not None:
            candidate.fail(problem)

    def has_figure(
        self, candidate: Candidate, step: Callable[[CompressionJob, Candidate], None], *, figure: str
    ) -> bool:
        """Run one step that adds a figure to a candidate that works; an error is a warning, and the candidate stays.

        Args:
            candidate: Whose figure it is.
            step: Finds the figure.
            figure: Its name, as in "without its throughput".
        """
        problem = self._problem_of(candidate, step)
        if problem is not None:
            reason = f"{problem.what}: {problem.why}" if problem.why else problem.what
            self.reporter.warn("figure-missing", f"{candidate.label} is without its {figure}: {reason}")
        return problem is None

    def _problem_of(self, candidate: Candidate, step: Callable[[CompressionJob, Candidate], None]) -> Problem | None:
        index = self.state.candidates.index(candidate)
        self.reporter.tell(TargetAtWork(job=self.reporter.job, target=candidate.target.name, index=index))
        try:
            step(self, candidate)
        except AceError as error:
            if error.problem.code is ErrorCode.CANCELLED:
                raise
            return error.problem
        except MemoryError:
            return Problem(code=ErrorCode.OUT_OF_MEMORY, what=f"{candidate.label} ran out of memory")
        except Exception as error:  # noqa: BLE001 - border: a runtime's own library may raise anything
            return build_problem(error, label=candidate.target.label, precision=candidate.run.precision)
        finally:
            self.reporter.tell(TargetAtWork(job=self.reporter.job))
        return None

    def folder_of(self, candidate: Candidate) -> Path:
        """Where the candidate's artifact is; the same for the whole job."""
        index = self.state.candidates.index(candidate)
        name = re.sub(r"[^a-z0-9-]+", "-", candidate.label.lower())
        return self.output / "artifacts" / f"{index:02d}-{name}"

    def tell(self, candidate: Candidate) -> None:
        """Send the findings about a candidate."""
        self.reporter.emit(
            TargetFinished(
                job=self.reporter.job,
                fingerprint=self.captured.fingerprint,
                index=self.state.candidates.index(candidate),
                run=candidate.run,
            )
        )

    def tell_baseline(self) -> None:
        """Send the findings about the baseline."""
        self.reporter.emit(
            BaselineMeasured(job=self.reporter.job, fingerprint=self.captured.fingerprint, baseline=self.state.baseline)
        )


def bound_call(example: Example, function: Callable[..., Any] | None) -> Callable[[], object]:
    """One call on its own copy of the tensors, so that a candidate that writes into its inputs changes no other."""
    assert function is not None
    own = example.copied()
    return lambda: own.call(function)


def timed_call(example: Example, function: Callable[..., Any] | None) -> Callable[[], object]:
    """What is timed: the runtime alone on its own copy of the tensors; `bound_call` where it cannot be told apart."""
    bare = function.bare(example.copied()) if isinstance(function, Lowered | OnnxModule) else None
    return bare or bound_call(example, function)


def state_bytes(module: nn.Module) -> int:
    """Bytes of all parameters and buffers that are saved."""
    return sum(
        leaf.numel() * leaf.element_size() for leaf in module.state_dict().values() if isinstance(leaf, torch.Tensor)
    )
