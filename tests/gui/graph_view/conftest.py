"""A graph view to look at."""

import pytest

from ace_studio.gui.graph_view import GraphView
from tests.gui.graph_tables import layered_table


@pytest.fixture
def view(qtbot):
    widget = GraphView()
    qtbot.addWidget(widget)
    widget.resize(1000, 800)
    widget.show_graph(layered_table(5))
    widget.show()
    qtbot.waitExposed(widget)
    widget.fit()
    return widget


@pytest.fixture
def laid_out(qtbot):
    """Wait until what a view lays out in the background is shown."""
    return lambda view: qtbot.waitUntil(lambda: not view.canvas.placing, timeout=30_000)
