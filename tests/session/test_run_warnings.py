"""The warnings of a job: those of all its runs, and those of each."""

from msgspec.structs import replace

from ace_studio.records.results import CaptureReport, Warning
from ace_studio.session.comparison.sides import Pin, PinnedSide, comparison_of
from ace_studio.session.document import Document
from ace_studio.session.run_warnings import job_warnings, run_warnings, warnings_by_side
from tests.session.fake_engine_link import result, target_run

HINT = Warning(code="artifact-options", what="needs an option", where="openvino")
BUSY = Warning(code="contention", what="busy")
OWN = Warning(code="dropped", what="slower")


def test_warnings_of_capture_and_result_are_listed_once_and_those_that_name_a_target_are_its_runs_too():
    runs = (replace(target_run("openvino"), warnings=(OWN,)), target_run("onnxruntime"))
    found = replace(result(*runs), warnings=(BUSY, HINT))
    capture = CaptureReport(rung="export", ops=1, seconds=1.0, warnings=(BUSY,))
    document = Document(capture=capture, result=found, runs=runs)
    assert job_warnings(document) == (BUSY, HINT)
    assert run_warnings(document, runs[0]) == (OWN, HINT)
    assert run_warnings(document, runs[1]) == ()


def test_while_a_and_b_are_compared_each_warning_says_whose_it_is():
    first, second = (replace(result(target_run("openvino")), warnings=told) for told in ((BUSY, HINT), (BUSY, OWN)))
    sides = PinnedSide(result=first), PinnedSide(result=second)
    shown = Document(comparison=comparison_of((Pin(name="a"), Pin(name="b")), sides), result=second)
    assert warnings_by_side(shown) == [(BUSY, "A, B"), (HINT, "A"), (OWN, "B")]
    assert warnings_by_side(Document(result=second)) == [(BUSY, ""), (OWN, "")]


def test_a_warning_that_names_an_artifact_is_of_its_run_alone():
    runs = tuple(replace(target_run("openvino"), artifact=f"artifacts/{name}") for name in "ab")
    hint = replace(HINT, where="artifacts/b")
    document = Document(result=replace(result(*runs), warnings=(hint,)), runs=runs)
    assert [run_warnings(document, run) for run in runs] == [(), (hint,)]
