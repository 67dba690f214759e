"""The calibration examples: read, put where the model is, and tried on the model before anything relies on them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.examples.data_files import choose_indices
from ace_studio.engine.examples.forms import in_form_of, places_of_forward
from ace_studio.engine.examples.reader import read_examples
from ace_studio.engine.flow import Captured, CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import CalibrationChoice, Subset

WHERE = "[calibration] inputs"


MOST_READ = 4096
"""So many examples of a function are read at most if not simply the first ones are wanted; it may have no end."""


class CalibrationExamples:
    """The calibration examples of a job: read at the first call; every call gives copies."""

    def __init__(self, loaded: LoadedModel, captured: Captured, choice: CalibrationChoice, reporter: Reporter) -> None:
        self._loaded, self._captured, self._choice, self._reporter = loaded, captured, choice, reporter
        self._examples: list[Example] | None = None

    def __call__(self) -> list[Example]:
        """Raises: AceError, as `read_calibration` says."""
        if self._examples is None:
            self._reporter.phase(Phase.CALIBRATE, "reading the calibration examples")
            self._examples = read_calibration(
                self._loaded,
                self._captured,
                samples=self._choice.samples,
                subset=self._choice.subset,
                reporter=self._reporter,
            )
        return [example.copied() for example in self._examples]


def read_calibration(
    loaded: LoadedModel,
    captured: Captured,
    *,
    samples: int,
    subset: Subset = Subset.FIRST,
    reporter: Reporter | None = None,
) -> list[Example]:
    """At most ``samples`` examples on the model's device; the user's tracing examples if no data were given.

    ``subset`` says which, if there are more. What a loader gives beside the inputs (labels) is left out, and so are
    examples of sizes that the graph does not take, such as the last batch of a loader (all stay if it takes none);
    ``reporter`` hears of both.

    Raises: AceError(NO_DATA) if there are none; AceError(USER_CODE) if the function raises; AceError(BAD_INPUT) if
        the model cannot take one of them.
    """
    reporter = reporter or Reporter()
    if loaded.calibration is None:
        return list(captured.examples[: len(captured.examples) - len(captured.unseen)])
    values = read_examples(
        loaded.calibration,
        role="calibration",
        where=WHERE,
        limit=samples if subset is Subset.FIRST else max(samples, MOST_READ),
        remedy="Return at least one example, for activation ranges to be found on; 32 to 128 are usual.",
    )
    device = captured.device
    values = tuple(values[index] for index in choose_indices(len(values), samples=samples, subset=subset))
    alike = [in_form_of(value, captured.example, captured.module) for value in values]
    examples = [one.map_tensors(lambda leaf: leaf.to(device)) for one in _inputs_alone(alike, captured, reporter)]
    _try_on_model(examples, captured)
    return _that_fit(examples, captured, reporter)


def _inputs_alone(examples: Sequence[Example], captured: Captured, reporter: Reporter) -> list[Example]:
    """The examples without what stands behind the inputs and forward has no place for: the labels of a loader."""
    wanted = len(captured.example.args)
    takes = places_of_forward(captured.module)
    found = [
        Example(args=one.args[:wanted]) if not one.kwargs and len(one.args) > takes >= wanted else one
        for one in examples
    ]
    if found != list(examples):
        reporter.warn(
            "calibration-labels",
            f"The calibration examples hold more values than forward takes; only the first "
            f"{'is' if wanted == 1 else f'{wanted} are'} used: the others are taken for labels",
            where=WHERE,
        )
    return found


def _that_fit(examples: Sequence[Example], captured: Captured, reporter: Reporter) -> list[Example]:
    """The examples of sizes that the graph takes; all if it takes none, because torch's targets may take them still."""
    if not isinstance(captured, CapturedModel):
        return list(examples)
    examples = _in_batches_of_the_graph(examples, captured)
    problems = [_size_problem(example, captured) for example in examples]
    fitting = [example for example, problem in zip(examples, problems, strict=True) if not problem]
    lost = len(examples) - len(fitting)
    if not lost:
        return fitting
    problem = next(filter(None, problems))
    if fitting:
        what = f"{lost} of {len(examples)} calibration examples are left out: {problem}"
    else:
        what = (
            f"The graph was captured for other sizes than all {lost} calibration examples have: {problem}; not every "
            "target can use them. Add a tracing example of another size there, so that the dimension stays free, or "
            "give calibration examples of the size that it has"
        )
    reporter.warn("calibration-sizes", what, where=WHERE)
    return fitting or list(examples)


def _in_batches_of_the_graph(examples: Sequence[Example], captured: CapturedModel) -> Sequence[Example]:
    """The same samples in batches of the size that the graph holds, where only the batches are of another size.

    A loader gives the batches of training, and a graph that was traced with one sample takes one. Rows that fill no
    batch are left out. The examples themselves where anything else is in the way.
    """
    held = {tensor.shape[:1] for tensor in captured.example.tensors()}
    is_free = any(0 in free for free in captured.dynamic_dims())
    given = [{tensor.shape[:1] for tensor in example.tensors()} for example in examples]
    shapes = {tuple((tensor.shape[1:], tensor.dtype) for tensor in example.tensors()) for example in examples}
    is_alike = len(held) == 1 and held != {()} and len(shapes) == 1 and all(len(one) == 1 for one in given)
    if is_free or not is_alike or all(one == held for one in given):
        return examples
    ((size,),) = held
    columns = [torch.cat(leaves) for leaves in zip(*(example.tensors() for example in examples), strict=True)]
    parts = zip(*(torch.split(column, size) for column in columns), strict=True)
    batches = []
    for leaves in parts:
        if len(leaves[0]) == size:
            waiting = iter(leaves)
            batches.append(captured.example.map_tensors(lambda _, waiting=waiting: next(waiting)))  # type: ignore[misc]
    return batches or examples


def _size_problem(example: Example, captured: Captured) -> str:
    """Which size of an example the graph does not take; empty if it takes all."""
    for finding, free, leaf, traced in zip(
        captured.inputs, captured.dynamic_dims(), example.tensors(), captured.example.tensors(), strict=True
    ):
        for index, (size, fixed) in enumerate(zip(leaf.shape, traced.shape, strict=False)):
            if index not in free and size != fixed:
                return f"dimension {index} of {finding.name} is {size}, and the graph holds {fixed}"
    return ""


def _try_on_model(examples: Sequence[Example], captured: Captured) -> None:
    """Run the first example of every form (shapes and types) through eager."""
    eager = EagerRun.of(captured.module)
    seen = set()
    for index, example in enumerate(examples):
        form = (len(example.args), *example.kwargs, *((tuple(one.shape), one.dtype) for one in example.tensors()))
        if form not in seen:
            seen.add(form)
            run_example(eager, example, label=f"calibration example {index + 1}")
