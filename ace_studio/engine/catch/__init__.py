"""Catches inputs: runs the user's own script and keeps the calls of one of its modules."""

from ace_studio.engine.catch.recorder import CallRecorder
from ace_studio.engine.catch.script import run_script
from ace_studio.engine.catch.store import caught_rows, store_calls
