"""What a test of this folder calls in a new process that has torch."""

import json
import os
from pathlib import Path

import torch


def mapped(path: str) -> int:
    """Write down how much of files is mapped here, and in the process that this one was forked from, in kB."""
    torch.ones(2)
    found = {"here": _mapped_kb(os.getpid()), "before": _mapped_kb(os.getppid())}
    Path(path).write_text(json.dumps(found), encoding="utf-8")
    return 0


def _mapped_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssFile:"))
