"""The plan panel: precisions, goal, targets and measuring."""

from ace_studio.gui.panels.plan.panel import PlanPanel
