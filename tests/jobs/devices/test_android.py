"""Android by adb: a program named adb on the PATH plays the device, and writes down how it was called."""

import os

import pytest

from ace_studio.jobs.devices.android import FOLDER, executor_times, measure_android, onnx_times, tensor_proto
from ace_studio.jobs.devices.measuring import check_device, measure_on
from ace_studio.jobs.devices.order import SentInput
from ace_studio.records.devices import make_device
from ace_studio.records.errors import AceError, ErrorCode
from tests.jobs.devices.runs import finding, result_of, run_of
from tests.other_users import as_root, give_away

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the adb of the tests is a shell script")
PHONE = make_device("phone", "adb:S1")
FAKE = """#!/bin/sh
# {calls}
printf '%s\\n' "$*" >> {calls}
case "$*" in
  *"-x {folder}/onnxruntime_perf_test"*) echo {folder}/onnxruntime_perf_test;;
  *"-x {folder}/executor_runner"*) {executor};;
  *"getprop"*) printf 'g schedutil\\ng walt\\nf 1800000\\nf 2200000\\nt 41000\\nt -1\\nm Pixel (gs201)\\nv 15\\n';;
  *"cat {folder}/work/0/times.csv"*) printf 'm,0.002,1,5,0\\nm,0.004,1,5,1\\nm,0.003,1,5,2\\n';;
  *"cat {folder}/work/1/times.csv"*) printf 'm,0.001,1,5,0\\nm,0.001,1,5,1\\n';;
  *"executor_runner --model"*) printf 'I 0:1 Iteration 1 of 2: 5.0 ms\\nI Iteration 2 of 2: 7.0 ms\\n'
     echo 'Model executed successfully 2 time(s) in 12.0 ms.';;
esac
"""


@pytest.fixture
def adb(tmp_path, monkeypatch):
    """Makes the program; returns its calls when it is asked."""
    calls = tmp_path / "calls"
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def make(script=FAKE, executor="true"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / "adb"
        program.write_text(script.format(calls=calls, folder=FOLDER, executor=executor))
        program.chmod(0o755)
        return lambda: calls.read_text().splitlines()

    return make


@pytest.fixture
def out(tmp_path):
    for name in ("a.onnx", "b.onnx", "c.pte", "d.xml"):
        (tmp_path / name).write_bytes(b"artifact")
    return tmp_path


def test_onnx_artifacts_are_measured_in_turns_by_the_runtimes_own_program(adb, out):
    calls, told = adb(), []
    runs = (run_of(artifact="a.onnx"), run_of(precision="int8-static", artifact="b.onnx"))
    measured = measure_on(PHONE, result_of(*runs, inputs=(finding(sizes=(1, 4)),)), out, tell=told.append)
    assert not measured.problems and measured.figures[0].latency_ms.p50 == 3.0
    assert measured.figures[0].latency_ms.n == 9 and measured.figures[1].latency_ms.p50 == 1.0
    figure = measured.figures[0]
    assert (figure.machine, figure.governor, figure.frequency_mhz) == ("Pixel (gs201)", "schedutil/walt", 2000.0)
    assert (figure.temperature_c, figure.runtime, figure.note) == (41.0, "onnxruntime_perf_test", "")
    assert figure.session == measured.figures[1].session and figure.latency_ms.cpu_p50 is None
    pushed = [call for call in calls() if " push " in call]
    assert len(pushed) == 4 and all(call.startswith("-s S1 push ") for call in pushed)
    assert pushed[1].endswith(f"{FOLDER}/work/0/test_data_set_0/input_0.pb")
    run = [call for call in calls() if "-m times" in call]
    assert len(run) == 6 and "-x 1 -y 1 -o 99 a.onnx times.csv" in run[0] and "b.onnx" in run[1]
    assert f"shell rm -rf {FOLDER}/work" in calls()[-2]


def test_executorch_programs_run_in_executor_runner(adb, out):
    calls = adb(executor=f"echo {FOLDER}/executor_runner")
    measured = measure_on(PHONE, result_of(run_of("executorch", artifact="c.pte")), out)
    assert measured.figures[0].latency_ms.p50 == 6.0 and measured.figures[0].runtime == "executor_runner"
    (run,) = [call for call in calls() if "executor_runner --model" in call]
    assert "--model_path=c.pte --inputs=inputs/input_0.bin --num_executions=10 --cpu_threads=1" in run


def test_a_program_that_is_missing_and_a_runtime_without_one_are_told_apart(adb, out):
    calls = adb()
    runs = (run_of("executorch", artifact="c.pte"), run_of("openvino", artifact="d.xml"))
    problems = measure_on(PHONE, result_of(*runs), out).problems
    assert problems[0].code is ErrorCode.NOT_INSTALLED and f"adb push executor_runner {FOLDER}/" in problems[0].remedy
    assert problems[1].code is ErrorCode.UNSUPPORTED and "for onnxruntime or executorch" in problems[1].remedy
    assert not [call for call in calls() if " push " in call]


def test_a_check_says_what_is_there(adb):
    adb()
    found = check_device(PHONE)
    assert found.runtimes == {"onnxruntime": f"{FOLDER}/onnxruntime_perf_test"} and found.version == "Android 15"
    assert "executor_runner" in found.missing["executorch"] and found.machine == "Pixel (gs201)"


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("adb: device 'S1' not found", "cannot be reached"),
        ("error: device unauthorized.", "cannot be reached"),
        ("adb: no devices/emulators found", "cannot be reached"),
        ("Segmentation fault", "A command on 'phone' failed"),
    ],
)
def test_a_device_that_does_not_answer_says_why(adb, out, said, what):
    adb(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    with pytest.raises(AceError) as caught:
        measure_on(PHONE, result_of(run_of(artifact="a.onnx")), out)
    assert what in caught.value.problem.what and caught.value.problem.why == said


def test_no_adb_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AceError, match="There is no adb"):
        check_device(PHONE)


