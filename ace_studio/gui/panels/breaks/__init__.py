"""The breaks panel and the fixes that were tried."""

from __future__ import annotations

from ace_studio.gui.panels.breaks.panel import BreaksPanel

__all__ = ["BreaksPanel"]
