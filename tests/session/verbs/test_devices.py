"""The list of devices as the window sees it, and figures that come later than their run."""

import pytest
from msgspec.structs import replace

from ace_studio.records.errors import AceError
from ace_studio.records.messages import JobFinished
from ace_studio.records.results.on_devices import with_figures
from ace_studio.session.session import Session
from tests.records.results.test_on_devices import figure
from tests.session.fake_engine_link import FakeEngineLink, result, target_run


def test_figures_are_shown_with_the_run_that_they_are_of_and_no_other(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output=""))
    shown = opened.document.result
    assert shown is not None
    opened.devices.measured(with_figures(replace(shown, seconds=77.0), {0: figure()}))
    assert opened.document.runs[0].devices == ()
    opened.devices.measured(with_figures(shown, {0: figure()}))
    assert opened.document.runs[0].devices == (figure(),) == opened.document.result.runs[0].devices


def test_the_list_is_kept_and_its_damage_is_told_once(opened: Session) -> None:
    opened.devices.add("box", "user@box", "")
    with pytest.raises(AceError):
        opened.devices.add("box", "user@box", "")
    assert [one.name for one in opened.devices.all()] == ["here", "box"]
    opened.devices.remove("box")
    assert [one.name for one in opened.devices.all()] == ["here"]
    opened.devices._devices._path.write_text("{")
    opened.devices.all()
    opened.devices.all()
    assert len([one for one in opened.document.problems if "list of devices is damaged" in one.what]) == 1
