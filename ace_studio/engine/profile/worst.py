"""Which samples a compressed model does badly on, compared with the float model."""

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from ace_studio.engine.metrics import Score
from ace_studio.engine.metrics.score import SampleArray
from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB, decibels, measured_sqnr_db
from ace_studio.records.results import WorstSample

SHOWN = 5
"""Samples per run."""


def worst_of_scores(baseline: Score, score: Score, *, run: int) -> list[WorstSample]:
    """The evaluation samples on which a run loses most against the float model, the worst first.

    By the loss of the sample where the metric has one, else by the energy of the error of its outputs. Samples on which
    nothing is lost are left out. Empty if the scores hold nothing per sample.
    """
    ratios = _output_errors(baseline.outputs, score.outputs)
    errors = ratios
    if baseline.loss is not None and score.loss is not None and len(baseline.loss) == len(score.loss):
        errors = score.loss - baseline.loss
    if errors is None:
        return []
    order = sorted(range(len(errors)), key=lambda one: (-errors[one], -ratios[one] if ratios is not None else 0.0))
    return [
        WorstSample(
            run=run,
            sample=index,
            source="evaluation",
            error=float(errors[index]),
            sqnr_db=None if ratios is None else round(decibels(1.0, float(ratios[index])), 2),
            label=score.labels[index] if index < len(score.labels) else "",
        )
        for index in order[:SHOWN]
        if errors[index] > 0
    ]


def worst_of_outputs(
    references: Sequence[Sequence[Tensor]], outputs: Sequence[Sequence[Tensor]], *, run: int, source: str
) -> list[WorstSample]:
    """The `SHOWN` examples whose outputs are furthest from the float model's, the worst first.

    Args:
        references: Flat outputs of the float model, per example.
        outputs: Those of the run.
        run: Index of the run.
        source: ``calibration`` or ``tracing``.
    """
    decibels = [_fidelity_db(wanted, given) for wanted, given in zip(references, outputs, strict=True)]
    order = sorted(range(len(decibels)), key=decibels.__getitem__)
    return [
        WorstSample(
            run=run, sample=index, source=source, error=10 ** (-decibels[index] / 10), sqnr_db=round(decibels[index], 2)
        )
        for index in order[:SHOWN]
        if decibels[index] < SQNR_CAP_DB
    ]


def _fidelity_db(wanted: Sequence[Tensor], given: Sequence[Tensor]) -> float:
    """SQNR of the worst output that is measured by it; the least there is where shapes differ."""
    if [one.shape for one in wanted] != [one.shape for one in given]:
        return -SQNR_CAP_DB
    return measured_sqnr_db(wanted, given)


def _output_errors(wanted: Sequence[SampleArray], given: Sequence[SampleArray]) -> SampleArray | None:
    """Energy of the error over the energy of the outputs, per sample; None if the outputs were not kept."""
    if not wanted or len(wanted) != len(given):
        return None
    found = []
    for one, other in zip(wanted, given, strict=True):
        signal, noise = (
            float((one**2).sum()),
            float(((one - other) ** 2).sum()) if one.shape == other.shape else math.inf,
        )
        found.append(0.0 if noise == 0 else noise / signal if signal else math.inf)
    return np.asarray(found)
