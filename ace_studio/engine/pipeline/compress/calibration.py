"""Reads the calibration examples, moves them to the model's device and tries them on the model."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.examples.fitting import that_fit, without_labels
from ace_studio.engine.examples.forms import in_form_of
from ace_studio.engine.examples.gather import WHERE
from ace_studio.engine.examples.reader import read_examples
from ace_studio.engine.examples.wanted import choose_indices
from ace_studio.engine.flow import Captured, DataSources, Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import split_examples
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import CalibrationChoice, Subset

MOST_READ = 4096
"""Most examples that are read of a function, which may be endless, to choose a subset from."""
LEAST_TO_HOLD_OUT = 16
"""From so many examples on, every fourth is kept to judge by, and ranges are found on the others."""


class CalibrationExamples:
    """The calibration examples of a job: read at the first call; every call gives copies."""

    def __init__(self, data: DataSources, captured: Captured, choice: CalibrationChoice, reporter: Reporter) -> None:
        self._data, self._captured, self._choice, self._reporter = data, captured, choice, reporter
        self._examples: tuple[list[Example], list[Example]] | None = None

    def __call__(self) -> list[Example]:
        """What to calibrate on. Raises: AceError, as `read_calibration` says."""
        return [example.copied() for example in self._read()[0]]

    def held_out(self) -> list[Example]:
        """What to judge by, as nothing was calibrated on it; empty if there are too few examples."""
        return [example.copied() for example in self._read()[1]]

    def _read(self) -> tuple[list[Example], list[Example]]:
        if self._examples is None:
            self._reporter.phase(Phase.CALIBRATE, "reading the calibration examples")
            choice = self._choice
            found = read_calibration(
                self._data, self._captured, samples=choice.samples, subset=choice.subset, reporter=self._reporter
            )
            self._examples = split_examples(found) if len(found) >= LEAST_TO_HOLD_OUT else (found, [])
        return self._examples


def read_calibration(
    data: DataSources,
    captured: Captured,
    *,
    samples: int,
    subset: Subset = Subset.FIRST,
    reporter: Reporter | None = None,
) -> list[Example]:
    """At most ``samples`` examples on the model's device; the user's tracing examples if no data were given.

    ``subset`` says which, if there are more. Labels beside the inputs are left out, and so are examples of sizes that
    the graph does not take, such as the last batch of a loader (all stay if it takes none); ``reporter`` gets a warning
    for both.

    Raises: AceError(NO_DATA) if there are none; AceError(USER_CODE) if the function raises; AceError(BAD_INPUT) if
        the model cannot take one of them.
    """
    reporter = reporter or Reporter()
    if data.calibration is None:
        return list(captured.given_examples)
    device = captured.device
    values = chosen_values(data.calibration, samples=samples, subset=subset)
    alike = [in_form_of(value, captured.example, captured.module) for value in values]
    examples = [one.map_tensors(lambda leaf: leaf.to(device)) for one in without_labels(alike, captured, reporter)]
    _try_on_model(examples, captured)
    return that_fit(examples, captured, reporter)


def chosen_values(function: Callable[[], Iterable[object]], *, samples: int, subset: Subset) -> tuple[Example, ...]:
    """At most ``samples`` of the examples as they are. Raises: AceError(NO_DATA, USER_CODE or BAD_INPUT)."""
    values = read_examples(
        function,
        role="calibration",
        where=WHERE,
        limit=samples if subset is Subset.FIRST else max(samples, MOST_READ),
        remedy="Return at least one example, for activation ranges to be found on; 32 to 128 are usual.",
    )
    return tuple(values[index] for index in choose_indices(len(values), samples=samples, subset=subset))


def _try_on_model(examples: Sequence[Example], captured: Captured) -> None:
    """Run the first example of every form (shapes and types) through eager."""
    eager = EagerRun.of(captured.module)
    seen = set()
    for index, example in enumerate(examples):
        form = (len(example.args), *example.kwargs, *((tuple(one.shape), one.dtype) for one in example.tensors()))
        if form not in seen:
            seen.add(form)
            run_example(eager, example, label=f"calibration example {index + 1}")


class WatchedMetric:
    """A metric that notes the samples of its first evaluation, to find them among the calibration data."""

    def __init__(self, metric: Callable[..., Any]) -> None:
        self._metric = metric
        self.digests: set[bytes] = set()

    def __call__(self, predict: Callable[..., Any]) -> Any:
        """The value of the metric."""
        if self.digests:
            return self._metric(predict)

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.digests |= _digests(Example(args=args, kwargs=kwargs))
            return predict(*args, **kwargs)

        return self._metric(noted)


def warn_about_calibration(examples: Sequence[Example], metric: object, reporter: Reporter) -> None:
    """Warn about calibration data whose ranges mean little, or that make the metric look better than it is.

    Raises: AceError(NO_DATA) if the examples have no elements.
    """
    samples = set().union(*(_digests(example) for example in examples))
    if not samples:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "The calibration examples have no elements",
            why="their tensors are empty, so no activation range can be found",
            remedy="Return examples with at least one sample; 32 to 128 are usual.",
            where=WHERE,
        )
    if len(samples) == 1:
        reporter.warn(
            "few-calibration",
            "All calibration examples are one and the same sample: ranges found on it are too narrow for others; 32 to "
            "128 different ones are usual",
            where=WHERE,
        )
    leaked = len(samples & metric.digests) if isinstance(metric, WatchedMetric) else 0
    if leaked > len(samples) / 2:
        reporter.warn(
            "leaked-calibration",
            f"{leaked} of {len(samples)} calibration samples are also evaluated on: the metric may be better than on "
            "new data. Calibrate on other samples, such as those of training",
            where=WHERE,
        )


def _digests(example: Example) -> set[bytes]:
    """A digest of every sample: of all tensors at one index of their first dimension."""
    leaves = [
        leaf.detach().cpu().clone(memory_format=torch.contiguous_format)
        for leaf in example.tensors()
        if leaf.dim() and leaf.numel()
    ]
    rows = zip(*(leaf.reshape(len(leaf), -1).view(torch.uint8).numpy() for leaf in leaves), strict=False)
    return {hashlib.blake2b(b"".join(part.tobytes() for part in row), digest_size=8).digest() for row in rows}
