"""``auto`` with processes that build beside it, and without, in turn; each job in a fresh process with empty caches.

    python -m tests.benchmarks.bench_builds --out FOLDER [--models FOLDER] [--only NAME ...] [--rounds 3]

A job gets a goal that the first 8-bit build of the model meets, so that both sides build the same candidates. What is
compared is the time of the whole job (capture, builds, timing, proofs) and of its search alone; the exit status is 1
unless the median of the rounds' ratios is above 1 on every model. Other work on the machine decides the outcome as much
as the code: a process beside the job is worth something only if there is a core for it.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.children import run_child

GOALS_DB = {"resnet50": 20.0, "bert_base": 15.0, "wordsim": 10.0, "mobilenet_v2": 20.0}
"""Model -> fidelity that is asked for."""


def measure_job(name: str, models: Path | None, *, is_alone: bool) -> dict[str, Any]:
    """Run the job in this process, which has built nothing before."""
    import torch

    import ace_studio
    from ace_studio.engine.pipeline.builders import builders
    from tests.benchmarks.peers.row import make_row

    if is_alone:
        builders.MOST_PROCESSES = 0
    torch.set_num_threads(1)
    row = make_row(name, models)
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        result = ace_studio.compile(
            row.module,
            tracing_inputs=list(row.tracing or row.held_out),
            calibration_inputs=list(row.calibration),
            min_sqnr_db=GOALS_DB[name],
            profile=False,
            rounds=10,
            out=folder,
        )
        total_s = time.monotonic() - started
    report = result.report
    assert report.chosen is not None
    return {
        "total_s": round(total_s, 1),
        "search_s": round(sum(step.seconds for step in report.search), 1),
        "chosen": f"{report.runs[report.chosen].target} {report.runs[report.chosen].precision}",
        "candidates": [f"{step.target} {step.low} {step.sqnr_db}" for step in report.search],
    }


def run_side(name: str, options: argparse.Namespace, *, is_alone: bool, turn: int) -> dict[str, Any]:
    """One job in a process of its own, with a compiler cache of its own."""
    side = "alone" if is_alone else "beside"
    file = options.out / f"{name}-{side}-{turn}.json"
    with tempfile.TemporaryDirectory() as cache:
        arguments = ["--out", str(options.out), "--child", name, "--answer", str(file), "--cache", cache]
        arguments += ["--alone"] if is_alone else []
        arguments += ["--models", str(options.models)] if options.models else []
        ending = run_child("tests.benchmarks.bench_builds", arguments, log=file.with_suffix(".log"), limit_s=1200.0)
    if ending:
        raise RuntimeError(f"{name} {side}: {ending}; see {file.with_suffix('.log')}")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def compare(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The two sides in turn, the first one changing from round to round."""
    sides: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for turn in range(options.rounds):
        for is_alone in (True, False) if turn % 2 == 0 else (False, True):
            sides[is_alone].append(run_side(name, options, is_alone=is_alone, turn=turn))
    found: dict[str, Any] = {"name": name, "alone": sides[True], "beside": sides[False]}
    for what in ("total_s", "search_s"):
        ratios = [a[what] / b[what] for a, b in zip(sides[True], sides[False], strict=True)]
        found[what.replace("_s", "_ratio")] = round(statistics.median(ratios), 3)
        found[what] = {
            side: statistics.median(one[what] for one in sides[side == "alone"]) for side in ("alone", "beside")
        }
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path, help="folder with wordsim.py")
    parser.add_argument("--only", nargs="+", choices=list(GOALS_DB), default=["resnet50", "bert_base"])
    parser.add_argument("--rounds", type=int, default=3)
    for hidden in ("--child", "--answer", "--cache"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.child:
        import os

        os.environ["TORCHINDUCTOR_CACHE_DIR"] = options.cache
        answer = measure_job(options.child, options.models, is_alone=options.alone)
        Path(options.answer).write_text(json.dumps(answer), encoding="utf-8")
        return 0
    found = [compare(name, options) for name in options.only]
    (options.out / "summary.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    for one in found:
        print(
            f"{one['name']}: job {one['total_s']['alone']:.0f} s alone, {one['total_s']['beside']:.0f} s with builds "
            f"beside it, {one['total_ratio']:.2f}x; its search {one['search_ratio']:.2f}x"
        )
    return 0 if all(one["total_ratio"] > 1.0 for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
