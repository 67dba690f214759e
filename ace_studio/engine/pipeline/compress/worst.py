"""The examples that each run loses most on: of the evaluation data, else of the calibration or tracing examples."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ace_studio.engine import evaluate
from ace_studio.engine.flow import Example
from ace_studio.engine.pipeline.compress.bench import Bench
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.profile.worst import worst_of_outputs, worst_of_scores
from ace_studio.records.messages import Phase

MAX_EXAMPLES = 32


def find_worst(bench: Bench) -> None:
    """Fill ``bench.worst`` for every run that is alive."""
    if not bench.recipe.measure.profile:
        return
    bench.reporter.phase(Phase.EVALUATE, "the examples that lose most")
    references: list[list[Tensor]] = []

    def one_run(bench: Bench, candidate: Candidate) -> None:
        run = bench.candidates.index(candidate)
        if bench.baseline_score is not None and candidate.score is not None:
            found = worst_of_scores(bench.baseline_score, candidate.score, run=run)
            if found or bench.baseline_score.loss is not None:
                bench.worst += tuple(found)
                return
        source, examples = _examples(bench)
        if len(examples) < 2:
            return
        if not references:
            references.extend(evaluate.eager_outputs(bench.reference, examples))
        outputs = [_outputs(bench, candidate, example) for example in examples]
        bench.worst += tuple(worst_of_outputs(references, outputs, run=run, source=source))

    for candidate in bench.alive:
        bench.guarded(candidate, one_run)


def _outputs(bench: Bench, candidate: Candidate, example: Example) -> list[Tensor]:
    assert candidate.lowered is not None
    bench.reporter.check()
    return evaluate.flat_outputs(candidate.lowered, example)


def _examples(bench: Bench) -> tuple[str, Sequence[Example]]:
    if bench.loaded.calibration is not None:
        return "calibration", bench.calibration()[:MAX_EXAMPLES]
    own = len(bench.captured.examples) - len(bench.captured.unseen)
    return "tracing", bench.captured.examples[:own][:MAX_EXAMPLES]
