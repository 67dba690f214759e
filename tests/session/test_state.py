"""Listeners hear of what changed."""

from __future__ import annotations

from ace_studio.records.messages import (
    LogLine,
)
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session
from tests.session.fake_engine_link import (
    Watcher,
)


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
