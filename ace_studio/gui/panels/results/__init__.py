"""The results panel: the targets compared by latency, speed-up, accuracy, fidelity and size."""

from ace_studio.gui.panels.results.panel import ResultsPanel
