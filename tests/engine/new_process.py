"""Calls functions of tests in processes that have imported the engine's loading and done nothing else."""

import importlib
from pathlib import Path

import ace_studio.engine.load  # noqa: F401 - it takes seconds, and is there when a process is forked
from ace_studio.engine.fresh import run_fresh


def call_in_new_process(module: str, function: str, *arguments: str, folder: Path) -> str:
    """What ``function(*arguments)`` of a module prints in a new process, or the traceback of what it raises."""
    log = folder / "said.txt"
    run_fresh("tests.engine.new_process", "call", module, function, *arguments, log=log, check=lambda: None)
    return log.read_text(encoding="utf-8")


def call(module: str, function: str, *arguments: str) -> int:
    """Called in the new process."""
    getattr(importlib.import_module(module), function)(*arguments)
    return 0
