"""What is being done with each run while a job goes on."""

import pytest

from ace_studio.records.messages import Phase
from ace_studio.records.results import RunStatus, TargetRun
from ace_studio.session.document import Activity, Document, EngineState, JobKind
from ace_studio.session.run_stages import stage_words


def run_of(target, **more):
    return TargetRun(target=target, precision="int8-static", **{"status": RunStatus.OK, **more})


RUNS = (run_of("onnxruntime", build_seconds=1.0), run_of("eager", status=RunStatus.FAILED), run_of("openvino"))


def stages(phase, number, runs=RUNS):
    activity = Activity(state=EngineState.BUSY, verb=JobKind.RUN, phase=phase, run=number)
    return stage_words(Document(runs=runs, run_numbers=(0, 2, 5), activity=activity))


@pytest.mark.parametrize(
    ("phase", "number", "words"),
    [
        (Phase.LOWER, 5, ("", "", "building …")),
        (Phase.CALIBRATE, 5, ("", "", "building …")),
        (Phase.CALIBRATE, None, ("", "", "")),
        (Phase.MEASURE, 0, ("measuring …", "", "")),
        (Phase.MEASURE, None, ("measuring …", "", "measuring …")),
        (Phase.EXPORT, 0, ("saving, verifying …", "", "")),
        (Phase.REPORT, None, ("", "", "")),
    ],
)
def test_the_run_that_the_engine_names_is_the_one_at_work(phase, number, words):
    assert stages(phase, number) == words


def test_of_runs_that_are_alike_the_named_one_is_at_work_until_it_is_verified():
    runs = (run_of("openvino"), run_of("openvino"), run_of("openvino", verified=True))
    assert stages(Phase.VERIFY, 2, runs) == ("", "comparing …", "")
    assert stages(Phase.EXPORT, 5, runs) == ("", "", "")


def test_a_run_that_a_cancelled_job_left_behind_is_unfinished():
    assert stage_words(Document(runs=RUNS)) == ("", "", "unfinished")


def test_a_run_that_cannot_be_run_here_is_not_measured():
    runs = (run_of("eager"), run_of("coreml", not_run="on a Mac only"), run_of("openvino"))
    assert stages(Phase.MEASURE, None, runs) == ("measuring …", "", "measuring …")
    assert stages(Phase.EXPORT, 2, runs) == ("", "saving, verifying …", "")
