"""Checks of a candidate: validity of its outputs, fidelity to eager, and the user's metric."""

import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import Example, measured_places, pooled_outputs, tensor_leaves
from ace_studio.engine.flow.module_state import state_put_back
from ace_studio.engine.metrics.score import Score, score_from
from ace_studio.engine.quantize.fidelity import fidelity_db, measured_sqnr_db
from ace_studio.records.errors import AceError, ErrorCode, message_of

CONSECUTIVE_CALLS = 3
REPEAT_TOLERANCE = 1e-4
"""Largest difference between two calls with one input, as a part of the largest number."""
RUINED_DB = 6.0
"""Below this fidelity the error is more than half as large as the outputs."""


@dataclass(frozen=True)
class Fidelity:
    """How close a candidate's outputs are to eager's, over the examples that count.

    If some outputs are real numbers, indices, labels and truth values are counted by agreement, not by distance.
    """

    sqnr_db: float
    """10 log10 of signal power over error power, each summed over all examples; the worst output's. Otherwise
    one example with nearly zero outputs would decide alone. Capped at 200 dB for identical outputs."""
    centred_db: float | None
    """The same without the outputs' means; see `quantize.fidelity.fidelity_db`."""
    max_abs_error: float
    """Largest absolute difference, in the outputs' own unit."""
    agreement: float | None = None
    """Share of the indices, labels and truth values that equal eager's; None if there are none beside real numbers."""


def flat_outputs(call: Callable[..., Any], example: Example) -> list[Tensor]:
    """The output tensors of one call, flat, copied to the CPU; the call cannot change the example."""
    return [leaf.detach().cpu().clone() for leaf in tensor_leaves(example.copied().call(call))]


def eager_outputs(module: nn.Module, examples: Sequence[Example]) -> list[list[Tensor]]:
    """The eager module's outputs for every example, flat: the reference of all candidates.

    Raises: AceError(BAD_INPUT) if they have no elements, or no number in them is finite.
    """
    with torch.no_grad(), state_put_back(module):
        references = [flat_outputs(module, example) for example in examples]
    numbers = [leaf for outputs in references for leaf in outputs if leaf.numel()]
    if not numbers:
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "The outputs of the model have no elements on any example",
            why="nothing can be compared, so no artifact could be verified",
            remedy="Give examples with at least one sample, on which the model finds something.",
            where="[inputs]",
        )
    if not any(bool(leaf.isfinite().any()) for leaf in numbers):
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "The model itself gives only NaN or infinity on every example",
            why="no artifact can be compared with such outputs",
            remedy="Check that its weights are loaded, and give realistic examples: rows of the shape table are random "
            "numbers.",
            where="[inputs]",
        )
    return references


def check_candidate(
    call: Callable[..., Any],
    examples: Sequence[Example],
    references: Sequence[Sequence[Tensor]],
    *,
    counted: int | None = None,
    suspect: str = "",
) -> Fidelity:
    """Run a candidate on every example and compare it with eager.

    A result is valid only if its outputs have eager's shapes, are finite where eager's are, and repeat: the first
    example is run three times and must give the same outputs each time. The fidelity is that of the first ``counted``
    examples, or of all. ``suspect`` names a known cause of outputs that differ.

    Raises: AceError(WRONG_CAPTURE) that names the example and the rule.
    """
    results: list[list[Tensor]] = []
    for index, (example, reference) in enumerate(zip(examples, references, strict=True)):
        outputs = flat_outputs(call, example)
        _check_shapes(index, outputs, reference)
        _check_finite(index, outputs, reference)
        results.append(outputs)
        if index == 0:
            _check_repeatable(call, example, outputs, suspect=suspect)
    return fidelity_of(references[:counted], results[:counted])


def fidelity_of(references: Sequence[Sequence[Tensor]], results: Sequence[Sequence[Tensor]]) -> Fidelity:
    """How close the outputs for all examples are."""
    reference, outputs = pooled_outputs(references), pooled_outputs(results)
    measured = measured_places(reference)
    pairs = list(zip(reference, outputs, strict=True))
    counted = [pair for place, pair in enumerate(pairs) if place not in measured and pair[0].numel()]
    equal, total = (sum(values) for values in zip(*(_equal_of(pair) for pair in counted), (0, 0), strict=True))
    return Fidelity(
        sqnr_db=measured_sqnr_db(reference, outputs),
        centred_db=fidelity_db(references, results),
        max_abs_error=max((_largest_difference(*pairs[place]) for place in measured), default=0.0),
        agreement=equal / total if total else None,
    )


def _equal_of(pair: tuple[Tensor, Tensor]) -> tuple[int, int]:
    """The number of equal elements of two tensors, and the number of all."""
    return int((pair[0] == pair[1]).sum()), pair[0].numel()


