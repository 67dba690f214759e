"""The verdict on every dimension, from the captured graph and the sizes at which it was run."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from ace_studio.engine.capture.guards import holds
from ace_studio.engine.flow import Example
from ace_studio.engine.graph_table import readable_symbols, rename_symbols
from ace_studio.engine.shapes import InputDims, example_at, unseen_sizes
from ace_studio.engine.torch_private.sizes import (
    SizeRule,
    size_at,
    size_hint,
    size_rules,
    size_symbols,
    size_text,
    symbol_ranges,
)
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding


@dataclass
class GraphInputs:
    """The inputs of a graph, beside the inputs of the examples."""

    program: ExportedProgram
    inputs: tuple[InputDims, ...]
    leaf_names: Sequence[str]
    """Names of all leaves of the example, tensors or not."""

    def __post_init__(self) -> None:
        self.sizes: list[tuple[Any, ...]] = _placeholder_sizes(self.program)
        self.symbols = readable_symbols(self.program)
        self.ranges = symbol_ranges(self.program)
        self.excluded: dict[tuple[str, int], list[int]] = {}
        self.rules: dict[tuple[str, int], list[str]] = {}
        self.limits: dict[tuple[str, int], int] = {}
        """Largest size of a dimension, set by a table in the model (such as a position table of 512 rows)."""
        self._read_rules()

    def _read_rules(self) -> None:
        """Sort the graph's guards: single sizes that are excluded, upper limits, and rules to be put in words."""
        for rule in size_rules(self.program):
            text = rule.text
            places = [(self._name(keys), dim) for _, keys, dim in rule.sizes]
            for (written, _, _), (name, dim) in zip(rule.sizes, places, strict=True):
                text = text.replace(written, f"{name}.{dim}")
            if match := re.fullmatch(r"[\w.]+ != (\d+)", text):
                if int(match.group(1)) != 1:
                    self.excluded.setdefault(places[0], []).append(int(match.group(1)))
            elif limit := _upper_limit(text):
                self.limits[places[0]] = limit
            elif not re.fullmatch(r"[\w.]+ (==|>=|<=|>|<) [\w.]+", text):
                self._keep_rule(rule, places, text)

    def _keep_rule(self, rule: SizeRule, places: Sequence[tuple[str, int]], text: str) -> None:
        """Note in words what a guard demands of each size in it."""
        traced = {(self.inputs[leaf].name, dim): size_hint(size) for leaf, dim, size in self._places()}
        sizes = {written: traced.get(place, 1) for (written, _, _), place in zip(rule.sizes, places, strict=True)}
        for (written, _, _), (name, dim) in zip(rule.sizes, places, strict=True):
            words = condition_in_words(rule.text, sizes, size=written, name=f"{name}.{dim}", shown=text)
            known = self.rules.setdefault((name, dim), [])
            if words and words not in known:
                known.append(words)

    def _name(self, keys: Sequence[str]) -> str:
        """The user's name of an input, from its keys in a guard."""
        if keys[0] == "flat_args" and keys[1].isdigit() and int(keys[1]) < len(self.leaf_names):
            return self.leaf_names[int(keys[1])]
        return ".".join(keys)

    def free_symbols(self) -> list[str]:
        """The tracer's names of all symbols in input sizes, in order."""
        return list(dict.fromkeys(symbol for _, _, size in self._places() for symbol in size_symbols(size)))

    def _places(self) -> Iterator[tuple[int, int, Any]]:
        """Position of the input, index of the dimension, and size in the graph, of every dimension."""
        return ((leaf, dim, size) for leaf, sizes in enumerate(self.sizes) for dim, size in enumerate(sizes))

    def symbol_values(self, example: Example) -> dict[str, int]:
        """Symbol -> its size in an example, where a dimension shows it alone."""
        values: dict[str, int] = {}
        for tensor, sizes in zip(example.tensors(), self.sizes, strict=True):
            for size, real in zip(sizes, tensor.shape, strict=True):
                if size_text(size) in size_symbols(size):
                    values.setdefault(size_text(size), real)
        return values

    def example_with(self, base: Example, values: dict[str, int]) -> Example | None:
        """The example at the sizes that follow from the symbols' values; None if some are not whole or are excluded."""
        wanted = {}
        for leaf, dim, size in self._places():
            if not isinstance(size, int):
                real = size_at(size, values)
                if real is None or real < 1 or real in self.excluded.get((self.inputs[leaf].name, dim), ()):
                    return None
                wanted[leaf, dim] = real
        return example_at(base, wanted)

    def candidates(self, symbol: str, examples: Sequence[Example]) -> list[int]:
        """Sizes of a symbol to try, none of them in an example, the best first."""
        seen = [values[symbol] for example in examples if symbol in (values := self.symbol_values(example))]
        low, high = self._range(symbol)
        return list(unseen_sizes(seen, low=low or 1, high=high)) if seen else []

    def _range(self, text: str) -> tuple[int | None, int | None]:
        """Smallest and largest size of a dimension whose expression in the graph is ``text``."""
        low, high = self.ranges.get(text, (None, None)) if text.isidentifier() else self._derived_range(text)
        same = [(self.inputs[leaf].name, dim) for leaf, dim, size in self._places() if size_text(size) == text]
        tops = [high, *map(self.limits.get, same)]
        return low, min((top for top in tops if top is not None), default=None)

    def _derived_range(self, text: str) -> tuple[int | None, int | None]:
        """The range of a size such as ``2*s0``, from that of its one symbol."""
        sizes = [size for _, _, size in self._places() if size_text(size) == text]
        symbols = size_symbols(sizes[0]) if sizes else ()
        if len(symbols) != 1:
            return None, None
        low, high = self.ranges.get(symbols[0], (None, None))
        first, second = (size_at(sizes[0], {symbols[0]: value}) for value in (low or 1, (low or 1) + 1))
        if first is None or second is None or second < first:
            return None, None  # it falls as the symbol grows, or is no whole size everywhere
        return max(first, 1), None if high is None else size_at(sizes[0], {symbols[0]: high})

    def findings(self, verified: Iterable[Example], *, examples: int) -> tuple[InputFinding, ...]:
        """The verdicts; ``verified`` are the examples that matched, ``examples`` how many the user gave."""
        shapes = [example.shapes() for example in verified]
        found = []
        for leaf, one in enumerate(self.inputs):
            dims = tuple(
                self._finding(one, leaf, dim, sorted({shape[leaf][dim] for shape in shapes}), examples)
                for dim in range(one.rank)
            )
            found.append(InputFinding(name=one.name, dtype=one.dtype, dims=dims))
        return tuple(found)

    def _finding(self, one: InputDims, leaf: int, dim: int, verified: list[int], examples: int) -> DimFinding:
        size = self.sizes[leaf][dim]
        if isinstance(size, int):
            is_unknown = set(one.sizes[dim]) == {1} and one.choices[dim] is DimChoice.AUTO
            return DimFinding(
                index=dim,
                verdict=DimVerdict.UNKNOWN if is_unknown else DimVerdict.STATIC,
                size=size,
                verified_sizes=tuple(verified),
                reason=_static_reason(one, dim, examples),
            )
        low, high = self._range(size_text(size))
        return DimFinding(
            index=dim,
            verdict=DimVerdict.DYNAMIC,
            size=size_hint(size),
            symbol=rename_symbols(size_text(size), self.symbols).replace(" ", ""),
            min=min(max(low or 1, 1), *verified),
            max=high,
            verified_sizes=tuple(verified),
            equal_to=self._equal_to(leaf, dim),
            reason=self._dynamic_reason(one, dim, verified),
        )

    def _equal_to(self, leaf: int, dim: int) -> str | None:
        """Another dimension of the same size: the first one, or for the first one the next."""
        text = size_text(self.sizes[leaf][dim])
        same = ((other, at) for other, at, size in self._places() if size_text(size) == text)
        return next((f"{self.inputs[other].name}.{at}" for other, at in same if (other, at) != (leaf, dim)), None)

    def _dynamic_reason(self, one: InputDims, dim: int, verified: list[int]) -> str:
        given = sorted(set(one.sizes[dim]))
        cause = (
            f"the examples have {_listed(given)}"
            if len(given) > 1
            else f"the recipe asks for it; the examples have {given[0]}"
        )
        unseen = [size for size in verified if size not in given]
        proof = f"also run at {_listed(unseen)}" if unseen else "no other size could be tried"
        excluded = self.excluded.get((one.name, dim))
        limit = f", but not valid at {_listed(sorted(excluded))}, where the code takes another path" if excluded else ""
        rules = self.rules.get((one.name, dim))
        limit += f"; only where {' and '.join(rules[:3])}" if rules else ""
        return f"{cause}; {proof}{limit}"


