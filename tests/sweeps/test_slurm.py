"""With a stand-in for dask-jobqueue, which the tests do not install."""

import importlib.util
import json
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType

import dask
import pytest
from distributed import LocalCluster

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.sweep_file import read_jobs
from ace_studio.records.sweeps import RowStatus, SweepOptions
from ace_studio.sweeps.running import run_sweep
from ace_studio.sweeps.slurm import slurm_cluster, slurm_workers

pytestmark = pytest.mark.usefixtures("fake_jobs")


@pytest.fixture
def jobqueue(monkeypatch):
    """The arguments of each cluster that was made; `make` makes it."""
    made = ModuleType("dask_jobqueue")
    made.asked, made.make = [], nullcontext

    @contextmanager
    def cluster(**arguments):
        made.asked.append(arguments)
        with made.make(arguments) as found:
            yield found

    made.SLURMCluster = cluster
    monkeypatch.setitem(sys.modules, "dask_jobqueue", made)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name == "dask_jobqueue" else find(name))
    return made


def test_an_address_of_slurm_says_how_many_workers():
    assert slurm_workers("slurm:8") == 8
    assert slurm_workers("tcp://box:8786") == 0
    for wrong in ("slurm:", "slurm:0", "slurm:many"):
        with pytest.raises(AceError, match="how many"):
            slurm_workers(wrong)


def test_each_worker_measures_alone_and_the_key_is_the_users_only_and_goes_with_the_cluster(jobqueue, tmp_path):
    with slurm_cluster(3, tmp_path):
        (asked,) = jobqueue.asked
        assert asked["n_workers"] == 3 and asked["python"] == f"{sys.executable} -P"
        assert asked["worker_extra_args"] == ["--nthreads", "1", "--resources", '"timing=1"']
        security = asked["security"].get_tls_config_for_role("worker")
        key = Path(security["key"])
        assert key.stat().st_mode & 0o077 == 0
        assert key.is_relative_to(tmp_path)
        assert dask.config.get("distributed.scheduler.allowed-failures") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_queue_with_gpus_gives_workers_that_have_one(jobqueue, tmp_path):
    with dask.config.set({"jobqueue.slurm.job_extra_directives": ["--gres=gpu:1"]}), slurm_cluster(1, tmp_path):
        assert jobqueue.asked[0]["worker_extra_args"][-1] == '"timing=1 GPU=1"'


def test_what_the_configuration_lacks_is_told_with_its_place(jobqueue, tmp_path):
    def refuse(arguments):
        raise ValueError("You must specify how much cores to use per job")

    jobqueue.make = refuse
    with pytest.raises(AceError, match="how much cores") as caught, slurm_cluster(1, tmp_path):
        pass
    assert "jobqueue.slurm" in caught.value.problem.remedy


def test_without_dask_jobqueue_the_line_that_installs_it_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AceError) as caught, slurm_cluster(1, tmp_path):
        pass
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED


@pytest.mark.slow
def test_jobs_go_to_the_workers_of_slurm_with_their_files_and_come_back(jobqueue, tmp_path):
    (tmp_path / "model.py").write_text("")
    (tmp_path / "a.toml").write_text('format = 1\n[model]\nsource = "model.py"\nentry = "ok"\n')
    (tmp_path / "s.toml").write_text(
        f"format = 1\nrecipes = {json.dumps(['a.toml'])}\n[axes]\nthreads = [1, 2]\ndevice = ['cpu', 'cuda']\n"
    )
    jobqueue.make = lambda arguments: LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", resources={"timing": 1},
        security=arguments["security"], protocol="tls://",
    )  # fmt: skip
    report = run_sweep(
        read_jobs([tmp_path / "s.toml"]), tmp_path / "out", SweepOptions(scheduler="slurm:2", trust=True)
    )
    found = {(row.axes["threads"], row.axes["device"]): row for row in report.rows}
    assert [found[threads, "cpu"].status for threads in (1, 2)] == [RowStatus.DONE] * 2
    assert (tmp_path / "out" / found[1, "cpu"].artifact).read_bytes() == b"artifact"
    assert "no worker of the cluster offers one" in found[1, "cuda"].error.what
