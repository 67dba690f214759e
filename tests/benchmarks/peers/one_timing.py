"""Open a line-up in this fresh process and time it: python -m tests.benchmarks.peers.one_timing FOLDER --out FILE."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import torch

from ace_studio.engine.measure import Samples, balanced_orders, measure_interleaved
from ace_studio.engine.progress import Reporter
from tests.benchmarks.peers.opening import Run, open_left, read_lineup


class Timed(msgspec.Struct, kw_only=True):
    """What one process found."""

    samples: dict[str, Samples]
    errors: dict[str, str]
    """Tools that could not be opened or run here, with the reason."""


def time_lineup(folder: Path, *, turn: int, rounds: int) -> Timed:
    """Open everything in an order that differs from turn to turn, then time it in interleaved, balanced rounds."""
    tools, first, timed = read_lineup(folder)
    orders = balanced_orders(list(tools))
    calls: dict[str, Callable[[], object]] = {}
    errors: dict[str, str] = {}
    for name in orders[turn % len(orders)]:
        try:
            run = open_left(tools[name], first)
            run(*timed)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            errors[name] = f"{type(error).__name__}: {error}"[:300]
            traceback.print_exc()
        else:
            calls[name] = _with(run, timed)
    samples = measure_interleaved(calls, rounds=whole_turns(rounds, len(calls)), reporter=Reporter())
    return Timed(samples=samples, errors=errors)


def _with(run: Run, inputs: Sequence[torch.Tensor]) -> Callable[[], object]:
    return lambda: run(*inputs)


def whole_turns(rounds: int, count: int) -> int:
    """``rounds``, and as many more as it takes for everybody to follow everybody else equally often."""
    orders = len(balanced_orders([str(at) for at in range(count)]))
    return -(-rounds // orders) * orders


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--turn", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    timed = time_lineup(options.folder, turn=options.turn, rounds=options.rounds)
    options.out.write_bytes(msgspec.json.encode(timed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
