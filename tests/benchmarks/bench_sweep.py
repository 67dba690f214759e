"""What a sweep costs beside its jobs: jobs a second where jobs do nothing, and seconds of the engine per real job.

    python -m tests.benchmarks.bench_sweep --out FOLDER [--jobs 1000] [--real 8]

Both on a cluster of this machine. The first part runs without torch (`tests/sweeps/fake_jobs.py`) and keeps every
result, as a sweep does. The second runs the shipped example with one target and few rounds; the first job of each
worker, which starts its engine, does not count. The exit status is 1 below 20 jobs a second, or above 1 s per job.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from unittest.mock import patch

from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.records.places import example_recipe
from ace_studio.records.results import decode_result
from ace_studio.records.sweep_file import checked_sweep, sweep_jobs
from ace_studio.records.sweeps import RowStatus, SweepEvent, SweepOptions
from ace_studio.sweeps.running import SweepAdvanced, run_sweep
from tests.benchmarks.figures import Figure, conclude, digits, median_of, spread

LEAST_JOBS_A_SECOND = 20.0
MOST_SECONDS_A_JOB = 1.0
WORKERS = 2


def rate(folder: Path, count: int) -> Figure:
    """Jobs a second from the first that was sent to the last that came back."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    (folder / "in" / "model.py").write_text("")
    (folder / "in" / "r.toml").write_text('format = 1\n[model]\nsource = "model.py"\nentry = "ok"\n')
    document = {"format": 1, "recipes": ["r.toml"], "axes": {"threads": list(range(1, count + 1))}}
    jobs = sweep_jobs(checked_sweep(document, name="sweep"), folder / "in", name="sweep")
    times: list[float] = []
    fake = Path(__file__).parents[1] / "sweeps" / "fake_jobs.py"
    options = SweepOptions(trust=True, workers=WORKERS)

    def noted(event: SweepEvent) -> None:
        if isinstance(event, SweepAdvanced):
            times.append(time.perf_counter())

    with patch.dict(os.environ, {HANDLERS_VARIABLE: str(fake)}):
        report = run_sweep(jobs, folder / f"nothing-{count}", options, noted)
    done = sum(row.status is RowStatus.DONE for row in report.rows)
    value = done / (times[-1] - times[0])
    what = f"a sweep of {count:,} jobs that do nothing completes {value:.0f} jobs a second, with {WORKERS} workers"
    return Figure(id="sweep.rate", what=what, value=value, unit="/s", lost=done < count or value < LEAST_JOBS_A_SECOND)


def overhead(folder: Path, count: int) -> Figure:
    """Seconds of a job beside those that its run itself took."""
    recipe = example_recipe()
    (folder / "real").mkdir(parents=True, exist_ok=True)
    text = (
        f'format = 1\n[model]\nsource = "{recipe.parent / "model.py"}"\nentry = "make_model"\n'
        '[inputs]\ntracing = "tracing_inputs"\n[targets]\nnames = ["onnxruntime"]\n[plan]\ndefault = "fp32"\n'
    )
    for at in range(count):
        # Another number of rounds is another job.
        more = f"[measure]\nthreads = 1\nrounds = {3 + at}\nprofile = false\n"
        (folder / "real" / f"r{at}.toml").write_text(text + more)
    document = {"format": 1, "recipes": [f"r{at}.toml" for at in range(count)]}
    jobs = sweep_jobs(checked_sweep(document, name="sweep"), folder / "real", name="sweep")
    out = folder / "real-out"
    report = run_sweep(jobs, out, SweepOptions(trust=True, workers=WORKERS))
    results = [decode_result((out / row.folder / "result.json").read_bytes()) for row in report.rows]
    beside = [row.seconds - result.seconds for row, result in zip(report.rows, results, strict=True)]
    found = spread(sorted(beside)[: count - WORKERS])  # without those that started an engine
    is_lost = found.low > MOST_SECONDS_A_JOB
    what = f"a job of a sweep takes {digits(found.median)} s more than its run"
    return median_of("sweep.overhead", what, found, "s", lost=is_lost)


def main() -> int:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--real", type=int, default=8)
    options = parser.parse_args()
    return conclude(options.out, [rate(options.out, options.jobs), overhead(options.out, options.real)])


if __name__ == "__main__":
    sys.exit(main())
