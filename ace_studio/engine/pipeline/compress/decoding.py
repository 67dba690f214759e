"""Measures tokens per second: the baseline and every candidate decode in turn."""

from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch import Tensor

from ace_studio.engine.flow import Captured
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.profile.decode import REPETITIONS, StepModel, decode, decode_report, read_text
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import DecodeChoice


def step_model(captured: Captured, choice: DecodeChoice) -> StepModel | None:
    """The captured model as one decoding step, starting from its first example; None if ``[measure] decode`` is empty.

    Raises: AceError(RECIPE) if what the recipe names is not there or does not fit.
    """
    if not choice.token:
        return None
    start = captured.examples[0]
    with torch.no_grad():
        outputs = start.copied().call(captured.module)
    return StepModel.of(choice, start, [found.name for found in captured.inputs], outputs)


def reads_texts(step: StepModel, evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """An evaluation of texts for a model that takes one token at a time: each text goes through the cache."""

    def stepped(predict: Callable[..., Any]) -> Any:
        def of_text(tokens: Tensor) -> Tensor:
            return read_text(predict, step, tokens)

        return evaluate(of_text)

    return stepped


def measure_decoding(job: CompressionJob) -> None:
    """Decode with the baseline and every candidate, interleaved, and record the tokens per second of each."""
    choice = job.recipe.measure.decode
    step = step_model(job.captured, choice)
    if step is None:
        return
    batch = step.start.tensors()[step.token].shape[0]
    job.reporter.phase(Phase.MEASURE, f"decoding {choice.tokens} tokens with each, in turn")
    reference, _ = decode(job.reference, step, tokens=choice.tokens, check=job.reporter.check)
    baseline_s: list[float] = []
    seconds: dict[int, list[float]] = {}
    chosen: dict[int, list[int]] = {}

    def once(job: CompressionJob, candidate: Candidate) -> None:
        tokens, took_s = decode(candidate.lowered, step, tokens=choice.tokens, check=job.reporter.check)  # type: ignore[arg-type]
        index = job.state.candidates.index(candidate)
        chosen[index] = tokens
        seconds.setdefault(index, []).append(took_s)

    for candidate in job.state.running:
        job.guarded(candidate, once)  # warms up; a runtime that cannot take a growing cache fails here
    seconds.clear()
    for _ in range(REPETITIONS):
        baseline_s.append(decode(job.reference, step, tokens=choice.tokens, check=job.reporter.check)[1])
        for candidate in job.state.running:
            job.guarded(candidate, once)
    report = decode_report(reference, reference, baseline_s, batch)
    job.state.baseline = msgspec.structs.replace(job.state.baseline, decode=report, tokens_per_s=report.tokens_per_s)
    job.tell_baseline()
    for index, times in seconds.items():
        report = decode_report(chosen[index], reference, times, batch)
        job.state.candidates[index].note(decode=report, tokens_per_s=report.tokens_per_s)
        job.tell(job.state.candidates[index])
