"""Inputs that are chosen to show whether a runtime computes the model's function, with eager's answers to them."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from ace_studio.engine.capture.eager import EagerRun
from ace_studio.engine.flow import Captured, CapturedModel, Example, tensor_leaves
from ace_studio.engine.shapes import example_at

FLOATS: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "negative values": lambda leaf: -leaf.nan_to_num().abs(),
    "values a million times smaller": lambda leaf: leaf * 1e-6,
    "values near 1e-30": lambda leaf: leaf * 1e-30,
    "values a thousand times larger": lambda leaf: leaf * 1e3,
}
SPECIAL = {"NaN": math.nan, "infinity": math.inf, "minus infinity": -math.inf}
LARGE = (2**24 + 1, 2**31 - 1, 2**31, 2**40 + 12345)
"""Beyond what float32 and int32 hold exactly."""
LEAST_SECONDS = 2.0
SHARE = 0.05
"""Eager runs probes for this part of what the job has taken so far, and for `LEAST_SECONDS` in any case."""
NOISY_CALLS = 8
"""So many calls show what rounding decides, such as which of two equal scores is the larger one."""
_ULP = 2.0**-23
_INTEGERS = (torch.int16, torch.int32, torch.int64)
_LOOKUPS = ("embedding", "index_select", "gather", "index.Tensor", "one_hot", "_embedding_bag")
_OF_INFINITY = ("isinf", "isfinite", "nan_to_num")
_PRODUCTS = ("convolution", "conv", "mm", "linear", "matmul", "attention", "lstm", "gru", "rnn")


@dataclass
class Probe:
    """One input, and what the captured eager module gives for it."""

    name: str
    example: Example
    expected: list[Tensor]
    is_given: bool
    """Whether it is one of the user's examples."""


class Probes:
    """The probes of one capture. The user's examples come first, then what the capture made up, then the rest."""

    def __init__(self, captured: Captured, *, seconds: float) -> None:
        self._eager = EagerRun.of(captured.module)
        self._noisy: dict[int, list[float]] = {}
        self.all: list[Probe] = []
        end, count = time.monotonic() + max(LEAST_SECONDS, SHARE * seconds), len(captured.given_examples)
        for at, (name, example) in enumerate(_inputs(captured)):
            if at >= len(captured.examples) and time.monotonic() > end:
                break
            result = self._eager.output_if_accepted(example)
            if result is not None:
                expected = [leaf.cpu() for leaf in tensor_leaves(result)]
                if not self.all or len(expected) == len(self.all[0].expected):
                    self.all.append(Probe(name, example, expected, at < count))

    def noise(self, probe: Probe) -> list[float]:
        """How far each output moves if every float input moves by one unit in the last place, in its own unit.

        Of indices, labels and truth values it is their number that change.
        """
        signs = torch.Generator().manual_seed(0)

        def moved(leaf: Tensor) -> Tensor:
            if not leaf.is_floating_point():
                return leaf
            return leaf * (1 + _ULP * (torch.randint(0, 2, leaf.shape, generator=signs).to(leaf) * 2 - 1))

        if id(probe) not in self._noisy:
            found = [self._eager.output_if_accepted(probe.example.map_tensors(moved)) for _ in range(NOISY_CALLS)]
            others = [[leaf.cpu() for leaf in tensor_leaves(one)] for one in found if one is not None]
            away = [[moved_by(*pair) for pair in zip(probe.expected, one, strict=False)] for one in others]
            self._noisy[id(probe)] = [max(each) for each in zip([0.0] * len(probe.expected), *away, strict=True)]
        return self._noisy[id(probe)]


def moved_by(one: Tensor, other: Tensor) -> float:
    """The largest difference of two real outputs, or the number of different integers; infinite for other shapes."""
    if one.shape != other.shape:
        return math.inf  # values decide about its length
    if not (one.is_floating_point() or one.is_complex()):
        return float((one != other).sum())
    return largest((one - other).double() if not one.is_complex() else one - other)


def largest(value: Tensor) -> float:
    """The largest finite absolute value; 0 if there is none."""
    sizes = value.abs().double()
    return float(sizes[sizes.isfinite()].max()) if sizes.isfinite().any() else 0.0


