"""Start-up and memory of the window and of the engine, beside a bare Qt window and a bare ``import torch``, in turn.

    python -m tests.benchmarks.bench_start --out FOLDER [--rounds 9]

Every start is a fresh process, with Qt's offscreen platform and empty user folders. It ends with the first paint, the
engine's message that it is ready, or the end of the import; then processor time and memory (RSS) are read from outside.
The first round does not count. FOLDER gets ``figures.json``. The exit status is 1 if the window exceeds a limit.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import WorkerLost, WorkerReady
from tests.benchmarks.figures import Figure, conclude, digits, median_of, spread

CODE = {
    "window": """
from ace_studio.gui.shell import app, start
app.Studio._start_engine = lambda studio: print("there", flush=True)
start.run_window([])
""",
    "bare Qt window": """
from PySide6.QtWidgets import QApplication, QMainWindow
class Window(QMainWindow):
    def paintEvent(self, event):
        print("there", flush=True)
application = QApplication([])
window = Window()
window.resize(1280, 800)
window.show()
application.exec()
""",
    "bare import of torch": """
import time
import torch
print("there", flush=True)
time.sleep(600)
""",
}
PAIRS = {
    "window": ("bare Qt window", "until its first paint a bare Qt window needs {}, the window of ACE Studio {}"),
    "engine": ("bare import of torch", "until it is ready a bare import of torch needs {}, the engine's process {}"),
}
UNITS = {"wall_s": "s", "cpu_s": "s of CPU", "rss_mib": "MiB"}
LIMITS = {"window.wall_s": 1.0, "window.cpu_s": 0.25, "window.rss_mib": 150e6 / 2**20}
"""Wall time and memory are those that the window's own test holds; a test of CPU time would depend on the machine."""


class Start(NamedTuple):
    """What one start took until it was there."""

    wall_s: float
    cpu_s: float
    rss_mib: float


def _now(pid: int, began_s: float) -> Start:
    wall_s, process = time.perf_counter() - began_s, psutil.Process(pid)
    cpu, memory = process.cpu_times(), process.memory_info()
    return Start(wall_s=wall_s, cpu_s=cpu.user + cpu.system, rss_mib=memory.rss / 2**20)


def start_code(code: str) -> Start:
    """Start a program that prints a line when it is there. Raises: RuntimeError if it ends before that."""
    with tempfile.TemporaryDirectory() as folder:
        own = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        environment = os.environ | own | {"QT_QPA_PLATFORM": "offscreen"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled: the first round does that
        began_s = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"it ended with status {process.wait()}")
            return _now(process.pid, began_s)
        finally:
            process.kill()
            process.communicate()


def start_engine() -> Start:
    """Start the engine as the window does. Raises: RuntimeError if it does not come."""
    client = WorkerClient()
    began_s = time.perf_counter()
    client.start()
    try:
        for event in client.events():
            if isinstance(event, WorkerReady):
                return _now(event.pid, began_s)
            if isinstance(event, WorkerLost):
                break
        raise RuntimeError("the engine did not start")
    finally:
        client.close()


def figures_of(found: dict[str, list[Start]]) -> list[Figure]:
    """Medians of the window and of the engine beside their peers."""
    figures = []
    for (name, (peer, what)), (field, unit) in itertools.product(PAIRS.items(), UNITS.items()):
        ours, theirs = (spread([getattr(one, field) for one in found[each]]) for each in (name, peer))
        is_lost = ours.low > LIMITS.get(f"{name}.{field}", float("inf"))
        more = {"peer": peer, "peer_value": theirs.median, "lost": is_lost}
        words = what.format(*(f"{digits(one.median)} {unit}" for one in (theirs, ours)))
        figures.append(median_of(f"start.{name}.{field}", words, ours, unit, **more))
    return figures


def main() -> int:
    """Start everything in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    names = [*CODE, "engine"]
    found: dict[str, list[Start]] = {name: [] for name in names}
    for turn in range(options.rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = start_code(CODE[name]) if name in CODE else start_engine()
            found[name] += [start] if turn else []
    return conclude(options.out, figures_of(found))


if __name__ == "__main__":
    sys.exit(main())
