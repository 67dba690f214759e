"""One command that checks everything: format, lint, import contracts, types, fast tests. ``packaging/ace check``.

``--static`` leaves the tests out; ``--audit`` looks at the pinned packages instead (`audit.py`). Every step runs even
if an earlier one failed; the exit code is 0 only if all passed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from audit import audit
from parallel_tests import xdist_options

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent


@dataclass(frozen=True)
class Step:
    """One check: its name and the command, run in the root of the checkout."""

    name: str
    command: tuple[str, ...]
    is_static: bool = True


def _script(name: str, *arguments: str) -> tuple[str, ...]:
    """A program installed beside this interpreter, whatever is on the PATH."""
    return (str(SCRIPTS / name), *arguments)


STEPS = (
    Step("format", _script("ruff", "format", "--check", ".")),
    Step("lint", _script("ruff", "check", ".")),
    Step("import contracts", _script("lint-imports")),
    Step("types", _script("mypy")),
    Step("seconds of tests", (sys.executable, "-m", "tests.seconds")),
    Step(
        "fast tests",
        (sys.executable, "-m", "pytest", "-q", "-m", "not slow and not heavy and not benchmark", *xdist_options()),
        is_static=False,
    ),
)


def run_step(step: Step) -> tuple[bool, float]:
    """Run one step with its output on the terminal; return whether it passed, and its seconds."""
    print(f"== {step.name}", flush=True)
    start = time.monotonic()
    passed = subprocess.run(step.command, cwd=ROOT, check=False).returncode == 0
    return passed, time.monotonic() - start


def main() -> int:
    """Run the steps and print a summary."""
    parser = argparse.ArgumentParser(prog="packaging/ace check", description=__doc__)
    parser.add_argument("--static", action="store_true", help="leave the tests out")
    parser.add_argument("--audit", action="store_true", help="known vulnerabilities and licences of what is pinned")
    parser.add_argument("--pack", type=Path, action="append", default=[], help="with --audit: an engine pack")
    options = parser.parse_args()
    if options.audit:
        return audit(options.pack)
    only_static = options.static
    outcomes = [(step, *run_step(step)) for step in STEPS if step.is_static or not only_static]
    print("== summary")
    for step, passed, seconds in outcomes:
        print(f"{'passed' if passed else 'FAILED'}  {step.name:<18} {seconds:6.1f} s")
    return 0 if all(passed for _, passed, _ in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
