"""Compares a fixed model with the original: on the examples, on other values, at made-up sizes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ace_studio.engine.capture.eager import EagerRun
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.fixes import varied
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.torch_private.dynamo import is_compiler_error
from ace_studio.records.errors import message_of

COMPARE_LIMIT_S = 60.0
"""Time limit for inputs with made-up values, in seconds."""


@dataclass(frozen=True)
class CheckedInput:
    """One call with its eager result."""

    label: str
    example: Example
    expected: Any
    has_other_integers: bool = False
    """Whether integers (lengths, ids, steps) differ from the user's."""


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison."""

    compared: int
    difference: str = ""
    """The first difference in words; empty if there is none."""
    has_raised: bool = False
    details: str = ""
    """The full text of the exception."""


@dataclass
class FixCheck:
    """The original model's inputs and results."""

    eager: EagerRun
    reporter: Reporter
    inputs: list[CheckedInput] = field(default_factory=list)

    @classmethod
    def of(cls, module: nn.Module, examples: Sequence[Example], reporter: Reporter) -> FixCheck:
        """Run the model on every example, and on other values of the smallest one.

        Values that the model itself refuses are left out.
        """
        check = cls(EagerRun.of(module), reporter)
        check.inputs += [
            CheckedInput(f"example {number}", example, check.eager.output(example))
            for number, example in enumerate(examples, start=1)
        ]
        started = time.monotonic()
        for label, example, is_other in _other_values(examples):
            reporter.check()
            if time.monotonic() - started < COMPARE_LIMIT_S:
                check.add(label, example, has_other_integers=is_other)
        return check

    def add(self, label: str, example: Example, *, has_other_integers: bool = False) -> None:
        """One more call to compare on, unless the model refuses it."""
        try:
            expected = self.eager.output(example)
        except Exception:  # noqa: BLE001 - values that we made up may be refused in any way
            return
        self.inputs.append(CheckedInput(label, example, expected, has_other_integers))

    def compare(self, run: Callable[[Example], Any], inputs: Sequence[CheckedInput]) -> Comparison:
        """Run the changed model on the inputs until a result differs."""
        for number, one in enumerate(inputs, start=1):
            self.reporter.check()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of code that we changed; nobody could act on them
                    actual = run(one.example)
            except Exception as error:  # noqa: BLE001 - code that we changed may raise anything; that is the verdict
                return Comparison(
                    number, f"on {one.label} it raises {_short(error)}", has_raised=True, details=str(error)
                )
            if text := difference(one.expected, actual):
                return Comparison(number, f"on {one.label} {text}")
        return Comparison(len(inputs))


def _short(error: Exception) -> str:
    """Type and message; only the type for torch's compiler, whose messages describe its internals."""
    name = type(error).__name__
    return name if is_compiler_error(error) else f"{name}: {message_of(error, limit=200)}"


def _other_values(examples: Sequence[Example]) -> Iterator[tuple[str, Example, bool]]:
    smallest = min(range(len(examples)), key=lambda at: sum(tensor.numel() for tensor in examples[at].tensors()))
    for variation, example in varied(examples[smallest]):
        yield f"example {smallest + 1} with {variation.label}", example, not variation.keeps_integers


def copy_state(original: nn.Module, copy: nn.Module) -> str:
    """Give the copy the tensors of the original; returns why that is impossible, or nothing.

    Tensors that are plain attributes are copied as well: they may be random numbers of the constructor.
    """
    ours, theirs = dict(original.named_modules()), dict(copy.named_modules())
    if ours.keys() != theirs.keys():
        names = sorted(ours.keys() ^ theirs.keys())
        return f"the changed copy is built of other modules ({', '.join(names[:5])})"
    for name, module in ours.items():
        other = theirs[name]
        for kind in ("_parameters", "_buffers"):
            values, changed = vars(module)[kind], vars(other)[kind]
            if values.keys() != changed.keys():
                return f"the changed copy has other tensors in '{name}'"
            changed.update(values)
        plain = {key: value for key, value in vars(module).items() if isinstance(value, Tensor) and key in vars(other)}
        for key, value in plain.items():
            other.__dict__[key] = value
    return ""
