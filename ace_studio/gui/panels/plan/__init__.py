"""The plan panel: precisions, goal, targets and measuring."""

from __future__ import annotations

from ace_studio.gui.panels.plan.panel import PlanPanel
