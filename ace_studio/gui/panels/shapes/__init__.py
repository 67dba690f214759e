"""The inputs panel: the table of examples and shapes."""

from ace_studio.gui.panels.shapes.panel import ShapesPanel
