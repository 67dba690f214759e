"""Examples made to fit what a captured graph takes: without labels, in its batches, at its sizes."""

from collections.abc import Sequence

import torch
from torch import nn

from ace_studio.engine.examples.forms import places_of_forward
from ace_studio.engine.examples.leaves import describe, forward_parameters
from ace_studio.engine.flow import Captured, Example
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode

_WHERE = "[calibration] inputs"


def without_labels(examples: Sequence[Example], captured: Captured, reporter: Reporter) -> list[Example]:
    """The examples without what stands behind the inputs and forward has no place for: the labels of a loader."""
    count = len(captured.example.args)
    alone = [inputs_alone(one, captured.example, captured.module) for one in examples]
    if alone != list(examples):
        reporter.warn(
            "calibration-labels",
            f"The calibration examples hold more values than forward takes; only the first "
            f"{'is' if count == 1 else f'{count} are'} used: the others are taken for labels",
            where=_WHERE,
        )
    return alone


def inputs_alone(example: Example, form: Example, module: nn.Module) -> Example:
    """The example without what stands behind the inputs of ``form`` and forward has no place for."""
    count, takes = len(form.args), places_of_forward(module)
    return Example(args=example.args[:count]) if not example.kwargs and len(example.args) > takes >= count else example


def that_fit(examples: Sequence[Example], captured: Captured, reporter: Reporter) -> list[Example]:
    """The examples of sizes that the graph takes; all if it takes none, because torch's targets may take them still.

    Raises: AceError(BAD_INPUT) if one has other inputs than the graph.
    """
    if not captured.is_whole:
        return list(examples)
    for index, example in enumerate(examples):
        _check_inputs(example, captured, label=f"calibration example {index + 1}")
    examples = _in_batches_of_the_graph(examples, captured)
    problems = [size_problem(example, captured) for example in examples]
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
    reporter.warn("calibration-sizes", what, where=_WHERE)
    return fitting or list(examples)


def _check_inputs(example: Example, captured: Captured, *, label: str) -> None:
    given, wanted = len(example.tensors()), len(captured.example.tensors())
    if given != wanted:
        names = ", ".join(finding.name for finding in captured.inputs)
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"The graph cannot take {label} ({describe(example, forward_parameters(captured.module))})",
            why=f"it holds {given} tensors, and the graph was captured with {wanted}: {names}",
            remedy="Give the tracing examples and the calibration examples the same inputs.",
            where=_WHERE,
        )


def _in_batches_of_the_graph(examples: Sequence[Example], captured: Captured) -> Sequence[Example]:
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


def size_problem(example: Example, captured: Captured) -> str:
    """Which size of an example the graph does not take; empty if it takes all, as subgraphs do."""
    if not captured.is_whole:
        return ""
    for finding, free, leaf, traced in zip(
        captured.inputs, captured.dynamic_dims(), example.tensors(), captured.example.tensors(), strict=True
    ):
        for index, (size, fixed) in enumerate(zip(leaf.shape, traced.shape, strict=False)):
            if index not in free and size != fixed:
                return f"dimension {index} of {finding.name} is {size}, and the graph holds {fixed}"
    return ""
