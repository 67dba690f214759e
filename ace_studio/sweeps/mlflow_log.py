"""Logs a sweep to MLflow, where that is installed: a run for the sweep, and below it one per job with a result."""

import importlib.util
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ace_studio import __version__
from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.results import RESULT_NAME
from ace_studio.records.safe_file import read_or_none, write_atomically
from ace_studio.records.sending import SendVerdict, leaving
from ace_studio.records.sweeps import RowStatus, SweepReport, SweepRow

EXPERIMENT = "ace-studio"
LOGGED_NAME = "mlflow.json"
_METRICS: tuple[str, ...] = (
    "latency_ms", "latency_p10_ms", "latency_p90_ms", "baseline_ms", "speedup", "float_speedup", "metric",
    "metric_drop", "sqnr_db", "size_bytes", "peak_memory_bytes", "seconds",
)  # fmt: skip
_TAGS = ("job", "host", "key", "verified", "goal_met", "on_front", "artifact")
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # a server that is not there is reported in seconds, not minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


class _Logged(msgspec.Struct):
    """What was logged of the sweep in a folder, so that one that goes on logs nothing twice."""

    uri: str = ""
    sweep: str = ""
    """Id of the run of the whole sweep."""
    jobs: dict[str, str] = {}
    """Key of a job -> id of its run."""


def has_mlflow() -> bool:
    """Whether MLflow is installed."""
    return importlib.util.find_spec("mlflow") is not None


class MlflowLog:
    """A connection to a tracking server, or to a folder or a database in its place."""

    def __init__(self, uri: str) -> None:
        """Connect, so that what is wrong is reported before the sweep begins.

        Raises: AceError(NOT_INSTALLED) without MLflow; AceError(NOT_FOUND) if the server does not answer.
        """
        if not has_mlflow():
            raise AceError.of(ErrorCode.NOT_INSTALLED, "MLflow is not installed", remedy="pip install mlflow-skinny")
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        import mlflow  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - optional, and slow to import

        self._uri = uri
        self._entities: Any = mlflow.entities
        with self._explained():
            self._client: Any = mlflow.MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(EXPERIMENT)
            self._experiment = found.experiment_id if found else self._client.create_experiment(EXPERIMENT)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # MLflow and the libraries of its stores raise errors of many kinds
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"MLflow could not log to {self._uri}",
                why=message_of(error),
                remedy="Check the address; the same sweep again logs what is missing, and runs no job twice",
            ) from error

    def log(self, report: SweepReport, out: Path) -> None:
        """Log the jobs with a result that were not logged yet, and the report. Raises: AceError(NOT_FOUND), OSError."""
        logged = self._before(out)
        try:
            with self._explained():
                self._log(report, out, logged)
        finally:
            write_atomically(out / LOGGED_NAME, msgspec.json.encode(logged))

    def _before(self, out: Path) -> _Logged:
        logged = read_or_none(out / LOGGED_NAME, _Logged)
        return logged if logged and logged.uri == self._uri else _Logged(uri=self._uri)

    def _log(self, report: SweepReport, out: Path, logged: _Logged) -> None:
        if not logged.sweep:
            logged.sweep = self._begin(f"sweep {out.name}", {"ace-studio": __version__, "folder": str(out)})
        for row in report.rows:
            if row.status is RowStatus.DONE and row.key not in logged.jobs:
                logged.jobs[row.key] = self._log_row(row, out, logged.sweep)
        self._log_file(logged.sweep, out / "sweep.html", out)
        self._client.set_tag(logged.sweep, "status", str(report.status))
        self._client.set_terminated(logged.sweep, "FINISHED")

    def _begin(self, name: str, tags: dict[str, str]) -> str:
        run = self._client.create_run(self._experiment, run_name=name, tags=tags)
        return str(run.info.run_id)

    def _log_row(self, row: SweepRow, out: Path, parent: str) -> str:
        about = ", ".join(f"{axis} {word}" for axis, word in row.axes.items()) or row.recipe
        tags = {name: str(value) for name in _TAGS if (value := getattr(row, name)) not in (None, "")}
        run = self._begin(about, tags | {"mlflow.parentRunId": parent})
        params = {"recipe": row.recipe, "target": row.target, "precision": row.precision}
        params |= {f"axis.{axis}": str(word) for axis, word in row.axes.items()}
        now_ms = int(1000 * time.time())
        figures = {name: value for name in _METRICS if (value := getattr(row, name)) is not None}
        self._client.log_batch(
            run,
            metrics=[self._entities.Metric(name, float(value), now_ms, 0) for name, value in figures.items()],
            params=[self._entities.Param(name, value) for name, value in params.items()],
        )
        self._log_file(run, out / row.folder / RESULT_NAME, out)
        self._client.set_terminated(run, "FINISHED")
        return run

    def _log_file(self, run: str, file: Path, out: Path) -> None:
        """Send a file of the sweep's folder, if it is there and no link that leads out."""
        if file.is_file() and leaving([file.absolute()], out)[0].verdict is SendVerdict.GOES:
            self._client.log_artifact(run, str(file))
