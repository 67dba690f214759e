"""The sweep panel: the axes, the jobs that follow from them, and the results as they come."""

from ace_studio.gui.panels.sweep.panel import SweepPanel
