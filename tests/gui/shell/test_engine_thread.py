"""The link to the engine: which Python serves a project, and what arrives."""

import sys
from threading import Event

import pytest

from ace_studio.gui.shell.app import Studio
from ace_studio.gui.shell.engine_thread import EngineThread
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.launch import default_interpreter
from ace_studio.session.document import EngineState
from ace_studio.session.kept.folders import UserFolders


class SeenClient(WorkerClient):
    """Says which interpreter it serves with."""

    @property
    def interpreter(self) -> str:
        return self._options.interpreter


@pytest.mark.skipif(sys.platform == "win32", reason="the other Python is a shell script")
def test_each_project_is_served_in_the_python_that_was_chosen_for_its_folder(qapp, qtbot, tmp_path, fake_engine):
    other = tmp_path / "other-python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.py").write_text("def make_model(): ...")
    client = SeenClient()
    studio = Studio(qapp, UserFolders.inside(tmp_path / "user"), client=client)
    session = studio.session

    def opened(name: str) -> str:
        path = tmp_path / name / "net.py"
        session.files.open_path(path)
        qtbot.waitUntil(
            lambda: (report := session.document.file) is not None and report.path == str(path), timeout=20_000
        )
        qtbot.waitUntil(lambda: session.document.activity.state is EngineState.IDLE, timeout=20_000)
        return client.interpreter

    try:
        studio.engine.start()
        session.settings.choose_interpreter(str(tmp_path / "a"), str(other))
        assert opened("a") == str(other)
        assert opened("b") == default_interpreter()
        assert opened("a") == str(other)
        session.settings.choose_interpreter(str(tmp_path / "a"), "")  # the engine that runs is replaced
        qtbot.waitUntil(lambda: client.interpreter == default_interpreter(), timeout=20_000)
    finally:
        studio.window.close()
        studio.close()


class OneEvent:
    """A client with one event."""

    def __init__(self) -> None:
        self.is_emitted = Event()

    def start(self) -> None:
        """There is no process."""

    close = start

    def events(self):
        yield "loaded"
        self.is_emitted.set()


@pytest.mark.parametrize("is_closed", [False, True])
def test_an_event_that_was_not_received_when_the_engine_is_closed_is_dropped(qapp, is_closed):
    client, received = OneEvent(), []
    engine = EngineThread(lambda: client)
    engine.received.connect(received.append)
    engine.start()
    assert client.is_emitted.wait(20)
    if is_closed:
        engine.close()
    qapp.processEvents()
    engine.close()
    assert received == ([] if is_closed else ["loaded"])
