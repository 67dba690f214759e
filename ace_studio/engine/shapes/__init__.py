"""Inputs of a model: gathering examples, comparing them, and making examples at sizes that nobody gave."""

from __future__ import annotations

from ace_studio.engine.shapes.compare import InputDims, compare_examples
from ace_studio.engine.shapes.gather import gather_examples
from ace_studio.engine.shapes.leaves import Leaf, named_leaves
from ace_studio.engine.shapes.resize import example_at, tracing_example, unseen_sizes, widest_example

__all__ = [
    "InputDims",
    "Leaf",
    "compare_examples",
    "example_at",
    "gather_examples",
    "named_leaves",
    "tracing_example",
    "unseen_sizes",
    "widest_example",
]
