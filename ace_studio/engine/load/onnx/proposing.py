"""Proposes inputs for an ONNX file: sizes and values that ONNX Runtime takes, found by trying."""

import re
import time
from collections.abc import Iterator, Mapping
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
_SAME_NUMBERS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
"""Ops that give the numbers that they take."""
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
            if search.is_over:
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
        if sizes and not search.is_over and search.depth(chosen | other) is None:
            return Proposal((search.row(chosen), search.row(chosen | other)))
    return Proposal((search.row(chosen),))


class _Search:
    """Tries choices: open size, or ``ids <`` for the integers of an input -> the size, or their bound (0: all ones)."""

    def __init__(self, module: OnnxModule) -> None:
        self._module, self._nodes = module, module.model.graph.node
        self._inputs = dict(zip(module.names, module.inputs, strict=True))
        self.open_sizes = {dim for value in module.inputs for dim in dims_of(value) if isinstance(dim, str)}
        self._until = time.monotonic() + MOST_SECONDS
        self._tried: list[Mapping[str, int]] = []
        self._error: AceError | None = None

    @property
    def is_over(self) -> bool:
        return len(self._tried) >= MOST_TRIES or time.monotonic() > self._until

    def likeliest(self) -> dict[str, int]:
        """What names, ranks and tables suggest."""
        known, chosen = vocabularies(self._module.model.graph), dict[str, int]()
        for name, value in self._inputs.items():
            usual = _VOCABULARY if "mask" not in name else 0
            chosen[f"{name} <"] = known.get(value.name, 2 if "type" in name else usual)
            dims = dims_of(value)
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
                dtype=(dtype := TENSOR_TYPES[value.type.tensor_type.elem_type]),
                values=ValueSource.RANDOM if dtype.is_floating_point or chosen[f"{name} <"] else ValueSource.ONES,
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
            return next((place for place, node in enumerate(self._nodes) if node is self._failed()), -1)
        return None

    def _failed(self) -> Any:
        """The node that the last error names."""
        said = re.search(r"running \w+ node\. Name:'([^']+)'", self._error.problem.details if self._error else "")
        return next((one for one in self._nodes if said and said[1] == one.name), None)

    def _blamed(self) -> list[str]:
        """Inputs that the op that failed depends on; all where it is not known."""
        makers = {name: node for node in self._nodes for name in node.output}
        failed, seen = self._failed(), set[str]()
        waiting = list(failed.input) if failed is not None else []
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += makers[name].input if name in makers else ()
        return [name for name, value in self._inputs.items() if value.name in seen] or list(self._inputs)

    def changes(self, chosen: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Each with another size or bound; first those that inputs have already: equal ones are wanted most."""
        blamed = self._blamed()
        sizes = {str(dim): chosen[str(dim)] for value in self._inputs.values() for dim in dims_of(value)}
        keys = [str(dim) for name in blamed for dim in dims_of(self._inputs[name]) if dim in self.open_sizes]
        keys += [f"{one.name} <" for one in self.row(chosen) if one.name in blamed and not one.dtype.is_floating_point]
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


def vocabularies(graph: Any) -> dict[str, int]:
    """Input -> rows of the smallest table of weights that it indexes, directly or after a change of type or shape."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    came_from: dict[str, str] = {value.name: value.name for value in graph.input}
    found: dict[str, int] = {}
    for node in graph.node:
        first, second = (*node.input, "", "")[:2]  # a damaged file may have fewer
        if node.op_type in _SAME_NUMBERS and first in came_from:
            came_from |= dict.fromkeys(node.output[:1], came_from[first])
        elif node.op_type == "Gather" and first in rows and (name := came_from.get(second)):
            found[name] = min(found.get(name, rows[first]), rows[first])
    return found
