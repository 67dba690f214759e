"""How long each phase of a job takes, and what the same job of this model took the last time."""

from __future__ import annotations

from msgspec.structs import replace

from ace_studio.records.messages import Phase, Progress
from ace_studio.session.document import Document
from ace_studio.session.kept.settings import Settings
from ace_studio.session.step_times import StepTimes


def followed(times, clock, job, *, steps=((Phase.LOAD, 1.0), (Phase.CAPTURE, 5.0), (Phase.LOAD, 2.0))):
    document = Document(folder="/here")
    for phase, seconds in steps:
        document = replace(document, steps=times.heard(Progress(job=job, phase=phase), document))
        clock[0] += seconds
    return document


def test_a_phase_that_comes_twice_is_one_step_and_the_next_job_knows_what_to_expect(tmp_path):
    clock = [0.0]
    times = StepTimes(Settings(tmp_path / "s.json"), lambda: clock[0])
    document = followed(times, clock, "run-1")
    assert [step.usual_s for step in document.steps] == [None, None]
    ended = times.ended(document, is_finished=True)
    assert [(step.phase, step.seconds, step.since_s) for step in ended] == [
        (Phase.LOAD, 3.0, None),
        (Phase.CAPTURE, 5.0, None),
    ]
    later = followed(times, clock, "run-2", steps=((Phase.LOAD, 1.0),))
    assert [(step.phase, step.seconds, step.usual_s) for step in later.steps] == [
        (Phase.LOAD, 0.0, 3.0),
        (Phase.CAPTURE, None, 5.0),
    ]


def test_progress_within_a_phase_changes_nothing_and_a_cancelled_job_teaches_nothing(tmp_path):
    clock = [0.0]
    times = StepTimes(Settings(tmp_path / "s.json"), lambda: clock[0])
    document = followed(times, clock, "run-1")
    assert times.heard(Progress(job="run-1", phase=Phase.LOAD, fraction=0.5), document) is document.steps
    times.ended(document, is_finished=False)
    assert [step.usual_s for step in followed(times, clock, "run-2").steps] == [None, None]
