"""A copy of the checkout, in which tests are run with a mutation or without."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.mutations.row import Mutation

FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
WHERE = "import ace_studio, ace_studio.jobs.launch as launch; print(ace_studio.__file__, launch.BOOT_FILE, sep='\\n')"
"""Says which package is imported, and which file the engine's processes start with: they import what is around it."""
TIMED_OUT = -1000
"""In place of an exit status."""


class Ended(NamedTuple):
    """How a call of pytest ended."""

    code: int
    """Exit status; negative for a signal, or `TIMED_OUT`."""
    failed: tuple[str, ...]
    seconds: float
    said: str


class Copy:
    """A copy of a checkout in which tests are run."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.root = folder
        words = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(words, capture_output=True, check=True).stdout.decode().split("\0")
        for name in filter(None, names):
            if (checkout / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / name, folder / name)
        self._environment = {**os.environ, "PYTHONPATH": str(folder)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        words = [sys.executable, "-c", WHERE]
        found = subprocess.run(words, check=False, cwd="/", env=self._environment, capture_output=True, text=True)
        if not found.stdout or not all(Path(one).is_relative_to(folder) for one in found.stdout.split("\n") if one):
            raise SystemExit(f"the tests would not import the copy in {folder}:\n{found.stdout}{found.stderr}")

    def test(self, tests: Sequence[str], *options: str, limit_s: float) -> Ended:
        """Run tests, or all of them if none is named."""
        named = [f"tests/{one.removeprefix('tests/')}" for one in tests]
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *named]
        start, pipe = time.monotonic(), subprocess.PIPE
        process = subprocess.Popen(
            words, cwd=self.root, env=self._environment, stdout=pipe, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            said = process.communicate(timeout=limit_s)[0]
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            code, said = TIMED_OUT, process.communicate()[0]
        failed = tuple(dict.fromkeys(FAILED.findall(said)))
        return Ended(code, failed, time.monotonic() - start, said)

    @contextmanager
    def mutated(self, mutations: Iterable[Mutation]) -> Iterator[None]:
        """The copy with some mutations; afterwards it is as it was."""
        before: dict[Path, str] = {}
        for one in mutations:
            path = self.root / one.path
            before.setdefault(path, path.read_text(encoding="utf-8"))
            _write(path, one.mutated(self.root))
        try:
            yield
        finally:
            for path, text in before.items():
                _write(path, text)


def _write(path: Path, text: str) -> None:
    """Change a module. Its compiled form goes: it would count as current after a change of the same size and second."""
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()
