"""A window that ends during a run, in whatever way, leaves no process behind."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from ace_studio.jobs.processes import MARK_VARIABLE, marked_processes

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")]

MODEL = textwrap.dedent(
    """
    import subprocess, time
    from pathlib import Path

    def make_model():
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        Path(__file__).with_name("child").write_text(str(child.pid))
        time.sleep(600)

    def tracing_inputs():
        return []
    """
)
WINDOW = """
import sys
from pathlib import Path
from PySide6.QtCore import QSocketNotifier, QTimer
from ace_studio.gui.shell import app, start
from ace_studio.jobs import launch
from ace_studio.session.kept.folders import UserFolders
from tests.forked_engines import ForkServer

if len(sys.argv) > 3:
    launch._popen = ForkServer(sys.argv[3]).popen
app.UserFolders.of_user = lambda: UserFolders.inside(Path(sys.argv[1]))
child = Path(sys.argv[2]).with_name("child")


class Studio(app.Studio):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = False
        self.timer = QTimer(self.window, interval=50)
        self.timer.timeout.connect(self.go_on)
        self.timer.start()

    def go_on(self):
        document = self.session.document
        if document.needs_trust:
            self.session.trust.trust_file()
        elif document.file is not None and not document.activity.is_working and not self.asked:
            self.asked = True
            self.session.jobs.run()
        elif child.exists() and child.read_text():
            self.timer.stop()
            print(self.engine._client.result().pid, flush=True)
            self.order = QSocketNotifier(0, QSocketNotifier.Type.Read, self.window)
            self.order.activated.connect(self.window.close)


app.Studio = Studio
sys.exit(start.run_window(sys.argv[2:3]))
"""


@pytest.mark.parametrize(
    ("how", "code"),
    [(0, 0), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["closed", "SIGTERM", "SIGKILL"],
)
def test_no_engine_and_none_of_its_children_is_left(tmp_path, root, forked_engines, how, code):
    model = tmp_path / "net.py"
    model.write_text(MODEL)
    forked = [] if how == signal.SIGKILL else [forked_engines.address]  # one engine is started, which takes seconds
    command = [sys.executable, "-c", WINDOW, str(tmp_path / "user"), str(model), *forked]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        engine = int(process.stdout.readline())
        child = int((tmp_path / "child").read_text())
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        mark = next(one for one in environment if one.startswith(MARK_VARIABLE.encode())).decode().partition("=")[2]
        assert ({child} if forked else {child, engine}) <= set(marked_processes(mark))
        assert psutil.pid_exists(engine)
        if how:
            process.send_signal(how)
        else:
            print("close", file=process.stdin, flush=True)
        assert process.wait(timeout=30) == code
    deadline_s = time.monotonic() + 10
    while (marked_processes(mark) or psutil.pid_exists(engine)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert marked_processes(mark) == [] and not psutil.pid_exists(engine)
