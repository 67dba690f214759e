"""What data files must give: the inputs of the model, and which samples are used."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ace_studio.engine.examples.leaves import dtype_name, forward_parameters, named_leaves
from ace_studio.engine.flow import Example
from ace_studio.records.recipes.recipe import Recipe, Subset
from ace_studio.records.tensors import DimChoice

_SEED = 0


@dataclass(frozen=True)
class WantedInput:
    """One tensor input of the model, as an example gives it."""

    name: str
    template: Tensor
    free: frozenset[int] = frozenset()
    """Dimensions that may have any size."""

    @property
    def words(self) -> str:
        """``float32 [n, 3, 224, 224]``."""
        sizes = ", ".join("any" if index in self.free else str(size) for index, size in enumerate(self.template.shape))
        return f"{dtype_name(self.template)} [{sizes}]"


def wanted_inputs(module: nn.Module, examples: Sequence[Example], recipe: Recipe) -> list[WantedInput]:
    """Name, traced tensor and free dimensions of every tensor input."""
    leaves = [leaf for leaf in named_leaves(examples[0], forward_parameters(module)) if leaf.tensor is not None]
    others = [example.tensors() for example in examples]
    inputs = []
    for index, leaf in enumerate(leaves):
        assert leaf.tensor is not None
        shapes = [tuple(tensors[index].shape) for tensors in others if len(tensors) == len(leaves)]
        free = {
            dim
            for dim in range(leaf.tensor.dim())
            if len({shape[dim] for shape in shapes if len(shape) == leaf.tensor.dim()}) > 1
            or recipe.inputs.dims.get(f"{leaf.name}.{dim}") is DimChoice.DYNAMIC
        }
        inputs.append(WantedInput(leaf.name, leaf.tensor, frozenset(free)))
    return inputs


def choose_indices(count: int, *, samples: int, subset: Subset) -> list[int]:
    """Which of ``count`` examples are used: at most ``samples``, in rising order; random ones under a fixed seed."""
    if count <= samples or subset is Subset.FIRST:
        return list(range(min(count, samples)))
    if subset is Subset.SPREAD:
        return [index * count // samples for index in range(samples)]
    drawn = torch.randperm(count, generator=torch.Generator().manual_seed(_SEED))[:samples]
    return sorted(drawn.tolist())


def filled_form(form: Example, tensors: Sequence[Tensor]) -> Example:
    """A call like ``form`` with other tensors, on the devices of its own."""
    waiting = iter(tensors)
    return form.map_tensors(lambda leaf: next(waiting).to(leaf.device))
