"""What is being done with each run while a job goes on."""

from __future__ import annotations

import pytest

from ace_studio.records.messages import Phase
from ace_studio.records.results import RunStatus, TargetRun
from ace_studio.session.document import Activity, Document, EngineState, JobKind
from ace_studio.session.run_stages import run_stages


def run_of(target, **more):
    return TargetRun(target=target, precision="int8-static", **{"status": RunStatus.OK, **more})


RUNS = (run_of("onnxruntime", build_seconds=1.0), run_of("eager", status=RunStatus.FAILED), run_of("openvino"))


def stages(phase, detail, runs=RUNS):
    activity = Activity(state=EngineState.BUSY, verb=JobKind.RUN, phase=phase, detail=detail)
    return run_stages(Document(runs=runs, activity=activity))


@pytest.mark.parametrize(
    ("phase", "detail", "words"),
    [
        (Phase.LOWER, "openvino int8-static", ("", "", "building …")),
        (Phase.CALIBRATE, "example 2 of 3", ("", "", "building …")),
        (Phase.MEASURE, "onnxruntime int8-static, quickly", ("measuring …", "", "")),
        (Phase.MEASURE, "round 3 of 30", ("measuring …", "", "measuring …")),
        (Phase.EXPORT, "onnxruntime int8-static", ("saving, verifying …", "", "")),
        (Phase.REPORT, "out", ("", "", "")),
    ],
)
def test_the_run_that_the_engine_names_is_the_one_at_work(phase, detail, words):
    assert stages(phase, detail) == words


def test_of_runs_that_are_alike_the_last_one_that_is_not_verified_is_at_work():
    runs = (run_of("openvino"), run_of("openvino"), run_of("openvino", verified=True))
    assert stages(Phase.VERIFY, "openvino int8-static", runs) == ("", "comparing …", "")


def test_a_run_that_a_cancelled_job_left_behind_is_unfinished():
    assert run_stages(Document(runs=RUNS)) == ("", "", "unfinished")
