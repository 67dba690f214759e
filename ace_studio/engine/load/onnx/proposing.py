"""Proposes inputs for an ONNX file: sizes and values that ONNX Runtime takes, found by trying."""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ace_studio.engine.load.first_layers import Proposal
from ace_studio.engine.load.onnx.model import TENSOR_TYPES, OnnxModule, dims_of
from ace_studio.engine.load.proposals import ProposedInput, ProposedRow, examples_of, said_of
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.tensors import ValueSource

_BATCH, _LENGTH, _SIDE, _PICTURE_DIMS = 1, 16, 224, 4
"""Sizes that are tried first where the file leaves them open: a batch, a length, the side of a picture."""
_OTHER_SIZES = (1, 8, 2, 4, 32, 64, 3, 128, 224, 256)
_ANOTHER = {1: 2, 16: 24, 224: 256}
"""Size of the first row -> that of the second; others are doubled. Sizes that are equal stay so."""
_VOCABULARY = 100
_SAME_NUMBERS = (
    "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile", "Slice", "Split",
    "Concat", "Where", "Round", "Floor", "DequantizeLinear",
)  # fmt: skip
"""Ops that give numbers that they take."""
_LOOKUPS = ("Gather", "GatherElements", "ScatterElements", "GatherND", "ScatterND")
MOST_TRIES, MOST_SECONDS = 60, 5.0


def propose_onnx_rows(module: OnnxModule) -> Proposal:
    """Two rows of different sizes that the file runs with, one if it runs at no other, or the error where none does.

    The likeliest inputs come first. Where they fail, one size or one input's integers is changed at a time, of inputs
    that the op that failed depends on; a change after which a later op fails is kept.
    """
    search = _Search(module)
    chosen = search.likeliest()
    depth = search.depth(chosen)
    while depth is not None:
        for changed in search.changes(chosen):
            if search.is_over():
                return Proposal(error=search.refusal())
            reached = search.depth(changed)
            if reached is None or reached > depth:
                chosen, depth = changed, reached
                break
        else:
            return Proposal(error=search.refusal())
    sizes = {key: _ANOTHER.get(size, 2 * size) for key, size in chosen.items() if key in search.open_sizes}
    longer = {key: size for key, size in sizes.items() if chosen[key] > 1}
    doubled = {key: 2 * chosen[key] for key in sizes}
    for other in (sizes, doubled, longer, *({key: size} for key, size in sizes.items())):
        if sizes and not search.is_over() and search.depth(chosen | other) is None:
            return Proposal((search.row(chosen), search.row(chosen | other)))
    return Proposal((search.row(chosen),))


