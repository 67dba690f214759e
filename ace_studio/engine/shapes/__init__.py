"""Which dimensions of the inputs are dynamic, found by comparing examples, and examples at sizes that nobody gave."""

from __future__ import annotations

from ace_studio.engine.shapes.compare import InputDims, compare_examples
from ace_studio.engine.shapes.resize import DimKey, example_at, tracing_example, unseen_sizes, widest_example

__all__ = [
    "DimKey",
    "InputDims",
    "compare_examples",
    "example_at",
    "tracing_example",
    "unseen_sizes",
    "widest_example",
]
