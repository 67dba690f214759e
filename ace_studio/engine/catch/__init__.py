"""Catching inputs: the user's own script runs, and what a module in it is called with is kept."""

from __future__ import annotations

from ace_studio.engine.catch.recorder import CallRecorder
from ace_studio.engine.catch.script import run_script
from ace_studio.engine.catch.store import rows_of, store_calls

__all__ = ["CallRecorder", "rows_of", "run_script", "store_calls"]