class _Search:
    """Tries choices: open size, or ``ids <`` for the values of an input -> the size, or their bound.

    Without a bound (0), integers are all ones, and floats are normal.
    """

    def __init__(self, module: OnnxModule) -> None:
        self._module, self._nodes = module, module.model.graph.node
        self._inputs = dict(zip(module.names, module.inputs, strict=True))
        self.open_sizes = {dim for value in module.inputs for dim in dims_of(value) if isinstance(dim, str)}
        self._until = time.monotonic() + MOST_SECONDS
        self._tried: list[Mapping[str, int]] = []
        self._error: AceError | None = None

    def is_over(self) -> bool:
        return len(self._tried) >= MOST_TRIES or time.monotonic() > self._until

    def likeliest(self) -> dict[str, int]:
        """What names, ranks and tables suggest."""
        known, chosen = vocabularies(self._module.model.graph), dict[str, int]()
        for name, value in self._inputs.items():
            has_none, dims = "mask" in name or _is_float(value), dims_of(value)
            chosen[f"{name} <"] = known.get(value.name, 0 if has_none else 2 if "type" in name else _VOCABULARY)
            for index, dim in enumerate(dims):
                side = _SIDE if len(dims) == _PICTURE_DIMS and index > 1 else _LENGTH
                chosen.setdefault(str(dim), dim if isinstance(dim, int) else side if index else _BATCH)
        return chosen

    def row(self, chosen: Mapping[str, int]) -> ProposedRow:
        """The inputs."""
        return tuple(
            ProposedInput(
                name,
                tuple(chosen[str(dim)] for dim in dims_of(value)),
                dtype=TENSOR_TYPES[value.type.tensor_type.elem_type],
                values=ValueSource.RANDOM if _is_float(value) or chosen[f"{name} <"] else ValueSource.ONES,
                below=chosen[f"{name} <"],
            )
            for name, value in self._inputs.items()
        )

    def depth(self, chosen: Mapping[str, int]) -> int | None:
        """Place of the op that fails for these inputs, -1 if it is not named; None if the file runs."""
        self._tried.append(chosen)
        (example,) = examples_of((self.row(chosen),), self._module)
        try:
            example.call(self._module)
        except AceError as error:
            self._error = error
            return self._failed()
        return None

    def _failed(self) -> int:
        said = re.search(r"running \w+ node\. Name:'([^']+)'", self._error.problem.details if self._error else "")
        return next((place for place, node in enumerate(self._nodes) if said and said[1] == node.name), -1)

    def _blamed(self) -> list[str]:
        """Inputs that the op that failed depends on; all where it is not known."""
        place, wanted = self._failed(), set[str]()
        for node in reversed(self._nodes[: place + 1]):
            if not wanted or wanted & {*node.output}:
                wanted |= {*node.input}
        return [name for name, value in self._inputs.items() if value.name in wanted] or list(self._inputs)

    def changes(self, chosen: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Each with another size or bound; first those that inputs have already: equal ones are wanted most."""
        blamed = self._blamed()
        sizes = {str(dim): chosen[str(dim)] for value in self._inputs.values() for dim in dims_of(value)}
        keys = [str(dim) for name in blamed for dim in dims_of(self._inputs[name]) if dim in self.open_sizes]
        keys += [f"{name} <" for name in blamed]
        for size in dict.fromkeys((*sizes.values(), *_OTHER_SIZES, 0)):
            for key in dict.fromkeys(reversed(keys)):
                changed = {**chosen, key: size}
                if changed not in self._tried and (size or key not in self.open_sizes):
                    yield changed

    def refusal(self) -> AceError:
        """That no proposal ran, with the likeliest one and the inputs to give."""
        tries, likeliest = len(self._tried), self._tried[0]
        row, _ = self.row(likeliest), self.depth(likeliest)
        assert self._error is not None
        problem, blamed = self._error.problem, self._blamed()
        given = (f"{one.name}={'x'.join(map(str, one.shape))}:{one.spec().dtype}" for one in row if one.name in blamed)
        return AceError.of(
            ErrorCode.BAD_INPUT,
            f"{self._module.path.name} does not run on the inputs that were proposed for it",
            why=f"no examples were given, so {tries} were proposed; with the first, {said_of(row)}, ONNX Runtime said: "
            f'"{problem.why}"',
            remedy="Give these inputs, of sizes and values that fit together, in a row of the shape table or with "
            + " ".join(f"--input {words}" for words in given),
            where=problem.where,
            details=problem.details,
        )


def _is_float(value: Any) -> bool:
    return TENSOR_TYPES[value.type.tensor_type.elem_type].is_floating_point


def vocabularies(graph: Any) -> dict[str, int]:
    """Input -> what its numbers must lie below, by the smallest table that they index; they may be floats.

    On their way there they may change type and shape, and be shifted and scaled by constants.
    """
    from onnx import numpy_helper  # noqa: PLC0415 - optional package

    stored = {one.output[0]: each.t for one in graph.node for each in one.attribute if one.op_type == "Constant"}
    stored |= {tensor.name: tensor for tensor in graph.initializer}
    shapes: dict[str, Sequence[Any]] = {value.name: dims_of(value) for value in (*graph.input, *graph.value_info)}
    shapes |= {name: tuple(tensor.dims) for name, tensor in stored.items()}
    held = {value.name: [(value.name, 1.0, 0.0)] for value in graph.input}  # value: inputs, as factor * input + shift
    found: dict[str, int] = {}

    def limit(indices: str, rows: Any) -> None:
        for name, factor, shift in held.get(indices, ()) if isinstance(rows, int) else ():
            below = max(1, math.ceil((rows - shift) / factor))
            found[name] = min(found.get(name, below), below)

    for node in graph.node:
        kind, (first, second, third, _, fifth) = node.op_type, [*node.input, *[""] * 5][:5]  # a damaged file has fewer
        axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
        dims = shapes.get(first, ())
        if kind in _SAME_NUMBERS:
            carried = [one for name in node.input for one in held.get(name, ())]
            held |= dict.fromkeys(node.output, carried)
            shapes.setdefault(node.output[0], dims)
        elif kind in ("Add", "Sub", "Mul", "Div") and {first, second} & stored.keys() and {first, second} & held.keys():
            value, number = (first, second) if second in stored else (second, first)
            most = float(numpy_helper.to_array(stored[number]).max(initial=0)) or 1.0
            by, plus = {"Add": (1.0, most), "Sub": (1.0, -most), "Mul": (most, 0.0), "Div": (1 / most, 0.0)}[kind]
            moved = [(name, abs(by) * factor, by * shift + plus) for name, factor, shift in held[value]]
            held[node.output[0]] = moved
        elif kind == "OneHot" and second in stored:
            limit(first, int(numpy_helper.to_array(stored[second]).max()))
        elif kind == "EmbedLayerNormalization":
            for indices, table in ((first, third), (second, fifth)):
                limit(indices, next(iter(shapes.get(table, ())), ""))
        elif kind in _LOOKUPS:
            limit(second, min(dims, key=str, default="") if kind.endswith("ND") else (*dims, "")[min(axis, len(dims))])
    return found
