"""The sizes that an artifact with planned memory must take: how far each dynamic dimension may grow."""

from __future__ import annotations

from ace_studio.engine.flow import CapturedModel

GROWTH = 2
SMALLEST_BOUND = 64
"""A dynamic dimension may grow to `GROWTH` times the largest size of an example, and to 64 in any case."""


def size_bounds(captured: CapturedModel) -> list[dict[int, int]]:
    """Per tensor input: index of each dynamic dimension -> the largest size that the artifact must take."""
    examples = [example.tensors() for example in captured.examples]
    return [
        {dim: max(SMALLEST_BOUND, GROWTH * max(leaves[place].shape[dim] for leaves in examples)) for dim in dims}
        for place, dims in enumerate(captured.dynamic_dims())
    ]
