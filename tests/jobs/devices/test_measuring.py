"""Artifacts are measured on this machine and over a real SSH server, and what fails says why."""

import json
import os
import shutil
import statistics
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.jobs.devices.conversation import talk
from ace_studio.jobs.devices.measuring import (
    check_device,
    doubt,
    figure_of,
    latency_of,
    measure_on,
    median_interval,
    percentile,
)
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.devices import HERE, THIS_MACHINE, make_device
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.private_folder import compiled_code_folder, open_lock, timing_lock
from tests.jobs.devices.runs import result_of, run_of, write_run
from tests.jobs.hosts.pretended_ssh import CANARY, needs_posix, pretend_ssh
from tests.jobs.hosts.ssh_host import HOST, needs_ssh
from tests.other_users import as_root, folder_of_everybody, give_away

BOX = make_device("box", HOST, sys.executable)


@pytest.fixture
def run(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    return write_run(tmp_path / "out", "fp32", "int8-static")


@needs_ssh
def test_a_host_measures_what_this_machine_measures(host, run, tmp_path):
    told = []
    there = measure_on(BOX, run, tmp_path / "out", tell=told.append)
    here = measure_on(THIS_MACHINE, run, tmp_path / "out")
    assert not there.problems and not here.problems and set(there.figures) == set(here.figures) == {0, 1}
    for index in (0, 1):
        one, other = there.figures[index], here.figures[index]
        assert one.latency_ms.n >= 5 and one.low <= one.latency_ms.p50 <= one.high
        assert one.machine == other.machine and one.runtime == other.runtime and one.threads == 1
        assert one.device == "box" and other.device == HERE and one.session != other.session
    assert [event["detail"] for event in told if event["detail"].startswith("opening")]


@needs_ssh
@pytest.mark.slow
def test_a_new_host_gives_its_first_figure_within_a_minute_and_it_is_the_local_one(host, run, tmp_path):
    shutil.rmtree(host.home / ".cache" / "ace-studio" / "measure-here", ignore_errors=True)
    ratios = []
    for _ in range(3):
        begin = time.monotonic()
        there = measure_on(BOX, run, tmp_path / "out", indices=(0,)).figures[0]
        assert time.monotonic() - begin < 60
        here = measure_on(THIS_MACHINE, run, tmp_path / "out", indices=(0,)).figures[0]
        ratios.append(there.latency_ms.p50 / here.latency_ms.p50)
        if 0.5 < ratios[-1] < 2:
            break
    # One clock, one artifact, one program. The best of three pairs: other work disturbs some of them.
    assert min(max(ratio, 1 / ratio) for ratio in ratios) < 2


@needs_ssh
def test_only_artifacts_and_inputs_travel_and_only_once(host, run, tmp_path):
    (tmp_path / "out" / "model.py").write_text("the model's own code")
    (tmp_path / "out" / "artifacts" / "00-onnxruntime-fp32" / "notes.txt").write_text("not an artifact")
    first, second = [], []
    there = host.home / ".cache" / "ace-studio" / "measure-here"
    shutil.rmtree(there, ignore_errors=True)
    measure_on(BOX, run, tmp_path / "out", indices=(0,), tell=first.append)
    assert len(list(there.iterdir())) == 2  # one artifact, one input
    assert not [one for one in there.iterdir() if b"own code" in one.read_bytes() or b"not an" in one.read_bytes()]
    measure_on(BOX, run, tmp_path / "out", indices=(0,), tell=second.append)
    sent = [[one for one in told if one["detail"].startswith("sending")] for told in (first, second)]
    assert sent[0] and not sent[1]


def test_a_runtime_that_is_missing_comes_with_the_line_that_installs_it(run, tmp_path):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without the packages of its environment
    bare.chmod(0o755)
    found = replace(run, environment=run.environment | {"onnxruntime": "1.20.1"})
    measured = measure_on(make_device("bare", HERE, str(bare)), found, tmp_path / "out", indices=(0,))
    (problem,) = measured.problems.values()
    assert not measured.figures and problem.code is ErrorCode.NOT_INSTALLED
    assert "onnxruntime" in problem.what and "-m pip install onnxruntime==1.20.1 numpy" in problem.remedy


def test_an_artifact_that_does_not_open_leaves_the_others(run, tmp_path):
    (tmp_path / "out" / str(run.runs[0].artifact)).write_bytes(b"not a model")
    measured = measure_on(THIS_MACHINE, run, tmp_path / "out")
    assert set(measured.figures) == {1} and measured.problems[0].code is ErrorCode.UNSUPPORTED
    assert "does not run the artifact" in measured.problems[0].what and measured.problems[0].why


def test_artifacts_that_open_nowhere_else_are_refused_before_anything_is_sent(tmp_path):
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "m.engine").write_bytes(b"x")
    (tmp_path / "artifacts" / "pieces.json").write_bytes(b"{}")
    runs = (run_of("tensorrt", artifact="artifacts/m.engine"), run_of("onnxruntime", artifact="artifacts"))
    measured = measure_on(BOX, result_of(*runs), tmp_path)
    assert "like it" in measured.problems[0].why and "never sent" in measured.problems[1].why
    built_for_cuda = result_of(runs[1], device="cuda:0")
    (tmp_path / "artifacts" / "pieces.json").unlink()
    assert "built for cuda:0" in measure_on(BOX, built_for_cuda, tmp_path).problems[0].why
    with pytest.raises(AceError) as caught:
        measure_on(BOX, result_of(run_of()), tmp_path)
    assert caught.value.problem.what == "There is nothing to measure"


