"""Compares a captured graph with eager: on one example, in consecutive calls, and for what it may have frozen."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.diagnose import Failure
from ace_studio.engine.capture.eager import FORWARD_SEED, EagerRun, call_in_turn, set_seed
from ace_studio.engine.examples.leaves import describe, forward_parameters
from ace_studio.engine.flow import Example
from ace_studio.engine.torch_private.operators import argument_names, is_random
from ace_studio.records.errors import ErrorCode, Problem, message_of

_SIZE = re.compile(r"(\w+(?:\[[^\]]*\])*)\.size\(\)\[(\d+)\]")
TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
    torch.complex64: 1e-4,
    torch.complex128: 1e-9,
}
"""Largest difference as a fraction of the largest number in the tensor; integers must be equal."""
_OF_NOISE = 8.0
"""A difference of this many times the model's own rounding is no other function."""


@dataclass(frozen=True)
class Mismatch:
    """Why a graph does not equal the model."""

    what: str
    why: str
    remedy: str = ""
    example: Example | None = None
    """The example that the graph refuses, if there is one."""
    by_guard: bool = False
    """Whether a guard of the graph refuses it, before anything is computed."""
    number: int = 0
    """Number of the user's example that shows the difference; 0 if it is about none."""

    def failure(self, *, where: str = "") -> Failure:
        """The failure of the attempt; ``where`` is the line to look at, if one is known."""
        problem = Problem(code=ErrorCode.WRONG_CAPTURE, what=self.what, why=self.why, remedy=self.remedy, where=where)
        return Failure(problem, example=self.number)


def difference(expected: Any, actual: Any, *, noise: Sequence[float] = ()) -> str:
    """The difference of two results in words; empty if they are equal within the tolerance of their type.

    ``noise``: what the model's own rounding moves each output by, where the tolerance of the type may be too small.
    """
    ones, others = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
    if len(ones) != len(others):
        return f"it returns {len(others)} values instead of {len(ones)}"
    for number, (one, other) in enumerate(zip(ones, others, strict=True)):
        if text := _leaf_difference(one, other, noise[number] if noise else 0.0):
            return f"output {number} {text}"
    return ""


def _leaf_difference(one: Any, other: Any, noise: float) -> str:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return "" if type(one) is type(other) and one == other else f"is {other!r:.60} instead of {one!r:.60}"
    if one.shape != other.shape and noise < math.inf:
        return f"has the shape {tuple(other.shape)} instead of {tuple(one.shape)}"
    if one.dtype != other.dtype:
        return f"is {other.dtype} instead of {one.dtype}".replace("torch.", "")
    if one.numel() == 0 or noise == math.inf:
        return ""
    if not (one.is_floating_point() or one.is_complex()):
        count = int((one != other).sum())
        return "" if count <= 2 * noise else f"differs in {count} of {one.numel()} values"
    one, other = one.detach(), other.detach()
    if lost := int((one.isnan() & ~other.isnan()).sum()):
        return f"is a number in {lost} of {one.numel()} places where the model gives NaN"
    if made := int((~one.isnan() & other.isnan()).sum()):
        return f"is NaN in {made} of {one.numel()} places where the model gives a number"
    tolerance = TOLERANCES.get(one.dtype, 5e-2)
    finite = one[torch.isfinite(one)]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    most = max(tolerance * max(scale, 1e-6), _OF_NOISE * noise)
    if torch.allclose(other, one, rtol=tolerance, atol=most, equal_nan=True):
        return ""
    return f"differs by up to {_largest(one, other):.3g} where the largest number is {scale:.3g}"


def _largest(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().nan_to_num(nan=float("inf")).max())


def unseen_label(example: Example, module: nn.Module) -> str:
    """The name in messages of an example at sizes that nobody gave."""
    return f"a size that nobody gave ({describe(example, forward_parameters(module))})"


RepeatedRun = Callable[[Sequence[Example]], list[Any]]
"""Gives the results of consecutive calls of something captured, the first from its first state."""


class GraphRun:
    """A captured program that can be called repeatedly, each time from its first state."""

    def __init__(self, program: ExportedProgram) -> None:
        self._module = program.module()
        self._buffers = {name: buffer.detach().clone() for name, buffer in self._module.named_buffers()}

    def __call__(self, examples: Sequence[Example]) -> list[Any]:
        """Results of consecutive calls, the first from the first state."""
        try:
            return call_in_turn(self._module, examples)
        finally:
            for name, buffer in self._module.named_buffers():
                buffer.copy_(self._buffers[name])


def check_example(
    graph: RepeatedRun, example: Example, *, expected: Any, label: str = "", number: int = 0
) -> Mismatch | None:
    """Compare one call with its eager result. None if the graph is right.

    Args:
        graph: What was captured.
        example: The call.
        expected: Its eager result.
        label: The name of the example in messages; ``example 2`` for one of the user's.
        number: The number of the user's example; 0 for one that was made up.
    """
    label = label or f"example {number}"
    try:
        actual = graph([example])[0]
    except Exception as error:  # noqa: BLE001 - a graph may refuse an input in any way; that is the finding
        return _refused(error, example, label, number)
    if text := difference(expected, actual):
        return Mismatch(
            what=f"The captured graph is not equal to the model on {label}",
            why=f"{text}; the code may take another path for these sizes or values",
            remedy="Make the computation the same for all inputs, or give only examples of one kind.",
            number=number,
        )
    return None