def _inputs(captured: Captured) -> Iterator[tuple[str, Example]]:
    """Name and input of each probe; eager may refuse any but the captured ones."""
    given = len(captured.given_examples)
    for at, example in enumerate(captured.examples):
        yield (f"example {at + 1}" if at < given else f"inputs of the sizes {example.size_words}"), example
    if not isinstance(captured, CapturedModel) or captured.first_state:
        return  # Python decides by values, or an answer depends on the calls before
    base = min(captured.given_examples or captured.examples, key=lambda one: sum(map(Tensor.numel, one.tensors())))
    leaves = base.tensors()
    if any(leaf.is_floating_point() for leaf in leaves):
        for name, change in FLOATS.items():
            changed = iter([change(leaf) if leaf.is_floating_point() else leaf for leaf in leaves])
            yield name, base.map_tensors(lambda _, changed=changed: next(changed))  # type: ignore[misc]
    yield from _small_sizes(captured, base)
    nodes = _input_nodes(captured) if captured.has_eager_ops else {}
    for place, node in nodes.items():
        name, leaf = captured.inputs[place].name, leaves[place]
        if leaf.is_floating_point():
            for word, value in _defined(node).items():
                yield f"{word} in {name}", _with_leaf(base, place, _sprinkled(leaf, value))
        if leaf.dtype in _INTEGERS and (ends := _table_ends(node)):
            reach = torch.iinfo(leaf.dtype).max
            for value in sorted({0, *ends, *(large for large in LARGE if large <= reach)}):
                yield f"{name} = {value}", _with_leaf(base, place, torch.full_like(leaf, value))


def _small_sizes(captured: Captured, base: Example) -> Iterator[tuple[str, Example]]:
    """Each dynamic size at the smallest that the graph allows; sizes that are equal in all examples move together."""
    tensors = [one.tensors() for one in captured.given_examples]
    alike: dict[object, dict[tuple[int, int], int]] = {}
    for place, found in enumerate(captured.inputs):
        for dim in found.dims:
            if dim.verdict == "dynamic":
                sizes = tuple(one[place].shape[dim.index] for one in tensors)
                alike.setdefault(sizes, {})[place, dim.index] = max(dim.min or 1, 1)
    for places in alike.values():
        least = max(places.values())
        words = ", ".join(f"{captured.inputs[place].name}.{dim}" for place, dim in places)
        yield f"a size of {least} of {words}", example_at(base, dict.fromkeys(places, least))


def _with_leaf(example: Example, place: int, value: Tensor) -> Example:
    at = iter(range(place + 1))
    return example.map_tensors(lambda leaf: value if next(at, -1) == place else leaf)


def _sprinkled(leaf: Tensor, value: float) -> Tensor:
    """The leaf with the value in three places."""
    changed = leaf.clone(memory_format=torch.contiguous_format)
    changed.view(-1)[:: max(1, leaf.numel() // 3)] = value
    return changed


def _input_nodes(captured: CapturedModel) -> dict[int, fx.Node]:
    """Place of each tensor input -> its node in the graph."""
    names = list(captured.program.graph_signature.user_inputs)
    nodes = {node.name: node for node in captured.program.graph.nodes if node.op == "placeholder"}
    tensors = [node for name in names if isinstance(node := nodes.get(str(name)), fx.Node) and "val" in node.meta]
    tensors = [node for node in tensors if isinstance(node.meta["val"], Tensor)]
    return dict(enumerate(tensors)) if len(tensors) == len(captured.inputs) else {}


def _reached(
    node: fx.Node, *, until: tuple[str, ...], only: Callable[[fx.Node], bool] = lambda _: True
) -> Iterator[tuple[fx.Node, fx.Node]]:
    """Every op that the value reaches, with the node that brings it there; not beyond ops of these names."""
    seen, stack = {node}, [node]
    while stack:
        source = stack.pop()
        for user in source.users:
            yield user, source
            is_on_the_way = user.op == "call_function" and not any(word in str(user.target) for word in until)
            if user not in seen and is_on_the_way and only(user):
                seen.add(user)
                stack.append(user)


def _is_integer(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.dtype in _INTEGERS


def _defined(node: fx.Node) -> dict[str, float]:
    """The special values that the model looks for in an input before it computes with it: it says what they mean."""
    looked_for = [(str(user.target), set(user.args) == {source}) for user, source in _reached(node, until=_PRODUCTS)]
    if any(word in name for name, _ in looked_for for word in _OF_INFINITY):
        return SPECIAL
    is_nan = any("isnan" in name or (is_itself and ".ne." in name) for name, is_itself in looked_for)
    return {"NaN": math.nan} if is_nan else {}


def _table_ends(node: fx.Node) -> set[int]:
    """Last rows of the tables that the values of an input are looked up in, as they are or computed with."""
    ends: set[int] = set()
    for user, source in _reached(node, until=_LOOKUPS, only=_is_integer):
        if any(word in str(user.target) for word in _LOOKUPS) and user.args and user.args[0] is not source:
            table = user.args[0].meta.get("val") if isinstance(user.args[0], fx.Node) else None
            if isinstance(table, Tensor):
                ends.update(int(size) - 1 for size in table.shape if isinstance(size, int) and size > 1)
    return ends