def _check_shapes(index: int, outputs: Sequence[Tensor], reference: Sequence[Tensor]) -> None:
    got, expected = [tuple(one.shape) for one in outputs], [tuple(one.shape) for one in reference]
    if got != expected:
        is_size = [len(shape) for shape in got] == [len(shape) for shape in expected]
        raise AceError.of(
            ErrorCode.WRONG_CAPTURE,
            f"The built model gives outputs of shape {got} for example {index}, eager gives {expected}",
            why="a size was fixed while building" if is_size else "the runtime computes another shape for an operator",
            remedy="Try another target" + (", or make the dimension static in the shape table." if is_size else "."),
        )


def _check_finite(index: int, outputs: Sequence[Tensor], reference: Sequence[Tensor]) -> None:
    for output, expected in zip(outputs, reference, strict=True):
        if output.is_floating_point() and bool((expected.isnan() & ~output.isnan()).any()):
            raise AceError.of(
                ErrorCode.WRONG_CAPTURE,
                f"The built model gives numbers for example {index} where eager gives NaN",
                why="an operator of the runtime drops NaN, or a value is stored in 8 bits, which cannot hold it",
                remedy="Replace NaN in the model before it computes, or use a target and a precision that keep it.",
            )
        if output.is_floating_point() and bool((~output.isfinite() & expected.isfinite()).any()):
            raise AceError.of(
                ErrorCode.WRONG_CAPTURE,
                f"The built model gives values that are not finite for example {index}; eager's are finite",
                why="a value left the range of the precision",
                remedy="Keep the op that overflows at fp32 with a rule, or use bf16 instead of fp16.",
            )


def _check_repeatable(call: Callable[..., Any], example: Example, first: Sequence[Tensor], *, suspect: str) -> None:
    for _ in range(CONSECUTIVE_CALLS - 1):
        again = flat_outputs(call, example)
        if not all(_repeats(one, other) for one, other in zip(first, again, strict=True)):
            raise AceError.of(
                ErrorCode.WRONG_CAPTURE,
                "The built model gives different outputs for the same input",
                why=suspect or "it keeps state between calls or draws random numbers",
                remedy="Make the state an input and an output of forward, and remove random ops in eval mode.",
            )


def _repeats(one: Tensor, other: Tensor) -> bool:
    """Whether two results of one call are the same; real numbers may differ by a part of the largest one."""
    if one.shape != other.shape:
        return False
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    finite = one[one.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return _largest_difference(one, other) <= REPEAT_TOLERANCE * max(largest, 1e-6)


def _largest_difference(one: Tensor, other: Tensor) -> float:
    difference = (one.double() - other.double()).abs() if not one.is_complex() else (one - other).abs().double()
    finite = difference[difference.isfinite()]
    return float(finite.max()) if finite.numel() else 0.0


def on_device(call: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """A ``predict`` for user code: takes tensors on any device, runs on ``device``, returns tensors on the CPU."""

    def predict(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(leaf, np.ndarray) for leaf in pytree.tree_leaves((args, kwargs))):
            raise TypeError("predict() takes tensors, as forward does, and got an array of numpy: torch.from_numpy(x)")
        with torch.no_grad():
            if device.type == "cpu":
                return call(*args, **kwargs)
            moved = Example(args=args, kwargs=kwargs).map_tensors(lambda leaf: leaf.to(device))
            return Example.of(((moved.call(call)),)).map_tensors(lambda leaf: leaf.cpu()).args[0]

    return predict


def measure_score(
    evaluate: Callable[[Callable[..., Any]], Any], predict: Callable[..., Any], *, what: str, higher_is_better: bool
) -> Score:
    """The metric of one candidate, with its samples if the evaluation returns them.

    Raises: AceError(USER_CODE) if the function raises, or returns neither a finite number nor the scores of all
        samples.
    """
    try:
        value = evaluate(predict)
    except AceError:
        raise
    except Exception as error:  # the function is the user's and may raise anything
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"evaluate() raised {type(error).__name__} while it measured {what}: {message_of(error)}",
            why="the function that measures accuracy is yours, and it did not finish",
            remedy="Call it with the eager model as predict and fix it there.",
            where=f"{frame.filename}:{frame.lineno}",
            details="".join(traceback.format_exception(error)),
        ) from error
    try:
        score = score_from(value, higher_is_better=higher_is_better)
    except (TypeError, ValueError) as error:
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"evaluate() returned {type(value).__name__} instead of a number",
            why="candidates are compared by that number",
            remedy="Return one float, such as the accuracy over the held-out data, or the scores of all samples.",
            where="[evaluate] function",
        ) from error
    if not math.isfinite(score.value):
        raise AceError.of(
            ErrorCode.USER_CODE,
            f"evaluate() returned {score.value} for {what}",
            why="a metric that is not finite cannot be compared",
            remedy="Check the data it runs on, and whether the outputs are finite.",
            where="[evaluate] function",
        )
    return score


def metric_drop(baseline: float, metric: float, *, higher_is_better: bool) -> float:
    """Relative loss against the baseline, as a fraction; negative is a gain. For a baseline of 0, the absolute loss."""
    loss = baseline - metric if higher_is_better else metric - baseline
    return loss / abs(baseline) if baseline else loss
