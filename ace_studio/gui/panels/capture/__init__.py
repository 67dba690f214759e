"""The capture panel: capture methods and the controls of single functions."""

from ace_studio.gui.panels.capture.panel import CapturePanel
