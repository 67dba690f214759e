"""Finds the dynamic dimensions of the inputs by comparing examples, and makes examples at other sizes."""

from ace_studio.engine.shapes.compare import InputDims, compare_examples
from ace_studio.engine.shapes.resize import (
    DimKey,
    example_at,
    free_places,
    tracing_example,
    unseen_sizes,
    widest_example,
)
