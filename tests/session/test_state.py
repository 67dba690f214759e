"""Listeners hear of what changed."""

from threading import Event, Timer

import pytest

from ace_studio.records.messages import LogLine
from ace_studio.records.recipes.recipe import Goal
from ace_studio.session.document import Document, Part
from ace_studio.session.kept import autosave
from ace_studio.session.session import Session
from tests.session.fake_engine_link import Watcher


def test_a_listener_hears_only_of_what_changed_and_can_leave(opened: Session) -> None:
    watcher = Watcher(opened)
    heard: list[Document] = []
    leave = opened.subscribe(lambda document, parts: heard.append(document))
    opened.apply(LogLine(text="hello"))
    assert watcher.taken() == {Part.LOG}
    leave()
    opened.set_setting("theme", "dark")
    assert watcher.taken() == {Part.SETTINGS}
    assert len(heard) == 1
    opened.set_setting("theme", "pink")
    assert Part.PROBLEMS in watcher.taken()


def test_a_change_does_not_wait_for_the_disk_and_closing_does(opened: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    moves, written = Event(), []
    monkeypatch.setattr(autosave, "write_private", lambda path, *_, **__: moves.wait(30) and written.append(path))
    opened.choices.set_goal(Goal(max_drop=0.25))
    assert not written
    Timer(0.05, moves.set).start()
    opened.close()
    assert written


def test_choices_that_cannot_be_stored_are_one_problem_however_many_there_are(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(autosave, "write_private", write)
    for max_drop in (0.1, 0.2, 0.3):
        opened.choices.set_goal(Goal(max_drop=max_drop))
        opened.close()
    (problem,) = opened.document.problems
    assert problem.what == "Unsaved choices could not be stored" and "No space left" in problem.why
