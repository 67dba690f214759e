import threading

from ace_studio.gui.shell.app import SweepThread
from ace_studio.jobs import sweep_process
from ace_studio.records.sweeps import JobAdvanced, Sweep, SweepOrder


class FakeProcess:
    """Tells one event from a thread of its own, as the real one does."""

    def __init__(self, order, on_event):
        self.stopped = 0
        threading.Thread(target=lambda: on_event(JobAdvanced(job="1", phase="x"))).start()

    def stop(self):
        self.stopped += 1


def test_events_arrive_on_the_main_thread_and_stop_reaches_the_process(qtbot, monkeypatch):
    monkeypatch.setattr(sweep_process, "SweepProcess", FakeProcess)
    link, threads = SweepThread(), []
    link.received.connect(lambda event: threads.append((event.job, threading.current_thread())))
    link.stop()
    with qtbot.waitSignal(link.received, timeout=5_000):
        link.start(SweepOrder(sweep=Sweep(recipes=()), folder="", out=""))
    assert threads == [("1", threading.main_thread())]
    link.stop()
    assert link._process.stopped == 1
