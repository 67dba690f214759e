"""The proof of one captured graph: all examples, consecutive calls, and sizes that no example has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

from ace_studio.engine.capture import verify
from ace_studio.engine.capture.findings import GraphInputs
from ace_studio.engine.capture.guards import excludes_only_one, fails_at, is_about_equality
from ace_studio.engine.capture.reference import EagerReference
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import free_places
from ace_studio.engine.torch_private.sizes import drop_guards, program_guards

_MOST_UNSEEN = 2
_MOST_TRIES = 6
_MANY_WEIGHTS = 5_000_000
"""A model with more weights than this is run at one unseen size only, because each run takes long."""


@dataclass
class Prover:
    """Compares graphs with the eager reference."""

    reference: EagerReference
    reporter: Reporter

    def prove(self, program: ExportedProgram) -> tuple[Example, ...] | verify.Mismatch:
        """Compare the graph with eager, and return the examples at unseen sizes that were run as well.

        A guard that excludes only the size 1 is dropped if the graph equals eager there. So is a guard that asks
        whether sizes inside the model are equal (``if up.shape != skip.shape``), if an example has the other answer and
        the graph is right there too.
        """
        shapes = self._named_shapes(self.reference.examples)
        for _ in range(_MOST_UNSEEN + 2):

            def is_needless(guard: str, known: Sequence[dict[str, tuple[int, ...]]] = tuple(shapes)) -> bool:
                return excludes_only_one(guard) or (
                    is_about_equality(guard) and any(fails_at(guard, one) for one in known)
                )

            if not any(is_needless(guard) for guard in program_guards(program)):
                break
            put_back = drop_guards(program, is_needless)
            result = self._prove(program, must_try_one=True)
            if not isinstance(result, verify.Mismatch):
                return result
            put_back()
            if result.example is None or not result.by_guard or result.number:
                break
            shapes += self._named_shapes([result.example])  # an unseen size asks for the other answer too
        return self._prove(program, must_try_one=False)

    def _named_shapes(self, examples: Sequence[Example]) -> list[dict[str, tuple[int, ...]]]:
        """Input name -> its shape, for every example."""
        names = [one.name for one in self.reference.inputs]
        return [dict(zip(names, example.shapes(), strict=True)) for example in examples]

    def _prove(self, program: ExportedProgram, *, must_try_one: bool) -> tuple[Example, ...] | verify.Mismatch:
        graph, reference = verify.GraphRun(program), self.reference
        first, *others = zip(reference.examples, reference.expected, strict=True)
        if found := verify.check_consecutive_calls(reference.eager, graph, first[0], expected=first[1]):
            return verify.frozen_cause(reference.eager, program, first[0]) or found
        self._tell_of_counters()
        for number, (example, expected) in enumerate(others, start=2):
            self.reporter.check()
            if found := verify.check_example(graph, example, expected=expected, number=number):
                return verify.frozen_cause(reference.eager, program, example) or found
        view = GraphInputs(program, reference.inputs, reference.leaf_names)
        if fixed := self._fixed(view):
            return fixed
        unseen = []
        for example, expected in self._unseen(view, must_try_one=must_try_one):
            found = verify.check_example(
                graph, example, expected=expected, label=verify.unseen_label(example, reference.module)
            )
            if found is not None and must_try_one and found.by_guard and _has_a_one(example, reference.tracing):
                continue  # another guard, which stays, refuses the size 1: dropping the first ones changed nothing
            if found is not None:
                return found
            unseen.append(example)
        if reference.is_grown:
            expected = reference.eager.output(reference.tracing)
            label = "the example that was traced"
            if found := verify.check_example(graph, reference.tracing, expected=expected, label=label):
                return found
        return tuple(unseen)

    def _tell_of_counters(self) -> None:
        if names := self.reference.eager.counted:
            self.reporter.warn(
                "attribute-left-out",
                f"forward() changes the plain attribute {verify.quoted(names)} at each call; the graph leaves that "
                "out. Results agreed in three calls; should they depend on it later, the graph is wrong",
            )

    def _fixed(self, view: GraphInputs) -> verify.Mismatch | None:
        """The mismatch of a dimension that had to stay free and is fixed in the graph."""
        for leaf, dim in free_places(view.inputs):
            if isinstance(size := view.sizes[leaf][dim], int):
                return verify.Mismatch(
                    what=f"The captured graph fixes {view.inputs[leaf].name}.{dim} at {size}",
                    why="the examples or the recipe say that it changes",
                    remedy="Remove what depends on that one size, or set the dimension to static.",
                )
        return None

    def _unseen(self, view: GraphInputs, *, must_try_one: bool) -> Iterator[tuple[Example, Any]]:
        """Examples at unseen sizes that eager accepts, with their eager results."""
        found = 0
        weights = sum(parameter.numel() for parameter in self.reference.module.parameters())
        for values in self._combinations(view):
            if found == (1 if weights > _MANY_WEIGHTS else _MOST_UNSEEN):
                break
            if made := self._made(view, values):
                found += 1
                yield made
        if must_try_one:
            base = view.symbol_values(self.reference.tracing)
            for symbol in view.free_symbols():
                if made := self._made(view, {**base, symbol: 1}):
                    yield made

    def _combinations(self, view: GraphInputs) -> Iterator[dict[str, int]]:
        """Sizes for all symbols: first all of them new, then one new at a time."""
        symbols = view.free_symbols()
        choices = {symbol: view.candidates(symbol, self.reference.examples) for symbol in symbols}
        choices = {symbol: sizes for symbol, sizes in choices.items() if sizes}
        base = view.symbol_values(self.reference.tracing)
        for attempt in range(_MOST_TRIES if choices else 0):
            yield base | {symbol: sizes[min(attempt, len(sizes) - 1)] for symbol, sizes in choices.items()}
        if len(choices) > 1:
            for symbol, sizes in choices.items():
                for size in sizes[:3]:
                    yield {**base, symbol: size}

    def _made(self, view: GraphInputs, values: dict[str, int]) -> tuple[Example, Any] | None:
        self.reporter.check()
        example = view.example_with(self.reference.tracing, values)
        if example is None or self._is_known(example):
            return None
        result = self.reference.eager.output_if_accepted(example)
        return None if result is None else (example, result)

    def _is_known(self, example: Example) -> bool:
        return example.shapes() in [known.shapes() for known in self.reference.examples]


def _has_a_one(example: Example, traced: Example) -> bool:
    """Whether a size is 1 in the example but not in the traced one."""
    pairs = zip(example.shapes(), traced.shapes(), strict=True)
    return any(one == 1 != other for pair in pairs for one, other in zip(*pair, strict=True))
