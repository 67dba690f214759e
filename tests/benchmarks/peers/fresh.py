"""Timing what the tools left in several fresh processes, one after the other."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ace_studio.engine.measure import Samples
from tests.benchmarks.children import run_child
from tests.benchmarks.peers.one_timing import Timed

LIMIT_S = 600.0


class FreshTimes(msgspec.Struct, kw_only=True):
    """What all processes found."""

    samples: dict[str, list[Samples]]
    """Rounds per process of every tool that ran in all of them."""
    errors: dict[str, str]


def time_freshly(folder: Path, *, processes: int, rounds: int, first_turn: int = 0) -> FreshTimes:
    """Time the line-up in ``folder`` in that many processes, each with another order of opening.

    Raises: RuntimeError if a process gave nothing; its output is in the message.
    """
    found = []
    for turn in range(first_turn, first_turn + processes):
        file, log = folder / f"timed_{turn}.json", folder / f"timed_{turn}.log"
        file.unlink(missing_ok=True)
        words = [str(folder), "--out", str(file), "--turn", str(turn), "--rounds", str(rounds)]
        ending = run_child("tests.benchmarks.peers.one_timing", words, log=log, limit_s=LIMIT_S, is_own_group=False)
        if ending:
            raise RuntimeError(f"the timing {ending}: {log.read_text(errors='replace')[-2_000:]}")
        found.append(msgspec.json.decode(file.read_bytes(), type=Timed))
    return gathered(found)


def gathered(found: list[Timed]) -> FreshTimes:
    """Samples per tool instead of per process. A tool that failed in one process counts in none."""
    errors: Mapping[str, str] = {name: words for one in found for name, words in one.errors.items()}
    names = [name for name in found[0].samples if name not in errors]
    return FreshTimes(samples={name: [one.samples[name] for one in found] for name in names}, errors=dict(errors))