def _refused(error: Exception, example: Example, label: str, number: int) -> Mismatch:
    message = message_of(error, limit=200)
    if "Guard failed" not in message:
        return Mismatch(
            what=f"The captured graph does not accept {label}",
            why=f"running it raised {type(error).__name__}: {message}",
            remedy="Make the computation the same for every size, or leave that size out.",
            example=example,
            number=number,
        )
    rule = _SIZE.sub(r"\1.\2", message.removeprefix("Guard failed: "))
    return Mismatch(
        what=f"forward() takes another path on {label} than the one that was captured",
        why=f"a graph holds one path; this one holds only where {rule}",
        remedy="Make the computation the same for every size (no if on a size), or leave that size out.",
        example=example,
        by_guard=True,
        number=number,
    )


def check_consecutive_calls(eager: EagerRun, graph: RepeatedRun, example: Example, *, expected: Any) -> Mismatch | None:
    """Compare consecutive calls of the first example under one seed; a frozen state or random number shows here.

    The second call has other numbers of the same sizes, so that what the model keeps of the first one shows too. The
    first call is the check of the example itself; ``expected`` is its result.
    """
    calls = [example, _changed(example), example]
    try:
        correct = eager.outputs(calls)
    except Exception:  # noqa: BLE001 - the user's model may refuse made-up numbers in any way
        calls = [example] * len(calls)
        correct = eager.outputs(calls)
    try:
        actual = graph(calls)
    except Exception as error:  # noqa: BLE001 - a graph may refuse an input in any way; that is the finding
        return check_example(graph, example, expected=expected, number=1) or _refused(
            error, calls[1], "example 1 with other numbers", 1
        )
    for call, (one, other) in enumerate(zip(correct, actual, strict=True), start=1):
        if text := difference(one, other):
            first = check_example(graph, example, expected=expected, number=1) if call == 1 else None
            return first or Mismatch(
                what=f"The captured graph drifts from the model from call {call} on",
                why=f"{text}; the model keeps a state or draws random numbers in a way that the graph does not repeat",
                remedy="Pass the state in and return it; draw random numbers outside the model.",
            )
    return None


def _changed(example: Example) -> Example:
    """The example with other numbers: reversed, and floats scaled by 0.75, so that sums and means change as well.

    Booleans stay: a mask of padding that is reversed has its padding in front, and models may take another path then.
    """

    def change(tensor: Tensor) -> Tensor:
        if tensor.dtype is torch.bool:
            return tensor
        turned = tensor.flip(tuple(range(tensor.dim()))) if tensor.dim() else tensor
        return turned * 0.75 if tensor.is_floating_point() else turned

    return example.map_tensors(change)


def frozen_cause(eager: EagerRun, program: ExportedProgram, example: Example) -> Mismatch | None:
    """What a graph that differs from the model has frozen: an attribute, a global, or random numbers outside torch."""
    if attributes := eager.changed_by(example)[0]:
        return Mismatch(
            what=f"forward() changes the plain attribute {quoted(attributes)}, and a graph would freeze it",
            why="what it held while the graph was captured is a constant in the graph",
            remedy="Keep it as a registered buffer and update it in place, or pass it in and return it.",
        )
    if difference(eager.output(example), eager.output(example)):  # under one seed, from one state of the module
        return Mismatch(
            what="forward() gives another result at every call, and a graph would freeze one",
            why="it depends on something outside of the module and of its inputs: a global, a file, a clock, a counter",
            remedy="Keep it as a registered buffer and update it in place, or pass it in and return it.",
        )
    if is_varying(eager, example) and not random_ops(program):
        return Mismatch(
            what="forward() draws random numbers outside torch, and a graph would freeze them",
            why="the numbers that Python or numpy drew while the graph was captured are constants in the graph",
            remedy="Draw them with torch, or pass them in as an input.",
        )
    return None


def quoted(names: Sequence[str]) -> str:
    """The first names for a person: ``'calls', 'history'``."""
    return ", ".join(f"'{name}'" for name in names[:5])


def counting_attributes(eager: EagerRun, example: Example) -> list[str]:
    """The plain attributes that a call changes, if equal calls give other results because of them, again and again."""
    changed = eager.changed_by(example)[0]

    def from_one_seed(*args: Any, **kwargs: Any) -> Any:
        set_seed()
        return eager.module(*args, **kwargs)

    # The second and the third call: what is computed at the first one and kept is no counter.
    return changed if changed and difference(*eager.outputs([example] * 3, function=from_one_seed)[1:]) else []


def is_varying(eager: EagerRun, example: Example) -> bool:
    """Whether the model gives different results under two seeds."""
    return bool(difference(eager.output(example), eager.output(example, seed=FORWARD_SEED + 1)))


def random_ops(program: ExportedProgram) -> list[str]:
    """Ids of the ops that draw random numbers, without dropout that is switched off."""
    return [
        node.name
        for node in program.graph.nodes
        if node.op == "call_function" and is_random(node.target) and not _is_switched_off(node)
    ]


def _is_switched_off(node: fx.Node) -> bool:
    """Whether the op draws numbers for dropout only, and dropout is off."""
    arguments = dict(zip(argument_names(node.target), node.args, strict=False)) | dict(node.kwargs)
    if "train" in arguments or "training" in arguments:
        return not arguments.get("train", arguments.get("training"))
    name = str(node.target)
    return ("attention" in name or "dropout" in name) and not arguments.get("dropout_p", arguments.get("p", 0.0))
