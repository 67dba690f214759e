"""The rows of the capture methods as data: whether each is tried, and how it ended."""

from __future__ import annotations

from ace_studio.gui.panels.capture.method_rows import method_rows


def test_rungs_that_are_off_come_last(desk, capture_panel):
    desk.session.choices.set_rungs(["partial", "dynamo"])
    rows = method_rows(desk.document)
    assert [row.name for row in rows] == ["partial", "dynamo", "export", "export-strict", "fx"]
    assert [row.is_on for row in rows] == [True, True, False, False, False]
