"""The metric of a job: where it comes from, its value and drop, and the intervals of both."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ace_studio.engine import evaluate
from ace_studio.engine.flow import Captured, DataSources, Example, LoadedModel
from ace_studio.engine.load import read_arrays
from ace_studio.engine.metrics import Score, drop_interval, interval, labelled_metric
from ace_studio.engine.metrics.labelled import metric_of_arrays
from ace_studio.engine.pipeline.compress.calibration import WatchedMetric
from ace_studio.engine.pipeline.compress.decoding import reads_texts, step_model
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.tensors import DATA_SUFFIXES

_ZERO = "metric-of-zero"
DYNAMIC_BATCH = 32
"""Samples of a file in one call if the batch is free."""


def with_metric(loaded: LoadedModel, captured: Captured, recipe: Recipe, folder: Path) -> LoadedModel:
    """The model with the built-in metric that the recipe names; as it is if the recipe names none.

    Args:
        loaded: The model and its data sources.
        captured: Its inputs say how many samples a call may have.
        recipe: ``[evaluate]`` counts.
        folder: Folder that the recipe's paths are relative to.

    Raises: AceError(NOT_FOUND, BAD_FILE or BAD_INPUT) if a file of data cannot be read or does not fit.
    """
    if loaded.data.evaluate is not None or not recipe.evaluate.metric:
        return loaded
    batch = DYNAMIC_BATCH if 0 in captured.dynamic_dims()[0] else samples_of(captured.example)
    metric = metric_of(loaded.data, recipe, folder, batch=batch)
    step = step_model(captured, recipe.measure.decode) if recipe.evaluate.metric == "perplexity" else None
    if step is not None and metric is not None:
        metric = reads_texts(step, metric)
    return loaded.with_data(evaluate=metric and WatchedMetric(metric))


def metric_of(data: DataSources, recipe: Recipe, folder: Path, *, batch: int) -> Callable[..., Any] | None:
    """The user's metric, or the built-in one that the recipe names; None if there is neither.

    ``batch`` is the number of samples of a file that are run at a time. Raises: AceError, as `with_metric` does.
    """
    chosen = recipe.evaluate
    if data.evaluate is not None or not chosen.metric:
        return data.evaluate
    if chosen.data.endswith(DATA_SUFFIXES):
        path = folder / chosen.data
        return metric_of_arrays(chosen.metric, read_arrays(path), batch=batch, output=chosen.output, where=str(path))
    if data.labelled is None:
        return None
    return labelled_metric(chosen.metric, data.labelled, output=chosen.output)


def samples_of(example: Example) -> int:
    """Samples in one call: the length of the first tensor; 1 without one, and running the model says what is wrong."""
    first = next(iter(example.tensors()), None)
    return len(first) if first is not None and first.ndim else 1


def baseline_facts(score: Score | None) -> dict[str, Any]:
    """Fields of `Baseline` about the metric."""
    return {} if score is None else {"metric": score.value, "samples": score.samples, **_bounds(score)}


def metric_facts(job: CompressionJob, score: Score) -> dict[str, Any]:
    """Fields of `TargetRun` about the metric and its drop."""
    assert job.state.baseline.metric is not None
    better = job.recipe.evaluate.is_higher_better
    drop = evaluate.metric_drop(job.state.baseline.metric, score.value, higher_is_better=better)
    is_bounded = job.recipe.goal.max_drop is not None
    if is_bounded and not job.state.baseline.metric and _ZERO not in {one.code for one in job.reporter.warnings}:
        job.reporter.warn(
            _ZERO,
            "The metric of the original is 0, and nothing can be relative to that: max_drop bounds the absolute loss, "
            "and a metric that cannot fall below 0 meets it whatever the outputs are",
            where="[goal] max_drop",
        )
    facts = {"metric": score.value, "metric_drop": drop, **_bounds(score)}
    paired = job.state.baseline_score and drop_interval(job.state.baseline_score, score, higher_is_better=better)
    if paired:
        facts |= {"drop_low": paired[0], "drop_high": paired[1]}
    return facts


def _bounds(score: Score) -> dict[str, float]:
    bounds = interval(score)
    return {} if bounds is None else {"metric_low": bounds[0], "metric_high": bounds[1]}
