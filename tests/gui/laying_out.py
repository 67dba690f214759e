"""Graphs to lay out, and checks of layouts."""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ace_studio.gui.graph_layout.layered import BlockProblem, Edge

relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def overlaps(x, y, width, height):
    """Pairs of rectangles that share more than an edge."""
    wide = np.minimum.outer(x + width, x + width) - np.maximum.outer(x, x)
    tall = np.minimum.outer(y + height, y + height) - np.maximum.outer(y, y)
    return int(np.triu((wide > 1e-6) & (tall > 1e-6), k=1).sum())


@st.composite
def problems(draw):
    count = draw(st.integers(1, 14))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = draw(st.lists(pairs, max_size=24, unique=True))
    sizes = st.sampled_from([96.0, 144.0, 208.0])
    return BlockProblem(
        widths=tuple(draw(sizes) for _ in range(count)),
        heights=tuple(draw(st.sampled_from([38.0, 46.0, 74.0])) for _ in range(count)),
        edges=tuple(Edge(source=source, target=target) for source, target in edges),
        may_fold=False,
    )
