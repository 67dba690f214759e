"""The breaks panel: graph breaks, and fixes that were tried for them."""

from ace_studio.gui.panels.breaks.panel import BreaksPanel
