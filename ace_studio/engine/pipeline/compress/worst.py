"""Finds the examples with the largest loss of each run, in the evaluation, calibration or tracing data."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ace_studio.engine import evaluate
from ace_studio.engine.flow import Example
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.profile.worst import worst_of_outputs, worst_of_scores
from ace_studio.records.messages import Phase

_MAX_EXAMPLES = 32


def find_worst(job: CompressionJob) -> None:
    """Fill ``job.state.worst`` for every run that is alive."""
    if not job.recipe.measure.profile:
        return
    job.reporter.phase(Phase.EVALUATE, "the examples that lose most")
    references: list[list[Tensor]] = []

    def one_run(job: CompressionJob, candidate: Candidate) -> None:
        run = job.state.candidates.index(candidate)
        if job.state.baseline_score is not None and candidate.score is not None:
            found = worst_of_scores(job.state.baseline_score, candidate.score, run=run)
            if found or job.state.baseline_score.loss is not None:
                job.state.worst += tuple(found)
                return
        source, examples = _examples(job)
        if len(examples) < 2:
            return
        if not references:
            references.extend(evaluate.eager_outputs(job.reference, examples))
        outputs = [_outputs(job, candidate, example) for example in examples]
        job.state.worst += tuple(worst_of_outputs(references, outputs, run=run, source=source))

    for candidate in job.state.alive:
        job.guarded(candidate, one_run)


def _outputs(job: CompressionJob, candidate: Candidate, example: Example) -> list[Tensor]:
    assert candidate.lowered is not None
    job.reporter.check()
    return evaluate.flat_outputs(candidate.lowered, example)


def _examples(job: CompressionJob) -> tuple[str, Sequence[Example]]:
    if job.loaded.data.calibration is not None:
        return "calibration", job.calibration()[:_MAX_EXAMPLES]
    return "tracing", job.captured.given_examples[:_MAX_EXAMPLES]