def test_a_result_that_names_a_file_elsewhere_sends_nothing(tmp_path):
    secret = tmp_path / "secret.onnx"
    secret.write_text("secret")
    (tmp_path / "out").mkdir()
    measured = measure_on(BOX, result_of(run_of(artifact="../secret.onnx")), tmp_path / "out")
    assert measured.problems[0].code is ErrorCode.BAD_FILE


@needs_ssh
def test_a_host_says_what_it_has_for_measuring(host):
    found = check_device(BOX)
    assert found.version == sys.version.split()[0] and found.machine
    assert set(found.runtimes) | set(found.missing) >= {"onnxruntime", "openvino", "eager", "executorch"}
    assert all("-m pip install" in line for line in found.missing.values())


def test_no_python_there_no_connection_and_a_crash_are_told_apart(run, tmp_path, monkeypatch):
    monkeypatch.setenv(SSH_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(AceError) as caught:
        check_device(BOX)
    assert caught.value.problem.what == "There is no ssh on this machine"
    with pytest.raises(AceError) as caught:
        check_device(make_device("local", HERE, str(tmp_path / "none")))
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED and "'local'" in caught.value.problem.what
    crashing = tmp_path / "crashing"
    crashing.write_text("#!/bin/sh\necho 'Segmentation fault' >&2\nexit 139\n")
    crashing.chmod(0o755)
    with pytest.raises(AceError) as caught:
        measure_on(make_device("crash", HERE, str(crashing)), run, tmp_path / "out")
    problem = caught.value.problem
    assert problem.code is ErrorCode.CRASH and problem.why == "Segmentation fault (exit code 139)"


def test_a_measurement_can_be_ended_from_another_thread(run, tmp_path):
    reached = threading.Event()
    process = []

    def tell(event):
        if event["detail"].startswith("round"):
            reached.set()
            process[0].kill()

    with pytest.raises(AceError) as caught:
        measure_on(THIS_MACHINE, run, tmp_path / "out", tell=tell, started=process.append)
    assert reached.is_set() and "ended without an answer" in caught.value.problem.what


def test_the_figures_can_be_written(run, tmp_path):
    figure = measure_on(THIS_MACHINE, run, tmp_path / "out", indices=(1,)).figures[1]
    assert json.loads(json.dumps(figure.latency_ms.p50)) > 0 and Path(str(run.runs[1].artifact)).name == "model.onnx"
    assert len(figure.sha256) == 64


@needs_ssh
def test_a_connection_that_ends_also_ends_the_measurement_there(host, run, tmp_path):
    import fcntl
    import tempfile

    recipe = 'format = 1\n[model]\nsource = "m.py"\n[measure]\nrounds = 10000000\n'  # it would go on for 20 s
    process = []

    def tell(event):
        if event["detail"].startswith("round"):
            process[-1].kill()

    before = set(Path(tempfile.gettempdir()).glob("ace-studio-measure-*"))
    with pytest.raises(AceError):
        measure_on(BOX, replace(run, recipe=recipe), tmp_path / "out", tell=tell, started=process.append)
    lock, until = open_lock(host.home / ".local/state/ace-studio" / timing_lock().name), time.monotonic() + 10
    try:
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.02)
        else:
            pytest.fail("it still measures")
    finally:
        os.close(lock)  # else every later measurement of this process's folder would wait for it
    assert not {*Path(tempfile.gettempdir()).glob("ace-studio-measure-*")} - before


