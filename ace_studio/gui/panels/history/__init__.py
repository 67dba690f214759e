"""The history panel: past runs on this machine, to look at again and to compare."""

from ace_studio.gui.panels.history.panel import HistoryPanel
