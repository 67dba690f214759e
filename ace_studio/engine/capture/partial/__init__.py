"""Capturing a model in subgraphs where its whole graph cannot be had: something is always captured, and it still runs.

First torch's compiler is let through the model and its graphs are taken (frames). Submodules whose weights are in none
of them, because the compiler gave up the function that calls them, are captured by themselves (modules). Every subgraph
climbs the same ladder as a whole model, on the calls that it gets from it. In the end the subgraphs run in their places
and are compared with eager, on all examples, call after call, and at sizes that nobody gave.
"""

from ace_studio.engine.capture.partial.capture import PartialCapture, PartialJob, capture_partially

__all__ = ["PartialCapture", "PartialJob", "capture_partially"]