@needs_posix
@pytest.mark.parametrize("planted", ["model.onnx.data", "inputs.safetensors", "model.onnx"])
def test_what_a_strangers_folder_links_to_is_sent_to_no_device(planted, tmp_path, monkeypatch):
    ssh, out = pretend_ssh(tmp_path / "far", monkeypatch), tmp_path / "gift"
    (out / "artifacts").mkdir(parents=True)
    (out / "artifacts" / "model.onnx").write_bytes(b"model")
    target, link = tmp_path / "diary", out / "artifacts" / planted
    header = b'{"0.0": {"dtype": "F32", "shape": [7], "data_offsets": [0, 28]}}'
    target.write_bytes(len(header).to_bytes(8, "little") + header + CANARY.ljust(28))
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    result, device = result_of(run_of(artifact="artifacts/model.onnx")), make_device("box", "eve@far", sys.executable)
    with suppress(AceError):
        measured = measure_on(device, result, out)
        if planted == "model.onnx.data":
            assert measured.problems[0].code is ErrorCode.BAD_FILE
    assert CANARY not in ssh.received


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """A runtime that runs the Python in an artifact, as torch does; it is found before the real one."""
    folder = tmp_path / "runtime"
    (folder / "onnxruntime-1.0.dist-info").mkdir(parents=True)
    (folder / "onnxruntime-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: onnxruntime\nVersion: 1.0\n"
    )
    (folder / "onnxruntime.py").write_text(RUNTIME)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


RUNTIME = """
class SessionOptions:
    def add_session_config_entry(self, key, value): pass

class InferenceSession:
    def __init__(self, path, options, providers):
        _, mark, code = open(path, "rb").read().partition(b"#code")
        exec(code)
    def get_inputs(self): return []
    def get_outputs(self): return []
    def run(self, names, feed): pass
"""


def test_an_artifact_that_is_swapped_after_it_was_hashed_does_not_run(run, runtime, tmp_path, monkeypatch):
    canary, artifact = tmp_path / "canary", tmp_path / "out" / str(run.runs[0].artifact)
    payload = f"#code\nopen({str(canary)!r}, 'w').close()\n".encode()

    def swap_and_talk(*given, **more):
        artifact.write_bytes(payload)
        talk(*given, **more)

    monkeypatch.setattr("ace_studio.jobs.devices.measuring.talk", swap_and_talk)
    measured = measure_on(THIS_MACHINE, run, tmp_path / "out")
    assert not canary.exists(), "the swapped artifact ran"
    assert measured.problems[0].code is ErrorCode.BAD_FILE and "changed while" in measured.problems[0].what
    assert set(measured.figures) == {1}