def test_a_program_that_tells_no_times_is_a_problem(adb, out):
    adb(FAKE.replace("m,0.002,1,5,0\\nm,0.004,1,5,1\\nm,0.003,1,5,2", "nothing"))
    (problem,) = measure_on(PHONE, result_of(run_of(artifact="a.onnx")), out).problems.values()
    assert problem.what == "onnxruntime_perf_test told no times"


def test_inputs_are_the_tensors_that_onnx_reads():
    onnx = pytest.importorskip("onnx")
    numpy = pytest.importorskip("numpy")
    given = SentInput(dtype="int64", shape=(2, 300), order=(), content=numpy.arange(600).tobytes())
    read = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(tensor_proto(given)))
    assert (read == numpy.arange(600).reshape(2, 300)).all()


def test_times_are_read_as_the_programs_print_them():
    assert onnx_times("a,b,0.5,1,2,0\n\nMin Latency is 1sec\n") == [500.0]
    old = "Model executed successfully 4 time(s) in 10.0 ms."
    assert executor_times(old) == [2.5] and executor_times("nothing") == []
    assert executor_times("Iteration 1 of 1: 9.0 ms\n" + "Iteration 1 of 1: 3.0 ms\n" + old.replace("4", "1")) == [3.0]


def test_what_a_strangers_folder_links_to_is_not_pushed(adb, out, tmp_path_factory):
    calls, diary = adb(), tmp_path_factory.mktemp("home") / "diary"
    diary.write_text("canary")
    (out / "a.onnx.data").symlink_to(diary)
    measured = measure_on(PHONE, result_of(run_of(artifact="a.onnx")), out)
    assert measured.problems[0].code is ErrorCode.BAD_FILE and str(diary) in measured.problems[0].why
    assert not (out / "calls").exists() or not any("push" in one for one in calls())


def test_an_artifact_that_is_swapped_after_it_was_hashed_is_not_sent(adb, out, monkeypatch):
    calls = adb()

    def swap_and_measure(*given, **more):
        (out / "a.onnx").write_bytes(b"swapped")
        measure_android(*given, **more)

    monkeypatch.setattr("ace_studio.jobs.devices.measuring.measure_android", swap_and_measure)
    measured = measure_on(PHONE, result_of(run_of(artifact="a.onnx"), inputs=(finding(sizes=(1, 4)),)), out)
    assert measured.problems[0].code is ErrorCode.BAD_FILE and not measured.figures
    assert not [line for line in calls() if " push " in line and "input_" not in line]


@as_root
def test_a_lock_of_another_user_is_refused_with_a_reason(adb, out, cache):
    adb()
    cache.parent.mkdir(parents=True)
    give_away(cache.parent)
    with pytest.raises(AceError) as caught:
        measure_on(PHONE, result_of(run_of(artifact="a.onnx"), inputs=(finding(sizes=(1, 4)),)), out)
    assert caught.value.problem.code is ErrorCode.SYSTEM and "another user" in caught.value.problem.why
