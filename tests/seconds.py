"""Seconds of the tests: a bar with an estimate of the rest, and a record by folder that shows which one has grown.

A second is counted in units of a small reference computation that each process repeats between its tests, so that a
slow or busy machine gives about the same figures. ``seconds.json`` beside this file is the record that holds; each run
of all tests leaves its own in ``.pytest_cache``, and ``python -m tests.seconds`` names the folders that are a fifth
above the record. ``python -m tests.seconds --keep`` makes the last run the record.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix(".json")
LAST = ROOT / ".pytest_cache" / "seconds.json"
GROWN = 1.2
LEAST_S = 3.0
"""A folder that grew by less is not named: it may be one test that waited for another process."""
REFERENCE_S = 0.05
"""Seconds of the reference computation on the machine that figures are converted to."""
REFERENCE_EVERY_S = 20.0
BAR_WIDTH = 30


def folder_of(test_id: str) -> str:
    """The folder of a test, at most three levels deep: ``tests/engine/capture``."""
    return "/".join(test_id.partition("::")[0].split("/")[:-1][:3])


def _reference() -> float:
    """Seconds of a computation that is always the same: dictionaries, strings and numbers, as a tracer's work is."""
    gc.disable()
    start = time.perf_counter()
    counts = Counter(str(number * 7919 % 1009) for number in range(100_000))
    assert len(counts) == 1009
    gc.enable()
    return time.perf_counter() - start


class References:
    """Repeats the reference computation in the process that runs the tests."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._next = 0.0

    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> None:
        """Repeat it now and then, and at the end."""
        if time.monotonic() >= self._next or nextitem is None:
            self.seconds.append(_reference())
            self._next = time.monotonic() + REFERENCE_EVERY_S

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the times over to the process that prints."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["references"] = self.seconds


class Record:
    """Adds up the seconds of each folder in the process that prints, and draws the bar."""

    def __init__(self, config: pytest.Config, references: References | None) -> None:
        self._config = config
        self._references = references
        self._of_workers: list[float] = []
        self._seconds: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()
        self._failed = 0
        self._all: list[str] = []
        self._begin = time.monotonic()
        self._printed = (0.0, -1)
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        self._cost = {name: one["seconds"] / one["tests"] for name, one in kept.items()}

    # --- where the tests are known: here, or in the workers ---

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the tests of this process."""
        self._all = [one.nodeid for one in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the tests that each worker found."""
        self._all = ids

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take the reference times of a worker that has ended."""
        self._of_workers += getattr(node, "workeroutput", {}).get("references", [])

    # --- the bar ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dot for a test that passed: the bar counts it."""
        if self._config.option.bar and (report.passed or report.skipped) and not hasattr(report, "wasxfail"):
            return ("skipped" if report.skipped else "passed" if report.when == "call" else "", "", "")
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test; after its last one, move the bar."""
        folder = folder_of(report.nodeid)
        self._seconds[folder] += report.duration
        self._failed += report.failed
        if report.when == "teardown":
            self._tests[folder] += 1
            if self._config.option.bar:
                self._draw(report.nodeid)

    def _draw(self, test_id: str) -> None:
        done, count = sum(self._tests.values()), len(self._all)
        now, share = time.monotonic(), self._share()
        is_terminal = sys.stdout.isatty()
        step = int(100 * share) if is_terminal else int(20 * share)
        if step == self._printed[1] and (not is_terminal or now < self._printed[0] + 0.5):
            return
        self._printed = (now, step)
        gone = now - self._begin
        rest = f"about {_clock(gone / share - gone)} left" if share > 0.02 else ""
        words = f"{done:,} of {count:,} tests, {self._failed} failed, {_clock(gone)}, {rest}"
        bar = ("█" * round(BAR_WIDTH * share)).ljust(BAR_WIDTH, "░")
        line = f"{bar} {100 * share:3.0f} %  {words}"
        print(
            f"\r{line}  {folder_of(test_id)}\x1b[K" if is_terminal else line,
            end="" if is_terminal else "\n",
            flush=True,
        )

    def _share(self) -> float:
        """How much of the work is done: tests weighted by what those of their folder take."""
        usual = statistics.mean(self._cost.values()) if self._cost else 1.0
        totals = Counter(folder_of(one) for one in self._all)
        whole = sum(count * self._cost.get(name, usual) for name, count in totals.items())
        done = sum(count * self._cost.get(name, usual) for name, count in self._tests.items())
        return min(1.0, done / whole) if whole else 0.0

    # --- the record ---

    def pytest_sessionfinish(self) -> None:
        """Leave the figures of a run of all tests, in units of the reference."""
        if self._config.option.bar and sys.stdout.isatty():
            print()
        times = self._of_workers or (self._references.seconds if self._references else [])
        if not times or not _is_whole(self._config):
            return
        unit = statistics.median(times) / REFERENCE_S
        found = {
            name: {"seconds": round(self._seconds[name] / unit, 1), "tests": self._tests[name]}
            for name in sorted(self._seconds)
        }
        LAST.parent.mkdir(exist_ok=True)
        LAST.write_text(json.dumps(found, indent=1) + "\n")


def _is_whole(config: pytest.Config) -> bool:
    """Whether every test is asked for, as `packaging/ace test` does."""
    asked = config.option
    is_part = asked.keyword or asked.markexpr not in ("", "not benchmark") or getattr(asked, "lf", False) or asked.full
    return not is_part and config.args_source is not pytest.Config.ArgsSource.ARGS


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def register(config: pytest.Config) -> None:
    """Add what this process has to do: workers of xdist repeat the reference, the one that prints keeps the record."""
    is_worker, has_workers = hasattr(config, "workerinput"), bool(config.getoption("numprocesses", None))
    references = None if has_workers and not is_worker else References()
    if references is not None:
        config.pluginmanager.register(references)
    if not is_worker:
        config.pluginmanager.register(Record(config, references))


def grown(kept: dict[str, dict[str, float]], last: dict[str, dict[str, float]]) -> list[str]:
    """The folders whose tests take a fifth more than the record says, in words, the worst first."""
    found = [
        (one["seconds"] - kept.get(name, {}).get("seconds", 0.0), name, one)
        for name, one in last.items()
        if one["seconds"] > max(GROWN * kept.get(name, {}).get("seconds", 0.0), LEAST_S)
        and one["seconds"] > kept.get(name, {}).get("seconds", 0.0) + LEAST_S
    ]
    return [
        f"{name}: {one['seconds']:.1f} s in {one['tests']:.0f} tests, {more:.1f} s more than tests/seconds.json says"
        for more, name, one in sorted(found, reverse=True)
    ]


def main() -> int:
    """Compare the last run of all tests with the record, or make it the record. Exit status 1 if a folder has grown."""
    parser = argparse.ArgumentParser(prog="python -m tests.seconds", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="make the last run the record")
    keep = parser.parse_args().keep
    last = json.loads(LAST.read_text()) if LAST.exists() else {}
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not last:
        print("no run of all tests has left its seconds here; packaging/ace test does")
        return 0
    if keep:
        KEPT.write_text(LAST.read_text())
        return 0
    if not kept:
        print("there is no record yet; python -m tests.seconds --keep makes one of the last run")
        return 0
    words = grown(kept, last)
    print("\n".join(words) or "no folder takes a fifth more than tests/seconds.json says")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main())
