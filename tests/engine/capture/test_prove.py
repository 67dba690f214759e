"""The proof of one graph against the eager reference."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ace_studio.engine.capture.methods import CAPTURE_METHODS
from ace_studio.engine.capture.prove import Prover
from ace_studio.engine.capture.reference import EagerReference, run_reference
from ace_studio.engine.capture.verify import Mismatch
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import Recipe


class Scaled(nn.Module):
    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


def reference(module: nn.Module, *sizes: int) -> EagerReference:
    return run_reference(module, [Example((torch.ones(size, 3),)) for size in sizes], Recipe(), Reporter())


def proof(of: EagerReference, against: EagerReference) -> tuple[Example, ...] | Mismatch:
    """The graph of one model proven against the reference of another."""
    export = CAPTURE_METHODS["export"].capture
    assert export is not None
    program = export(of.module, of.tracing.copied(), of.inputs, lambda: of.controls.applied("export"))
    return Prover(against, Reporter()).prove(program)


def test_a_right_graph_is_also_run_at_sizes_that_no_example_has() -> None:
    found = reference(Scaled(), 2, 5)
    unseen = proof(found, found)
    assert not isinstance(unseen, Mismatch)
    assert unseen and all(len(example.args[0]) not in (2, 5) for example in unseen)


def test_a_graph_that_computes_something_else_names_the_example() -> None:
    found = proof(reference(Scaled(2.0), 2, 5), reference(Scaled(), 2, 5))
    assert isinstance(found, Mismatch)
    assert "not equal to the model on example 1" in found.what
    assert found.number == 1
    assert found.failure().example == 1


def test_a_graph_that_fixes_a_free_size_refuses_the_example_of_another_size() -> None:
    found = proof(reference(Scaled(), 2), reference(Scaled(), 2, 5))
    assert isinstance(found, Mismatch)
    assert found.number == 2 and found.example is not None


def test_a_batch_that_is_one_in_an_example_stays_free() -> None:
    found = reference(Scaled(), 1, 4)
    assert not isinstance(proof(found, found), Mismatch)


class Joined(nn.Module):
    """Halves and doubles again; a size that is odd is brought to the other one, as in a U-Net."""

    def forward(self, x: Tensor) -> Tensor:
        half = nn.functional.avg_pool1d(x, 2).repeat_interleave(2, dim=-1)
        if half.shape[-1] != x.shape[-1]:
            half = nn.functional.interpolate(half, size=x.shape[-1])
        return x + half


def test_a_path_that_holds_for_odd_and_even_sizes_is_proven_for_both_whichever_size_was_traced() -> None:
    examples = [Example((torch.rand(2, 3, size),)) for size in (8, 11)]
    found = run_reference(Joined(), examples, Recipe(), Reporter())
    assert not isinstance(proof(found, found), Mismatch)


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] % 2 == 0 else x


def test_a_path_that_holds_for_even_sizes_only_is_refused_at_an_odd_one() -> None:
    found = reference(Doubled(), 4, 7)
    assert isinstance(proof(found, found), Mismatch)
    other = found.traced_at(found.examples[0])
    assert other is not None and other.tracing.shapes() == ((4, 3),)
