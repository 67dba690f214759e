"""With a stand-in for MLflow, which the tests do not install."""

import importlib.util
import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace

import pytest
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.results import RESULT_NAME
from ace_studio.records.sweeps import RowStatus, SweepReport, SweepRow, SweepStatus
from ace_studio.sweeps import mlflow_log
from ace_studio.sweeps.mlflow_log import MlflowLog
from tests.session.fake_sweep_link import sweep_row

Metric = namedtuple("Metric", "key value timestamp step")
Param = namedtuple("Param", "key value")


class Client:
    """What the tests need of MLflow's client; a server of the name ``gone`` does not answer."""

    def __init__(self, tracking_uri):
        self.uri, self.runs, self.artifacts, self.experiments = tracking_uri, {}, [], []
        Client.last = self

    def get_experiment_by_name(self, name):
        if self.uri == "gone":
            raise ConnectionError("refused")

    def create_experiment(self, name):
        self.experiments.append(name)
        return "7"

    def create_run(self, experiment, *, run_name, tags):
        run = f"run{len(self.runs)}"
        self.runs[run] = {"name": run_name, "tags": tags, "experiment": experiment}
        return SimpleNamespace(info=SimpleNamespace(run_id=run))

    def log_batch(self, run, *, metrics, params):
        if "full" in self.uri and len(self.runs) > 2:
            raise OSError("disk full")
        self.runs[run] |= {"metrics": {one.key: one.value for one in metrics}, "params": dict(params)}

    def log_artifact(self, run, path):
        self.artifacts.append((run, path))

    def set_tag(self, run, key, value):
        self.runs.setdefault(run, {"tags": {}})["tags"][key] = value

    def set_terminated(self, run, status):
        self.runs.setdefault(run, {})["ended"] = status


@pytest.fixture
def installed(monkeypatch):
    made = ModuleType("mlflow")
    made.MlflowClient, made.entities = Client, SimpleNamespace(Metric=Metric, Param=Param)
    monkeypatch.setitem(sys.modules, "mlflow", made)
    monkeypatch.setattr(mlflow_log, "has_mlflow", lambda: True)
    for name in mlflow_log._SETTINGS:
        monkeypatch.setenv(name, "1")


@pytest.fixture
def report(tmp_path):
    (tmp_path / "jobs" / "1").mkdir(parents=True)
    (tmp_path / "jobs" / "1" / RESULT_NAME).write_text("{}")
    (tmp_path / "sweep.html").write_text("")
    rows = (replace(sweep_row(1, 2.0), key="a"), replace(sweep_row(2, 1.0), key="b"))
    return SweepReport(
        status=SweepStatus.INCOMPLETE, rows=(*rows, SweepRow(job="3", recipe="r", axes={}, status=RowStatus.FAILED))
    )


def test_every_job_with_a_result_is_a_run_below_that_of_the_sweep(installed, report, tmp_path):
    MlflowLog("http://box").log(report, tmp_path)
    sweep, first, second = Client.last.runs.values()
    assert (sweep["tags"]["status"], sweep["ended"]) == ("incomplete", "FINISHED")
    assert first["params"] == {"recipe": "recipe.toml", "target": "eager", "precision": "fp32", "axis.threads": "1"}
    assert (first["metrics"]["latency_ms"], second["metrics"]["latency_ms"]) == (2.0, 1.0)
    assert "sqnr_db" not in first["metrics"]
    assert first["tags"]["mlflow.parentRunId"] == "run0"
    assert first["tags"]["host"] == "box"
    assert [path.rpartition("/")[2] for _, path in Client.last.artifacts] == [RESULT_NAME, "sweep.html"]


def test_a_sweep_that_goes_on_logs_nothing_twice_but_all_of_it_to_another_server(installed, report, tmp_path):
    MlflowLog("http://box").log(replace(report, rows=report.rows[:1]), tmp_path)
    MlflowLog("http://box").log(report, tmp_path)
    assert [run.get("name") for run in Client.last.runs.values() if "metrics" in run] == ["threads 2"]
    MlflowLog("http://other").log(report, tmp_path)
    assert sum("metrics" in run for run in Client.last.runs.values()) == 2


def test_what_was_logged_before_a_fault_is_remembered(installed, report, tmp_path):
    with pytest.raises(AceError, match="disk full") as caught:
        MlflowLog("full").log(report, tmp_path)
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
    assert b'"a":"run1"' in (tmp_path / mlflow_log.LOGGED_NAME).read_bytes()


def test_a_server_that_does_not_answer_is_told_at_once(installed):
    with pytest.raises(AceError, match="refused"):
        MlflowLog("gone")


def test_without_mlflow_the_line_that_installs_it_is_told(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AceError) as caught:
        MlflowLog("http://box")
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED
    assert "pip install mlflow" in caught.value.problem.remedy


def test_a_link_that_leads_out_of_the_sweeps_folder_is_not_logged(installed, tmp_path):
    (tmp_path / "diary").write_text("canary")
    out = tmp_path / "out"
    (out / "jobs" / "1").mkdir(parents=True)
    for name in ("sweep.html", f"jobs/1/{RESULT_NAME}"):
        (out / name).symlink_to(tmp_path / "diary")
    report = SweepReport(status=SweepStatus.OK, rows=(replace(sweep_row(1, 2.0), key="k"),))
    MlflowLog("http://box").log(report, out)
    assert not Client.last.artifacts
