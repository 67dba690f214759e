"""``ace_studio.sweep``: a sweep from Python."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ace_studio.records.sending import Word
from ace_studio.records.sweep_file import checked_sweep, read_jobs, sweep_jobs
from ace_studio.records.sweeps import SweepEvent, SweepOptions, SweepReport
from ace_studio.sweeps.running import run_sweep


def sweep(  # noqa: PLR0913 - each is an option of the user's
    what: str | Path | Mapping[str, Any],
    *,
    out: str | Path,
    scheduler: str = "",
    trust: bool = False,
    workers: int = 0,
    mlflow: str = "",
    hosts: Sequence[str] = (),
    send: Sequence[str | Path] = (),
    on_event: Callable[[SweepEvent], None] = lambda _event: None,
) -> SweepReport:
    """Run every combination of recipes and axes, and compare all of them.

    A script that calls this needs ``if __name__ == "__main__":`` around it, because the cluster starts processes.

    Args:
        what: The file of a sweep or a recipe, or what such a file holds: ``{"format": 1, "recipes": ["a.toml"],
            "axes": {"plan": ["fp32", "int8-static"]}}``, with paths relative to the current folder.
        out: Folder for all results. A sweep that was stopped goes on there.
        scheduler: Address of a Dask scheduler (``tcp://HOST:8786``); empty: a cluster of this machine.
        trust: Whether the code of the recipes' files may run.
        workers: Most jobs at once on this machine; 0: as many as cores and memory allow.
        mlflow: Address of an MLflow server, or of a store, to log the jobs to; empty: nowhere.
        hosts: Machines that recipes may name for their engine; the files of a recipe's folder are sent there.
        send: Files that may be sent though they lie outside of the recipe's folder, or are of a kind with secrets.
        on_event: Is called with progress and rows as they come, in this thread.

    Returns: One row per job; ``out`` has ``sweep.json``, ``sweep.csv``, ``sweep.html`` and a folder per job.
    Raises: AceError with what, why, remedy and where.
    """
    if isinstance(what, Mapping):
        jobs = sweep_jobs(checked_sweep(what, name="the sweep"), Path.cwd(), name="the sweep")
    else:
        jobs = read_jobs([Path(what)])
    word = Word(hosts=tuple(hosts), files=tuple(map(str, send)))
    options = SweepOptions(scheduler=scheduler, trust=trust, word=word, workers=workers, mlflow=mlflow)
    return run_sweep(jobs, Path(out), options, on_event)
