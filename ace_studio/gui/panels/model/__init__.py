"""The model panel: the file, what it would run, and what to use of it."""

from ace_studio.gui.panels.model.panel import ModelPanel
