"""What large things cost: bytes of a graph, memory to send it, and messages of the jobs of a sweep at the scheduler.

    python -m tests.benchmarks.bench_limits [--ops 10000 100000 1000000] [--jobs 1000 10000] [--runs 1000 100000]

Graphs are made up, the cluster is one process with a stub for the engine, and the history has copies of one run. Prints
one line per size. How times grow is the work of `bench_scale`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from ace_studio.jobs.channel import MAX_FRAME_BYTES
from ace_studio.records.bundle import bundle_of, departure_of
from ace_studio.records.messages import ModelCaptured, decode_event, encode_message
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.results import CaptureReport
from ace_studio.session.kept.history import History
from ace_studio.sweeps import cluster
from ace_studio.sweeps.work import Task
from tests.benchmarks.bench_panels import copy_run
from tests.gui.graph_tables import large_table
from tests.session.fake_engine_link import result, target_run

ANSWER_BYTES = 20_000
"""What a job sends back: its result and report; the artifact stays on the worker's machine or comes as files."""


def of_graph(ops: int) -> str:
    """Bytes of the message with a graph, seconds to write and read it, and the most memory so far."""
    report = CaptureReport(rung="export", ops=ops, seconds=1.0)
    event = ModelCaptured(job="trace", fingerprint="g", capture=report, graph=large_table(ops))
    began_s = time.perf_counter()
    message = encode_message(event)
    written_s = time.perf_counter()
    decode_event(message)
    read_s = time.perf_counter()
    share = len(message) / MAX_FRAME_BYTES
    return (
        f"graph of {ops:,} ops: {len(message):,} bytes, {len(message) / ops:.0f} an op, {share:.1%} of a message; "
        f"written in {written_s - began_s:.2f} s, read in {read_s - written_s:.2f} s; "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB at most"
    )


def of_history(runs: int) -> str:
    """Bytes and seconds of a history."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite"
        history = History(path)
        copy_run(history, history.add(result(target_run("eager")), recipe_toml="x", title="t"), runs - 1)
        began_s = time.perf_counter()
        listed = len(history.list())
        took_s = time.perf_counter() - began_s
        return f"history of {runs:,} runs: {path.stat().st_size / runs:,.0f} bytes a run; {listed:,} in {took_s:.3f} s"


def answer(_packed: bytes, _blobs: object) -> bytes:
    """In place of the engine."""
    return b"x" * ANSWER_BYTES


def of_sweep(jobs: int) -> str:
    """Messages and bytes over the sockets of client, scheduler and worker, and seconds, for so many jobs."""
    from distributed import LocalCluster
    from distributed.comm.tcp import TCP

    recipe, folder = read_recipe(example_recipe()), example_recipe().parent
    bundle, _ = bundle_of(recipe, departure_of(recipe, folder))
    packed = msgspec.msgpack.encode(Task(job="1", topic="t", recipe=bundle.recipe, bundle=bundle, trust=True))
    sent = {"messages": 0, "bytes": 0}
    write = TCP.write

    async def counted(self: TCP, *arguments: Any, **named: Any) -> int:
        count: int = await write(self, *arguments, **named)
        sent["messages"] += 1
        sent["bytes"] += count
        return count

    with (
        patch.object(TCP, "write", counted),
        patch.object(cluster, "run_task", answer),
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, protocol="tcp://", dashboard_address=None
        ) as local,
    ):
        connection = cluster.Connection(local.scheduler_address, "bench")
        sent.update(dict.fromkeys(sent, 0))
        began_s = time.perf_counter()
        for job in range(jobs):
            connection.send(str(job), packed, {}, {})
        given_s = time.perf_counter() - began_s
        done = 0
        while done < jobs:
            news = connection.take(0.5)
            if news is not None:
                connection.done(news[0])
                done += 1
        took_s = time.perf_counter() - began_s
        connection.close()
    return (
        f"sweep of {jobs:,} jobs: {len(packed):,} bytes a task, {sent['messages'] / jobs:.1f} messages and "
        f"{sent['bytes'] / jobs:,.0f} bytes a job; given in {given_s:.1f} s, {1000 * took_s / jobs:.1f} ms a job in all"
    )


def main() -> int:
    """Print a line for every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = {"runs": (of_history, [1_000, 10_000, 100_000]), "jobs": (of_sweep, [1_000, 10_000])}
    kinds["ops"] = of_graph, [10_000, 100_000, 1_000_000]
    for name, (_, sizes) in kinds.items():
        parser.add_argument(f"--{name}", type=int, nargs="*", default=sizes)
    options = parser.parse_args()
    for name, (measure, _) in kinds.items():
        for size in getattr(options, name):
            print(measure(size), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
