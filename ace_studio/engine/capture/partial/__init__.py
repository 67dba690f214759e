"""Partial capture: a model whose whole graph cannot be captured is captured in subgraphs, with Python between them.

First torch's compiler reads the model, and its graphs are taken (frames). Submodules whose weights are in none of them,
because the compiler gave up the function that calls them, are captured by themselves (modules). Every subgraph is
captured like a whole model, on the calls that it gets from it. In the end the subgraphs run in their places and are
compared with eager: on all examples, in consecutive calls, and at sizes that nobody gave.
"""

from ace_studio.engine.capture.partial.capture import PartialCapture, PartialJob
