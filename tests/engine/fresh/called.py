"""What the tests of this folder call in new processes."""

import json
import os
import sys
import time
from pathlib import Path

_CALLS: list[str] = []


def note(path: str, word: str = "") -> int:
    """Write down what the process sees; print the word."""
    _CALLS.append(word)
    seen = {"calls": _CALLS, "pid": os.getpid(), "folder": os.getcwd(), "variable": os.environ.get("ACE_TEST_FRESH")}  # noqa: PTH109
    Path(path).write_text(json.dumps(seen), encoding="utf-8")
    print(word)
    return 0


def wait(path: str) -> int:
    """Say that the process is there, then wait for long."""
    Path(path).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(60)
    return 0


def work(path: str) -> int:
    """Keep the processor busy for a moment."""
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    return note(path)


def fail() -> int:
    """Raise."""
    raise RuntimeError("no such luck")


def loaded(path: str, *names: str) -> int:
    """Write down which modules are loaded."""
    Path(path).write_text(json.dumps({name: name in sys.modules for name in names}), encoding="utf-8")
    return 0
