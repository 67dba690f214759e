"""Runs the tests on mutated copies of the checkout, and says which mutations they notice.

    python -m tests.mutations                      # all
    python -m tests.mutations NAME ... --out FILE  # some; FILE keeps the table, one line for each mutation
    python -m tests.mutations --survivors --out FILE    # those that FILE says survived
    python -m tests.mutations --all --out FILE     # the whole suite on those that survived their own tests

A mutation is killed if a test fails that passes without it, if the tests end in a crash, or if they do not end.
Each worker has a copy of the checkout in a temporary folder, with at most one mutation in it at a time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.mutations.copies import TIMED_OUT, Copy
from tests.mutations.row import Mutation
from tests.mutations.table import MUTATIONS

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 3600.0
"""Tests of a mutation that take longer count as failed; a single one that hangs fails earlier, by pytest-timeout."""


class Verdict(NamedTuple):
    """One line of the table."""

    name: str
    word: str
    """``killed``, ``SURVIVED``, or ``BROKEN`` where the tests could not be collected."""
    seconds: float
    by: str

    def __str__(self) -> str:
        return f"{self.name:<36} {self.word:<9} {self.seconds:>7.1f} s  {self.by}".rstrip()


class Runner:
    """Tests mutations, and keeps the table."""

    def __init__(self, out: Path | None) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._fails_anyway: dict[str, bool] = {}
        self.verdicts: dict[str, Verdict] = {}
        for line in out.read_text(encoding="utf-8").splitlines() if out is not None and out.exists() else ():
            name, word, seconds, *by = line.split(maxsplit=4)
            if name in MUTATIONS:
                self.verdicts[name] = Verdict(name, word, float(seconds), "".join(by[1:]))

    def keep(self, verdict: Verdict) -> None:
        """Put a verdict into the table, in place of an earlier one."""
        with self._lock:
            self.verdicts[verdict.name] = verdict
            print(verdict, flush=True)
            if self._out is not None:
                lines = [str(self.verdicts[name]) for name in MUTATIONS if name in self.verdicts]
                self._out.write_text("\n".join([*lines, self.total()]) + "\n", encoding="utf-8")

    def total(self) -> str:
        """The last line of the table."""
        words = [one.word for one in self.verdicts.values()]
        seconds = sum(one.seconds for one in self.verdicts.values())
        return f"{words.count('killed')} of {len(words)} killed in {seconds:.0f} s"

    def fails_anyway(self, copy: Copy, test: str) -> bool:
        """Whether a test fails without a mutation too; the first who asks finds out."""
        if test not in self._fails_anyway:
            self._fails_anyway[test] = copy.test([test], limit_s=LIMIT_S).code != 0
        return self._fails_anyway[test]

    def judge(self, copy: Copy, mutation: Mutation, tests: Sequence[str] = ()) -> None:
        """Run the mutation's own tests, or others, and keep what they say."""
        seconds, left_out = 0.0, list[str]()
        while True:
            with copy.mutated([mutation]):
                words = [word for one in left_out for word in ("--deselect", one)]
                ended = copy.test(tests or mutation.tests, "-x", *words, limit_s=LIMIT_S)
            seconds += ended.seconds
            first = (*ended.failed, "unknown")[0]
            if ended.code != 1 or not ended.failed or first in left_out or not self.fails_anyway(copy, first):
                break
            left_out.append(first)
        if ended.code in (0, 1):
            word, by = ("killed", first) if ended.code else ("SURVIVED", "")
        elif ended.code in (2, 3, 4, 5):
            word, by = "BROKEN", ended.said.strip().rpartition("\n")[2]
        else:
            word, by = "killed", "(time-out)" if ended.code == TIMED_OUT else f"(a crash, exit status {ended.code})"
        self.keep(Verdict(mutation.name, word, seconds, by))

    def judge_by_all(self, copy: Copy, survivors: Sequence[Mutation]) -> None:
        """Run the whole suite once with all survivors in it; the tests that fail are run again for each of them."""
        with copy.mutated(survivors):
            failed = copy.test((), limit_s=6 * LIMIT_S).failed
        print(f"{len(failed)} tests of the whole suite fail with {len(survivors)} mutations", flush=True)
        for mutation in survivors if failed else ():
            self.judge(copy, mutation, failed)


def main() -> int:
    """Test the mutations that are named; 0 if all of the table are killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, help="keeps the table; lines of an earlier call stay")
    parser.add_argument("--jobs", type=int, default=1, help="copies that are tested at the same time")
    parser.add_argument("--survivors", action="store_true", help="only those that survived, by --out")
    parser.add_argument("--all", action="store_true", help="afterwards the whole suite on those that survived")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the checkout to copy; this one by default")
    asked = parser.parse_args()
    runner = Runner(asked.out)
    survived = {name for name, one in runner.verdicts.items() if one.word != "killed"}
    chosen = [MUTATIONS[name] for name in asked.names or MUTATIONS if not asked.survivors or name in survived]
    with ExitStack() as opened:
        folders = [opened.enter_context(tempfile.TemporaryDirectory(prefix="ace-")) for _ in range(asked.jobs)]
        copies = [Copy(asked.checkout.resolve(), Path(folder).resolve()) for folder in folders]

        def judge_share(at: int) -> None:
            for mutation in chosen[at :: asked.jobs]:
                runner.judge(copies[at], mutation)

        with ThreadPoolExecutor(asked.jobs) as pool:
            list(pool.map(judge_share, range(asked.jobs)))
        left = [one for one in chosen if runner.verdicts[one.name].word == "SURVIVED"]
        if asked.all and left:
            runner.judge_by_all(copies[0], left)
    print(runner.total())
    return int(any(one.word != "killed" for one in runner.verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
