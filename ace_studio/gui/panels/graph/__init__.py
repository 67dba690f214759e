"""The graph panel, the comparison of two graphs, and the cards and bars over the graph."""

from ace_studio.gui.panels.graph.panel import GraphPanel