def _upper_limit(rule: str) -> int | None:
    """512 of ``x.1 == min(512, x.1)``, which is how a slice of a table with 512 rows limits a size."""
    match = re.fullmatch(r"([\w.]+) == (?:[Mm]in)\((\d+), \1\)|[Mm]in\((\d+), ([\w.]+)\) == \4", rule)
    return int(match.group(2) or match.group(3)) if match else None


def _static_reason(one: InputDims, dim: int, examples: int) -> str:
    size = one.sizes[dim][0]
    if one.choices[dim] is DimChoice.STATIC:
        return f"the recipe fixes it at {size}"
    if size == 1:
        return "only ever 1 in the examples, which tells nothing: add a row with another size if it may change"
    if examples == 1:
        return f"there is only one example, with {size}: add a row with another size if it may change"
    return f"{size} in every example"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:6])) + (" ..." if len(sizes) > 6 else "")


def _placeholder_sizes(program: ExportedProgram) -> list[tuple[Any, ...]]:
    """Sizes of every tensor input, in order."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = []
    for spec in program.graph_signature.input_specs:
        value = nodes[spec.arg.name].meta.get("val") if spec.arg.name in nodes else None
        if spec.kind is InputKind.USER_INPUT and isinstance(value, Tensor):
            found.append(tuple(value.shape))
    return found


_TRIED = 128
"""Sizes from 1 up that are tried."""
_LARGEST_DIVISOR = 64


def condition_in_words(condition: str, sizes: Mapping[str, int], *, size: str, name: str, shown: str) -> str:
    """What a condition demands of one size, while the other sizes stay as traced.

    Args:
        condition: The condition, as the graph has it.
        sizes: Every size in the condition, as written there -> the size that was traced.
        size: The size in question, as written there.
        name: The user's name of that size, such as ``x.2``.
        shown: The condition with the user's names, for a condition that has no better words.

    Returns: ``x.2 is a multiple of 4``; empty if every size will do; ``shown`` if no words were found.
    """
    known = {ast.unparse(ast.parse(one, mode="eval")): value for one, value in sizes.items()}
    asked = ast.unparse(ast.parse(size, mode="eval"))
    try:
        good = [value for value in range(1, _TRIED + 1) if holds(condition, {**known, asked: value})]
    except (NotImplementedError, ZeroDivisionError, SyntaxError):
        return shown
    if len(good) == _TRIED:
        return ""
    for divisor in range(2, _LARGEST_DIVISOR + 1):
        if good == list(range(divisor, _TRIED + 1, divisor)):
            return f"{name} is a multiple of {divisor}"
    if good and good == list(range(good[0], _TRIED + 1)):
        return f"{name} is at least {good[0]}"
    return shown