@pytest.mark.skipif(os.name != "posix", reason="flock is POSIX")
def test_nobody_can_hold_a_measurement_up_by_a_lock_in_the_temporary_folder(run, runtime, tmp_path, monkeypatch):
    import fcntl

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    told = []
    with (tmp_path / "ace-studio-measure.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = []

        def tell(event):
            told.append(event["kind"])
            if event["kind"] == "waiting":
                process[0].kill()

        measured = measure_on(THIS_MACHINE, run, tmp_path / "out", tell=tell, started=process.append)
    assert "waiting" not in told and set(measured.figures) == {0, 1}


@as_root
def test_the_compiler_on_a_device_loads_nothing_that_another_user_prepared(run, runtime, tmp_path, monkeypatch):
    temporary = folder_of_everybody(tmp_path / "tmp")
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    prepared = Path(compiled_code_folder(temporary))
    prepared.mkdir()
    give_away(prepared)
    told = tmp_path / "told"
    payload = f"#code\nimport os; open({str(told)!r}, 'w').write(os.environ['TORCHINDUCTOR_CACHE_DIR'])\n"
    (tmp_path / "out" / str(run.runs[0].artifact)).write_text(payload)
    assert measure_on(THIS_MACHINE, run, tmp_path / "out", indices=(0,)).figures
    assert Path(told.read_text()).is_relative_to(tmp_path / "cache")


@as_root
def test_a_cache_that_another_user_prepared_is_refused_with_a_reason(run, tmp_path, cache):
    cache.mkdir(parents=True)
    give_away(cache)
    with pytest.raises(AceError) as caught:
        measure_on(THIS_MACHINE, run, tmp_path / "out")
    problem = caught.value.problem
    assert problem.code is ErrorCode.SYSTEM and "another user" in problem.why and "XDG_CACHE_HOME" in problem.remedy


TIMES = [3.0, 1.0, 2.0, 5.0, 4.0]


def test_percentiles_are_those_of_numpy():
    numpy = pytest.importorskip("numpy")
    for percent in (10, 50, 90, 99):
        assert percentile(TIMES, percent) == pytest.approx(numpy.percentile(TIMES, percent))
    found = latency_of(TIMES, [1.0] * 5)
    assert (found.p50, found.n, found.cpu_p50) == (3.0, 5, 1.0) and latency_of([2.0]).p90 == 2.0


def test_the_interval_of_the_median_holds_it_in_19_of_20_cases():
    import random

    drawn, held = random.Random(1), 0
    for _ in range(400):
        low, high = median_interval([drawn.gauss(10, 1) for _ in range(30)])
        held += low <= 10 <= high
    assert 370 <= held <= 400
    assert median_interval([7.0]) == (7.0, 7.0)


def test_a_busy_or_slower_processor_makes_a_figure_doubtful():
    assert doubt(TIMES, TIMES, 3000, 2900) == ""
    assert "60%" in doubt([1.0] * 10, [0.6] * 10, None, None)
    assert "3000 to 2000 MHz" in doubt(TIMES, TIMES, 3000, 2000)


def test_a_figure_keeps_how_the_device_was():
    states = [
        {"governor": "powersave", "frequency_mhz": mhz, "temperature_c": degrees}
        for mhz, degrees in ((3000, 40), (2900, 55))
    ]
    told = {"wall_ms": TIMES, "cpu_ms": TIMES, "machine": "m", "runtime": "r 1", "before": states[0]}
    figure = figure_of(told | {"after": states[1]}, device="d", session="s", date="t", threads=2, sha256="a")
    assert figure.latency_ms.p50 == statistics.median(TIMES) and figure.governor == "powersave"
    assert (figure.frequency_mhz_before, figure.frequency_mhz) == (3000, 2900)
    assert (figure.temperature_c_before, figure.temperature_c, figure.note) == (40, 55, "")
