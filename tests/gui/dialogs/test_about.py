"""About: what this is, its version, and what the engine runs on."""

from __future__ import annotations

from ace_studio.gui.dialogs.about import about_text


def test_about_names_the_versions_of_window_and_engine(desk):
    assert "has not reported" in about_text(None)
    desk.traced()
    desk.session.jobs.request_environment()
    assert f"torch {desk.document.environment.versions['torch']}" in about_text(desk.document.environment)
