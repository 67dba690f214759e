"""The window answers while its engine is on another machine: connecting, sending, running, a cut, fetching.

The SSH server is another process, and is stopped in the middle of each step, as a network that hangs: the window's
thread has to go on, whatever its engine's threads wait for.
"""

import sys

import pytest

from ace_studio.gui.shell.app import Studio
from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.engines import EngineClient
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.messages import Phase
from ace_studio.session.document import Document
from ace_studio.session.kept.folders import UserFolders
from tests.gui.heartbeat import Heartbeat
from tests.jobs.hosts.linking import HANDLERS
from tests.jobs.hosts.ssh_host import HOST, needs_ssh
from tests.jobs.hosts.ssh_process import SshProcess, ssh_process

LOAD_S = 60_000
RECIPE = f"""
format = 1
[model]
source = "model.py"
entry = "gated"
[engine]
host = "{HOST}"
python = "{sys.executable}"
"""


class Freezer:
    """Stops the server as soon as a step is shown, and lets it go on after so many beats of the window."""

    def __init__(self, studio: Studio, host: SshProcess, beats: Heartbeat, bot) -> None:
        self._host, self._beats, self._bot = host, beats, bot
        self._wanted = lambda document: False
        self._is_frozen = False
        studio.session.subscribe(self._look)

    def _look(self, document: Document, _parts: object) -> None:
        if not self._is_frozen and self._wanted(document):
            self._is_frozen = True
            self._host.stop()

    def freeze_when(self, wanted, begin=lambda: None) -> None:
        self._wanted, self._is_frozen = wanted, False
        begin()
        self._bot.waitUntil(lambda: self._is_frozen, timeout=LOAD_S)
        until = self._beats.count + 60
        self._bot.waitUntil(lambda: self._beats.count >= until, timeout=LOAD_S)
        self._host.go_on()


def at(phase: Phase, detail: str = ""):
    return lambda document: document.activity.phase is phase and document.activity.detail.startswith(detail)


@pytest.fixture
def studio(qtbot, qapp, tmp_path, monkeypatch):
    monkeypatch.setenv(HANDLERS_VARIABLE, HANDLERS)
    made = Studio(qapp, UserFolders.inside(tmp_path / "user"), client=EngineClient())
    qtbot.addWidget(made.window)
    made.window.resize(1280, 800)
    made.window.show()
    qtbot.waitUntil(made._preload.isFinished, timeout=LOAD_S)
    yield made
    made.window.leave()
    made.close()


@pytest.mark.slow
@needs_ssh
def test_the_event_loop_goes_on_while_the_connection_hangs_is_cut_and_carries_much(
    studio, qtbot, tmp_path, monkeypatch
):
    folder, gate, output = tmp_path / "net", tmp_path / "gate", tmp_path / "out"
    folder.mkdir()
    (folder / "model.py").write_text("def gated(): ...")
    (folder / "gate.txt").write_text(str(gate))
    (folder / "zeros.txt").write_text("0" * 20_000_000)
    (folder / "recipe.toml").write_text(RECIPE)
    session = studio.session
    with ssh_process(tmp_path / "host") as host:
        monkeypatch.setenv(SSH_VARIABLE, host.command)
        studio.window.commands.open_path(str(folder / "recipe.toml"))
        qtbot.waitUntil(lambda: session.document.file is not None, timeout=LOAD_S)
        for panel in ("ops", "shapes", "run"):
            studio.window.commands.show_panel(panel)
            qtbot.wait(100)

        beats = Heartbeat()
        freezer = Freezer(studio, host, beats, qtbot)
        session.trust.trust_file()
        session.jobs.run(output)
        qtbot.waitUntil(lambda: session.document.needs_trust, timeout=LOAD_S)
        qtbot.waitUntil(lambda: not session.document.activity.is_working, timeout=LOAD_S)
        freezer.freeze_when(
            at(Phase.CONNECT), begin=session.trust.trust_file
        )  # it lets the files go, and the run starts
        freezer.freeze_when(at(Phase.SEND, "zeros.txt"))
        qtbot.waitUntil(lambda: at(Phase.MEASURE, "waiting")(session.document), timeout=LOAD_S)
        freezer.freeze_when(lambda document: any("was lost" in line for line in document.log[-3:]), begin=host.cut)
        qtbot.waitUntil(lambda: any("stands again" in line for line in session.document.log), timeout=LOAD_S)
        freezer.freeze_when(at(Phase.FETCH), begin=gate.touch)
        qtbot.waitUntil(lambda: not session.document.activity.is_working, timeout=LOAD_S)
        qtbot.waitUntil(lambda: session.document.environment is not None, timeout=LOAD_S)  # of the host
        beats.stop()
    assert (output / "seen.txt").stat().st_size > 20_000_000
    # CPU time of this thread: another process on the same core is no stall of the window.
    assert beats.longest_cpu_ms < 50, f"{beats.longest_cpu_ms:.0f} ms of work, {beats.longest_ms:.0f} ms on the wall"
    print(f"{beats.count} beats, longest {beats.longest_cpu_ms:.1f} ms of CPU, {beats.longest_ms:.0f} ms on the wall")
