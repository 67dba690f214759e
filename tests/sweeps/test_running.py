import csv
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import dask
import msgspec
import pytest
from distributed import Client
from distributed.security import Security

from ace_studio.jobs.cores import BYTES_PER_JOB
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.sending import Word
from ace_studio.records.sweep_file import read_jobs
from ace_studio.records.sweeps import RowStatus, SweepOptions, SweepRow, SweepStatus
from ace_studio.session.kept.history import History
from ace_studio.sweeps import cluster as cluster_module
from ace_studio.sweeps.running import JobAdvanced, SweepAdvanced, _Running, run_sweep
from tests.sweeps.dask_cluster import Cluster
from tests.sweeps.fake_jobs import LOG_VARIABLE

pytestmark = pytest.mark.usefixtures("fake_jobs")

PROXY = Path(__file__).with_name("cut_proxy.py")

PROGRAM = """
import signal
import sys
from pathlib import Path
from ace_studio.records.sweep_file import read_jobs
from ace_studio.records.sweeps import SweepOptions
from ace_studio.sweeps.running import run_sweep

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so do children
    path, out = sys.argv[1:]
    print(run_sweep(read_jobs([Path(path)]), Path(out), SweepOptions(trust=True, workers=1)).status)
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log.txt"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    return path


def written(folder, *, axes="", rounds=(1,), entry="ok"):
    """A folder with one recipe per number of rounds, and a sweep of them."""
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text("")
    names = []
    for count in rounds:
        names.append(f"r{count}.toml")
        word = entry if isinstance(entry, str) else entry(count)
        text = f'format = 1\n[model]\nsource = "model.py"\nentry = "{word}"\n[measure]\nrounds = {count}\n'
        (folder / names[-1]).write_text(text)
    (folder / "sweep.toml").write_text(f"format = 1\nrecipes = {json.dumps(names)}\n[axes]\n{axes}\n")
    return folder / "sweep.toml"


def lines(log, what):
    return [line.split()[1] for line in log.read_text().splitlines() if line.startswith(what)]


def run(path, out, on_event=lambda _event: None, **options):
    return run_sweep(read_jobs([path]), out, SweepOptions(trust=True, **options), on_event)


@pytest.mark.slow
def test_every_combination_has_a_row_with_its_figures_files_and_history(tmp_path, log):
    seen = []
    path = written(tmp_path / "in", axes='plan = ["fp32", "int8-static"]\nthreads = [1, 2]')
    report = run(path, tmp_path / "out", on_event=seen.append)
    assert report.status is SweepStatus.OK
    assert [row.axes for row in report.rows] == [
        {"plan": plan, "threads": threads} for plan in ("fp32", "int8-static") for threads in (1, 2)
    ]
    assert [row.latency_ms for row in report.rows] == [2.0, 1.0, 2.0, 1.0]
    assert [row.on_front for row in report.rows] == [False, True, False, True]
    assert all((tmp_path / "out" / row.artifact).read_bytes() == b"artifact" for row in report.rows)
    assert [History.open_default().get(row.run).result.runs[0].metric for row in report.rows] == [0.9, 0.9, 0.89, 0.89]
    steps = [event for event in seen if isinstance(event, SweepAdvanced)]
    assert [step.done for step in steps] == [0, 1, 2, 3, 4]
    assert any(isinstance(event, JobAdvanced) for event in seen)
    with (tmp_path / "out" / "sweep.csv").open(newline="") as file:
        assert [row["axis.threads"] for row in csv.DictReader(file)] == ["1", "2", "1", "2"]


@pytest.mark.slow
def test_what_is_done_stays_and_only_another_recipe_or_code_runs_again(tmp_path, log):
    path = written(tmp_path / "in", rounds=(1, 2, 3), entry=lambda count: "fail" if count == 2 else "ok")
    first = run(path, tmp_path / "out")
    assert [row.status for row in first.rows] == [RowStatus.DONE, RowStatus.FAILED, RowStatus.DONE]
    assert first.rows[1].error.code is ErrorCode.NOT_CAPTURED
    written(tmp_path / "in", rounds=(1, 2, 3, 4))
    (tmp_path / "in" / "notes.md").write_text("of no job")
    log.unlink()
    second = run(path, tmp_path / "out")
    assert second.status is SweepStatus.OK
    assert sorted(lines(log, "end")) == ["2", "4"]
    assert [second.rows[at].run for at in (0, 2)] == [first.rows[at].run for at in (0, 2)]
    (tmp_path / "in" / "model.py").write_text("a = 1")
    log.unlink()
    run(path, tmp_path / "out")
    assert sorted(lines(log, "end")) == ["1", "2", "3", "4"]


@pytest.mark.slow
def test_a_job_that_crashes_its_engine_ends_alone(tmp_path, log):
    path = written(tmp_path / "in", rounds=range(1, 7), entry=lambda count: "crash" if count == 2 else "ok")
    report = run(path, tmp_path / "out")
    statuses = {row.recipe: row.status for row in report.rows}
    assert statuses.pop("r2.toml") is RowStatus.FAILED
    assert set(statuses.values()) == {RowStatus.DONE}
    assert report.rows[1].error.code is ErrorCode.CRASH
    assert report.status is SweepStatus.INCOMPLETE


def test_rows_that_are_the_same_run_are_run_once(tmp_path, log):
    path = written(tmp_path / "in", axes='threads = [1]\ntarget = ["auto", ["auto"]]')
    report = run(path, tmp_path / "out")
    assert [row.axes["target"] for row in report.rows] == ["auto", '["auto"]']
    assert [row.status for row in report.rows] == [RowStatus.DONE, RowStatus.DONE]
    assert lines(log, "end") == ["30"] or len(lines(log, "end")) == 1


def test_a_sweep_writes_through_no_link_that_somebody_planted(tmp_path, log):
    path, out, home = written(tmp_path / "in"), tmp_path / "out", tmp_path / "home"
    out.mkdir()
    home.mkdir()
    names = ("sweep.json", "sweep.csv", "sweep.html", "sweep.parquet")
    for name in names:
        (home / name).write_text("mine")
        (out / name).symlink_to(home / name)
    (out / "jobs").symlink_to(home)
    with pytest.raises(AceError, match="cannot be written"):
        run(path, out)
    assert {one.name: one.read_text() for one in home.iterdir()} == dict.fromkeys(names, "mine")
    (out / "jobs").unlink()
    (out / "jobs").mkdir()
    key = _Running(read_jobs([path]), tmp_path / "other", SweepOptions(trust=True), print)
    (tmp_path / "other").mkdir()
    key.prepare()
    (out / "jobs" / key._folder("1").name).symlink_to(home)
    with pytest.raises(AceError, match="cannot be written"):
        run(path, out)
    assert {one.name: one.read_text() for one in home.iterdir()} == dict.fromkeys(names, "mine")
    assert not (out / "sweep.json").is_symlink()


def test_a_scheduler_that_does_not_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_S", 1.0)
    with pytest.raises(AceError, match="No Dask scheduler answers"):
        run(written(tmp_path / "in"), tmp_path / "out", scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize("scheduler", ["box", "tcp://box", "carrier-pigeon://box:8786"])
def test_a_word_that_is_no_address_is_refused_before_anything_looks_for_it(tmp_path, monkeypatch, scheduler):
    monkeypatch.setattr(cluster_module, "Client", None)
    with pytest.raises(AceError, match=f"No Dask scheduler answers at {scheduler}"):
        run(written(tmp_path / "in"), tmp_path / "out", scheduler=scheduler)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_the_next_call_goes_on(tmp_path, log):
    path = written(tmp_path / "in", rounds=range(1, 5), entry=lambda count: "ok" if count < 3 else "tenths_40")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(path), str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while "start 3" not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0].strip() == "cancelled"
    kept = json.loads((tmp_path / "out" / "sweep.json").read_bytes())
    assert [row["status"] for row in kept["rows"]] == ["done", "done", "cancelled", "cancelled"]
    report = run(path, tmp_path / "out")
    assert report.status is SweepStatus.OK
    assert sorted(lines(log, "end")) == ["1", "2", "3", "4"]


@pytest.mark.slow
def test_a_killed_worker_and_a_cut_connection_lose_no_job_and_report_none_twice(tmp_path, log, cluster):
    worker = cluster.processes[1]
    command = [sys.executable, str(PROXY), str(cluster.port)]
    proxy, done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True), []
    port = int(proxy.stdout.readline())

    def disturb(event):
        if isinstance(event, SweepAdvanced) and event.row is not None:
            done.append(event.row.job)
            if len(done) == 4:
                worker.kill()
            if len(done) == 12:
                proxy.send_signal(signal.SIGUSR1)

    path = written(tmp_path / "in", rounds=range(1, 25), entry="tenths_2")
    try:
        report = run(path, tmp_path / "out", scheduler=f"tcp://127.0.0.1:{port}", on_event=disturb)
    finally:
        proxy.kill()
        proxy.communicate()
    assert [row.status for row in report.rows] == [RowStatus.DONE] * 24
    assert sorted(done) == [f"{number:02}" for number in range(1, 25)]
    ended = list(map(int, lines(log, "end")))
    assert set(ended) == set(range(1, 25))
    assert len(ended) <= 25  # a job whose result was still on the killed worker runs again
    assert len({row.run for row in report.rows}) == 24
    assert all((tmp_path / "out" / row.artifact).read_bytes() == b"artifact" for row in report.rows)


@pytest.mark.slow
def test_only_files_of_the_job_travel_and_their_hash_is_checked(tmp_path, log, cluster):
    path = written(tmp_path / "in", entry="memory")
    (tmp_path / "in" / "data.txt").write_text("numbers")
    report = run(path, tmp_path / "out", scheduler=cluster.address)
    assert [row.status for row in report.rows] == [RowStatus.DONE]
    assert not (tmp_path / "in" / "read").exists()
    (tmp_path / "in" / "data.txt").unlink()
    written(tmp_path / "in", entry="memory", rounds=(2,))
    report = run(path, tmp_path / "out", scheduler=cluster.address)
    assert [row.status for row in report.rows] == [RowStatus.FAILED]


@pytest.mark.slow
def test_a_job_for_a_gpu_does_not_wait_for_one_that_is_not_there(tmp_path, log, cluster):
    path = written(tmp_path / "in", axes='device = ["cpu", "cuda"]')
    report = run(path, tmp_path / "out", scheduler=cluster.address)
    assert [row.status for row in report.rows] == [RowStatus.DONE, RowStatus.FAILED]
    assert "GPU" in report.rows[1].error.what


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.0, pytest.param(4.0, marks=pytest.mark.full)])
def test_a_job_that_kills_its_workers_is_tried_elsewhere_once_whatever_the_scheduler_allows(
    tmp_path, log, cluster, delay_s
):
    """After the delay both workers are gone, and with them all files of the jobs and all answers not taken yet."""
    later = threading.Timer(delay_s, lambda: [cluster.start_worker(name) for name in ("three", "four")])
    later.start()
    path = written(tmp_path / "in", rounds=range(1, 6), entry=lambda count: "kill_worker" if count == 2 else "ok")
    report = run(path, tmp_path / "out", scheduler=cluster.address)
    later.join()
    assert [row.status for row in report.rows] == [RowStatus.DONE, RowStatus.LOST, *[RowStatus.DONE] * 3]
    assert lines(log, "start").count("2") == 2
    assert "so did a second one" in report.rows[1].error.what


REMOTE = PROGRAM.replace("path, out =", "path, out, scheduler =").replace("workers=1", "scheduler=scheduler")


@pytest.mark.slow
def test_a_call_after_a_killed_one_takes_up_the_jobs_that_went_on(tmp_path, log, cluster):
    path = written(tmp_path / "in", rounds=range(1, 5), entry="tenths_15")
    (tmp_path / "program.py").write_text(REMOTE)
    command = [sys.executable, str(tmp_path / "program.py"), str(path), str(tmp_path / "out"), cluster.address]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while "end" not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert json.loads((tmp_path / "out" / "sweep.json").read_bytes())["status"] == "running"
    written(tmp_path / "in", rounds=range(1, 5), entry="tenths_15", axes="threads = [2, 1]")  # the numbers change
    report = run(path, tmp_path / "out", scheduler=cluster.address)
    assert report.status is SweepStatus.OK
    assert not (tmp_path / "out" / "jobs" / "topic.txt").exists()
    assert sorted(lines(log, "end")) == sorted([*"1234", *"1234"])  # 4 with 2 threads, and each of the others once
    with Client(cluster.address) as client:
        assert client.list_datasets() == ()


@pytest.mark.slow
def test_a_scheduler_that_comes_back_gets_what_is_left(tmp_path, log, cluster, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_S", 3.0)
    path = written(tmp_path / "in", rounds=range(1, 5), entry="tenths_5")
    seen = []

    def disturb(event):
        if isinstance(event, SweepAdvanced):
            seen.append((event.row is not None, event.is_lost))
            if seen.count((True, False)) == 1 and event.row is not None:
                cluster.end()
            if event.is_lost:
                cluster.start_scheduler()
                cluster.start_worker("three")

    report = run(path, tmp_path / "out", scheduler=cluster.address, on_event=disturb)
    assert report.status is SweepStatus.OK
    assert (False, True) in seen


@pytest.mark.slow
def test_a_sweep_whose_scheduler_stays_away_writes_what_it_has_and_says_so(tmp_path, log, cluster, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_S", 3.0)
    monkeypatch.setattr(cluster_module, "RECONNECT_S", 1.0)
    path = written(tmp_path / "in", rounds=range(1, 5), entry="tenths_5")

    def disturb(event):
        if isinstance(event, SweepAdvanced) and event.row is not None:
            cluster.end()

    with pytest.raises(AceError, match="No Dask scheduler answers"):
        run(path, tmp_path / "out", scheduler=cluster.address, on_event=disturb)
    kept = json.loads((tmp_path / "out" / "sweep.json").read_bytes())
    assert kept["status"] == "incomplete"
    assert {row["status"] for row in kept["rows"]} == {"done", "waiting"}
    assert (tmp_path / "out" / "sweep.html").exists()
    assert (tmp_path / "out" / "jobs" / "topic.txt").exists()  # for the next call


@pytest.mark.slow
def test_a_search_for_the_scheduler_ends_at_ctrl_c(tmp_path, log, cluster, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_S", 3.0)
    path = written(tmp_path / "in", rounds=range(1, 5), entry="tenths_5")

    def disturb(event):
        if isinstance(event, SweepAdvanced) and event.row is not None:
            cluster.end()
        if isinstance(event, SweepAdvanced) and event.is_lost:
            raise KeyboardInterrupt

    report = run(path, tmp_path / "out", scheduler=cluster.address, on_event=disturb)
    assert report.status is SweepStatus.CANCELLED
    assert {row.status for row in report.rows} == {RowStatus.DONE, RowStatus.CANCELLED}


def test_a_job_asks_for_the_memory_that_earlier_runs_of_its_model_say_where_workers_offer_it(tmp_path):
    jobs = read_jobs([written(tmp_path / "in")])
    sweep = _Running(jobs, tmp_path, SweepOptions(scheduler="tcp://HOST:8786"), print)

    def asked(offered, peak=None):
        sweep._peaks = lambda folder, source: peak
        cluster = SimpleNamespace(resource=lambda name: offered.get(name, 0.0))
        return sweep._resources(jobs[0].job, cluster)

    assert asked({}) == {}
    assert asked({"memory": 16e9, "timing": 1.0}) == {"memory": BYTES_PER_JOB, "timing": 1.0}
    assert asked({"memory": 16e9}, peak=1_000_000_000)["memory"] > 1e9 + BYTES_PER_JOB
    assert asked({"memory": 16e9}, peak=10**12) == {"memory": 16e9}


@pytest.mark.slow
def test_a_scheduler_with_tls_is_used_with_the_certificates_of_dasks_configuration(tmp_path, log):
    security = Security.temporary()
    files = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, content in files.items():
        (tmp_path / f"{name}.pem").write_text(content)
    ca, cert, key = (str(tmp_path / f"{name}.pem") for name in files)
    files = {"ca-file": ca} | {f"{role}.{kind}": one for role in ("client", "scheduler", "worker")
                               for kind, one in (("cert", cert), ("key", key))}  # fmt: skip
    cluster = Cluster(tmp_path, "tls", "--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key)
    path = written(tmp_path / "in")
    try:
        with dask.config.set({f"distributed.comm.tls.{name}": one for name, one in files.items()}):
            report = run(path, tmp_path / "out", scheduler=cluster.address)
    finally:
        cluster.end()
    assert report.status is SweepStatus.OK
    assert cluster.address.startswith("tls://")


@pytest.mark.parametrize(
    ("more", "files", "what"),
    [
        ('weights = "../diary.txt"', "", "diary.txt lies outside of the recipe's folder"),
        ('weights = "link.pt"', "", "diary.txt lies outside of the recipe's folder"),
        ('weights = "../.ssh/id_rsa"', "", "id_rsa is not sent to"),
        ("", "../*.txt", "diary.txt lies outside of the recipe's folder"),
        ("", "../.ssh/*", "id_rsa is not sent to"),
        ('[engine]\nhost = "eve@far"', "", "Files would be sent to eve@far"),
    ],
)
def test_a_scheduler_gets_nothing_that_the_user_did_not_name(more, files, what, tmp_path):
    path = written(tmp_path / "in")
    (tmp_path / ".ssh").mkdir()
    for name in ("diary.txt", ".ssh/id_rsa"):
        (tmp_path / name).write_text("canary")
    (tmp_path / "in" / "link.pt").symlink_to(tmp_path / "diary.txt")
    recipe = tmp_path / "in" / "r1.toml"
    recipe.write_text(recipe.read_text().replace('entry = "ok"', f'entry = "ok"\n{more}'))
    path.write_text(path.read_text().replace("[axes]", f"files = {json.dumps([files] if files else [])}\n[axes]"))
    with pytest.raises(AceError) as caught:
        run(path, tmp_path / "out", scheduler="tcp://127.0.0.1:1")
    assert caught.value.problem.code is ErrorCode.UNTRUSTED and caught.value.problem.what.startswith(what)
    word = Word(hosts=("eve@far",), files=(str(tmp_path / "diary.txt"), str(tmp_path / ".ssh" / "id_rsa")))
    sweep = _Running(read_jobs([path]), tmp_path / "out", SweepOptions(scheduler="tcp://box:1", word=word), print)
    sweep.prepare()


def test_links_and_secrets_that_nobody_named_do_not_travel_to_a_scheduler(tmp_path):
    path = written(tmp_path / "in")
    (tmp_path / "diary.txt").write_text("canary")
    (tmp_path / "in" / "link.txt").symlink_to(tmp_path / "diary.txt")
    (tmp_path / "in" / "server.pem").write_text("canary")
    (tmp_path / "out").mkdir()
    sweep = _Running(read_jobs([path]), tmp_path / "out", SweepOptions(scheduler="tcp://box:1"), print)
    sweep.prepare()
    _, files = sweep._packed("1", "topic")
    assert {one.name.name for one in files.values()} == {"model.py", "r1.toml", "sweep.toml"}


def test_a_row_that_lies_in_the_folder_says_nothing_of_where_others_are(tmp_path):
    path = written(tmp_path / "in")
    jobs = read_jobs([path])
    (tmp_path / "out").mkdir()
    sweep = _Running(jobs, tmp_path / "out", SweepOptions(), print)
    sweep.prepare()
    folder = sweep._folder("1")
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("{}")
    row = SweepRow(
        job="1", recipe="r1.toml", axes={}, status=RowStatus.DONE, key=sweep._rows["1"].key, folder="../../x"
    )
    (folder / "row.json").write_bytes(msgspec.json.encode(row))
    again = _Running(jobs, tmp_path / "out", SweepOptions(), print)
    again.prepare()
    assert again._rows["1"].folder == folder.relative_to(tmp_path / "out").as_posix()


@pytest.mark.parametrize("planted", [b"ace-studio", b"", b"\xff", b"ace-studio-0123456789ab\n"])
def test_a_topic_that_no_sweep_wrote_is_not_taken(tmp_path, planted):
    path = written(tmp_path / "in")
    (tmp_path / "out" / "jobs").mkdir(parents=True)
    (tmp_path / "out" / "jobs" / "topic.txt").write_bytes(planted)
    sweep = _Running(read_jobs([path]), tmp_path / "out", SweepOptions(scheduler="tcp://box:1"), print)
    topic = sweep._topic()  # a shorter one would stand for the jobs of every sweep, which would be cancelled
    assert topic.encode() != planted and sweep._topic() == topic
