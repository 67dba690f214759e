"""Makes examples at other sizes of real content, so that ids and masks stay valid."""

import math
from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from ace_studio.engine.examples.leaves import resized
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes.compare import InputDims

DimKey = tuple[int, int]
"""A dimension: position of the tensor in ``Example.tensors``, index of the dimension."""


def free_places(inputs: Sequence[InputDims]) -> list[DimKey]:
    """All dynamic dimensions."""
    return [(leaf, dim) for leaf, one in enumerate(inputs) for dim in one.dynamic_dims()]


def example_at(example: Example, sizes: Mapping[DimKey, int]) -> Example:
    """The example with some dimensions at other sizes, as `resized` makes them."""
    position = iter(range(len(example.tensors())))

    def changed(tensor: Tensor) -> Tensor:
        own = next(position)
        for (leaf, dim), size in sizes.items():
            if leaf == own:
                tensor = resized(tensor, dim, size)
        return tensor.contiguous()

    return example.map_tensors(changed)


def tracing_example(examples: Sequence[Example], inputs: Sequence[InputDims]) -> tuple[Example, bool]:
    """The example to trace: the largest whose dynamic dimensions are all >= 2, or one grown from the largest.

    While tracing, a dimension of 1 cannot be distinguished from one that broadcasts.

    Returns: The example, and whether it had to be grown.
    """
    by_size = sorted(examples, key=lambda example: -sum(tensor.numel() for tensor in example.tensors()))
    places = free_places(inputs)
    for example in by_size:
        tensors = example.tensors()
        if all(tensors[leaf].shape[dim] >= 2 for leaf, dim in places):
            return example, False
    largest = by_size[0]
    return example_at(largest, _grown_sizes(largest, inputs, places)), True


def widest_example(example: Example, inputs: Sequence[InputDims]) -> Example | None:
    """The example with every free dimension at its largest size; None if it has these sizes already."""
    tensors = example.tensors()
    largest = {(leaf, dim): max(inputs[leaf].sizes[dim]) for leaf, dim in free_places(inputs)}
    if all(tensors[leaf].shape[dim] >= size for (leaf, dim), size in largest.items()):
        return None
    return example_at(example, {(leaf, dim): max(size, 2) for (leaf, dim), size in largest.items()})


def _grown_sizes(example: Example, inputs: Sequence[InputDims], places: Sequence[DimKey]) -> dict[DimKey, int]:
    """Sizes >= 2 for the dimensions below 2; dimensions with equal sizes in all examples grow alike."""
    tensors = example.tensors()
    taken = {tensors[leaf].shape[dim] for leaf, dim in places}
    grown: dict[tuple[int, ...], int] = {}
    sizes = {}
    for leaf, dim in places:
        if tensors[leaf].shape[dim] >= 2:
            continue
        alike = inputs[leaf].sizes[dim]
        if alike not in grown:
            # Different dimensions of equal size could be taken for the same one.
            grown[alike] = next(size for size in (2, 3, 4, 5, 6, 7, 8, 9) if size not in taken or size == 9)
            taken.add(grown[alike])
        sizes[leaf, dim] = grown[alike]
    return sizes


def unseen_sizes(seen: Sequence[int], *, low: int = 1, high: int | None = None) -> Iterator[int]:
    """Sizes within [low, high] that are not among ``seen``; the cheap ones that tell most come first.

    Sizes that share a factor (224, 320) are probably tied to it (32), so multiples of it come first.
    """
    known = sorted(set(seen))
    factor = math.gcd(*known)
    smallest, largest = known[0], known[-1]
    middle = (smallest + largest) // 2 // factor * factor
    if factor == 1:
        middle |= 1  # odd, so that no division fits by accident
    candidates = [middle, largest + factor, middle + factor, largest + 2 * factor, smallest + factor, largest - factor]
    if largest > 64 * factor:
        # A size beyond a large one costs more than it tells; a position table may end there as well.
        candidates = [middle, middle + factor, smallest + factor, largest - factor, largest + factor]
    candidates += [largest + 1, smallest - factor, largest - 1, 2 * largest]
    offered = set(known)
    for size in candidates:
        if size >= max(low, 1) and (high is None or size <= high) and size not in offered:
            offered.add(size)
            yield size
