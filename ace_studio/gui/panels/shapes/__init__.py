"""The inputs panel: the table of examples and shapes."""

from __future__ import annotations

from ace_studio.gui.panels.shapes.panel import ShapesPanel
