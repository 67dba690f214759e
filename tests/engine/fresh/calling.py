"""Calls what is in ``called`` in new processes."""

import json
from pathlib import Path

import pytest

from ace_studio.engine.fresh import processes, run_fresh

CALLED = "tests.engine.fresh.called"
on_linux = pytest.mark.skipif(not processes.CAN_FORK, reason="processes are forked on Linux only")


def called(folder: Path, function: str = "note", *arguments: str, forked: bool = True, module: str = CALLED) -> dict:
    """What the function has written down."""
    place = folder / "seen.json"
    run_fresh(module, function, str(place), *arguments, log=folder / "log.txt", check=lambda: None, forked=forked)
    return json.loads(place.read_text(encoding="utf-8"))
