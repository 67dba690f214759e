"""Captures with only the batch free, for models whose sizes become expressions that take minutes to work out.

One free size is nearly always quick; height and width on top of it make a trace slow. It is done only if the recipe or
the command line asks for it; a capture method that runs into its time limit offers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from torch import nn

from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import DimKey, InputDims, compare_examples, example_at, free_places
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.tensors import DimChoice, InputFinding


@dataclass(frozen=True)
class BatchOnly:
    """The examples and choices under which only the batch is free."""

    examples: tuple[Example, ...]
    recipe: Recipe
    held: tuple[str, ...]
    """Names (``x.2``) of the dimensions that would be free otherwise."""

    def explained(self, findings: Sequence[InputFinding]) -> tuple[InputFinding, ...]:
        """The findings, in which the held dimensions say why they are static."""
        return tuple(
            replace(
                one,
                dims=tuple(
                    replace(
                        dim, is_held=True, reason=f"held static at {dim.size} by batch_only, as in the first example"
                    )
                    if f"{one.name}.{dim.index}" in self.held
                    else dim
                    for dim in one.dims
                ),
            )
            for one in findings
        )


def batch_only(module: nn.Module, examples: Sequence[Example], recipe: Recipe) -> BatchOnly:
    """Hold every free dimension but the batch at its size in the first example.

    Examples of other sizes are cropped, or their content is repeated, so that their batch sizes still count.

    Raises: AceError as `compare_examples` does.
    """
    inputs = compare_examples(module, examples, choices=recipe.inputs.dims)
    kept = kept_places(inputs)
    held = [place for place in free_places(inputs) if place not in kept]
    names = {place: f"{inputs[place[0]].name}.{place[1]}" for place in (*kept, *held)}
    first = examples[0].tensors()
    sizes = {(leaf, dim): first[leaf].shape[dim] for leaf, dim in held}
    dims = {
        **recipe.inputs.dims,
        **{names[place]: DimChoice.DYNAMIC for place in kept},
        **{names[place]: DimChoice.STATIC for place in held},
    }
    return BatchOnly(
        examples=tuple(example_at(example, sizes) for example in examples),
        recipe=replace(recipe, inputs=replace(recipe.inputs, dims=dims)),
        held=tuple(names[place] for place in held),
    )


def kept_places(inputs: Sequence[InputDims]) -> list[DimKey]:
    """The first free dimension 0, or else the first free dimension, and all that have its size in every example."""
    free = free_places(inputs)
    batch = next((place for place in free if place[1] == 0), next(iter(free), None))
    if batch is None:
        return []
    sizes = inputs[batch[0]].sizes[batch[1]]
    is_batch = batch[1] == 0
    return [(leaf, dim) for leaf, dim in free if inputs[leaf].sizes[dim] == sizes and (dim == 0 or not is_batch)]


def offered(problem: Problem, inputs: Sequence[InputDims]) -> Problem:
    """The problem of a method that took too long, with the offer to let only the batch stay free where that helps."""
    kept, free = kept_places(inputs), free_places(inputs)
    if len(free) == len(kept):
        return problem
    names = ", ".join(f"{inputs[leaf].name}.{dim}" for leaf, dim in kept)
    offer = (
        f"Let only {names} stay free: [capture] batch_only = true, or trace --batch-only; "
        "the other sizes are then held as in the first example."
    )
    return replace(problem, remedy=f"{offer} Or raise [capture] time_limit_s.")
