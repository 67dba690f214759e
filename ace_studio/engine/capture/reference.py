"""The eager reference of one capture: what the model returns on every example, its dimensions, and what to trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from ace_studio.engine.capture.controls import Controls
from ace_studio.engine.capture.eager import EagerRun, run_example
from ace_studio.engine.capture.model_warnings import warn_about_the_model
from ace_studio.engine.examples.leaves import describe, forward_parameters, named_leaves
from ace_studio.engine.flow import Example
from ace_studio.engine.flow.module_state import STATE_REMEDY, changes_buffers
from ace_studio.engine.progress import Reporter
from ace_studio.engine.shapes import InputDims, compare_examples, tracing_example, widest_example
from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import Recipe


@dataclass(frozen=True)
class EagerReference:
    """What every captured graph of one model is compared with."""

    eager: EagerRun
    examples: tuple[Example, ...]
    expected: tuple[Any, ...]
    """The eager result of every example."""
    inputs: tuple[InputDims, ...]
    tracing: Example
    """The example to trace: every dynamic dimension is >= 2."""
    is_grown: bool
    """Whether it was made by repeating content, because no example would do."""
    recipe: Recipe
    controls: Controls

    @property
    def module(self) -> nn.Module:
        """The user's module, in eval mode."""
        return self.eager.module

    @property
    def leaf_names(self) -> list[str]:
        """Names of all leaves of the traced example, tensors or not."""
        return [leaf.name for leaf in named_leaves(self.tracing, forward_parameters(self.module))]

    @property
    def verified(self) -> tuple[Example, ...]:
        """The examples that every graph is compared on: the user's, and the traced one if it was made."""
        return (*self.examples, self.tracing) if self.is_grown else self.examples

    def widened(self) -> EagerReference | None:
        """The reference with a wider example to trace; None if there is none, or forward raises on it."""
        wider = widest_example(self.tracing, self.inputs)
        if wider is None or self.eager.output_if_accepted(wider) is None:
            return None
        return replace(self, tracing=wider, is_grown=True)

    def traced_at(self, example: Example) -> EagerReference | None:
        """The reference that traces this example, grown where a free size is 1; None if it is traced already."""
        tracing, is_grown = tracing_example((example,), self.inputs)
        if tracing.shapes() == self.tracing.shapes() or self.eager.output_if_accepted(tracing) is None:
            return None
        return replace(self, tracing=tracing, is_grown=is_grown or not any(one is example for one in self.examples))


def run_reference(module: nn.Module, examples: Sequence[Example], recipe: Recipe, reporter: Reporter) -> EagerReference:
    """Run every example eagerly, compare the examples, and choose which one to trace.

    Raises: AceError for what the user must correct.
    """
    if not examples:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "There is no example to run the model with",
            remedy="Add a row to the shape table, or name a function that returns examples.",
            where="[inputs]",
        )
    reporter.phase(Phase.EAGER)
    eager = EagerRun.of(module)
    expected: list[Any] = []
    written: tuple[int, ...] = ()
    for number, example in enumerate(examples, start=1):
        reporter.advance((number - 1) / len(examples), f"example {number} of {len(examples)}")
        expected.append(run_example(eager, example, label=f"example {number}"))
        written = eager.writes_into if number == 1 else written
    inputs = compare_examples(module, examples, choices=recipe.inputs.dims)
    controls = Controls(recipe.capture.controls, module)
    tracing, is_grown = tracing_example(examples, inputs)
    if is_grown:
        _check_grown(eager, tracing)
    warn_about_the_model(module, examples, expected, written, reporter)
    if changed := sorted(eager.changed):
        reporter.warn(
            "changes-buffers",
            f"{changes_buffers(changed)}: artifacts begin with its first values, and those of torch targets alone keep "
            f"what a call leaves there. {STATE_REMEDY}",
        )
    return EagerReference(eager, tuple(examples), tuple(expected), inputs, tracing, is_grown, recipe, controls)


def _check_grown(eager: EagerRun, tracing: Example) -> None:
    try:
        eager.output(tracing)
    except Exception as error:  # the user's forward raises anything
        shown = describe(tracing, forward_parameters(eager.module))
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "No example has all its changing dimensions at 2 or more, and none could be made",
            why=f"one was grown by repeating content ({shown}), and forward raises on it: {message_of(error)}",
            remedy="Add one example in which every dimension that may change is at least 2.",
            where="[inputs]",
        ) from error
