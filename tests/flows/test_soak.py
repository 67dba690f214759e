"""Many runs and many cancels in one window: nothing grows, nothing stays, and the engine answers again.

The counts are small here. ``ACE_SOAK_RUNS=200 ACE_SOAK_CANCELS=50`` takes about a quarter of an hour.
"""

import os
import time

import psutil
import pytest

from ace_studio.gui.shell.app import Studio
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import MeasureChoice
from ace_studio.session.document import EngineState, QueueState
from ace_studio.session.kept.folders import UserFolders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

RUNS = int(os.environ.get("ACE_SOAK_RUNS", "9"))
CANCELS = int(os.environ.get("ACE_SOAK_CANCELS", "7"))
WARM = 5
"""Runs after which everything is imported and every cache has its size."""
LOAD_S = 120_000
MODEL = """
import torch
from torch import nn


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def tracing_inputs():
    return [(torch.ones(rows, 16),) for rows in (2, 5)]


def calibration_inputs():
    torch.manual_seed(1)
    return [(torch.randn(8, 16),) for _ in range(4)]
"""


@pytest.fixture
def studio(qtbot, qapp, tmp_path):
    before = children_of_this_process()  # another test's compilers may wait there for work
    made = Studio(qapp, UserFolders.inside(tmp_path / "user"))
    qtbot.addWidget(made.window)
    made.window.resize(1280, 800)
    made.window.show()
    qtbot.waitUntil(lambda: made.session.document.environment is not None, timeout=LOAD_S)
    path = tmp_path / "net.py"
    path.write_text(MODEL, encoding="utf-8")
    made.window.commands.open_path(str(path))
    qtbot.waitUntil(lambda: made.session.document.needs_trust, timeout=LOAD_S)
    made.session.trust.trust_file()
    made.session.choices.set_measure(MeasureChoice(rounds=3, threads=1))
    made.session.choices.set_targets(["onnxruntime"])
    yield made
    made.window.leave()
    made.close()
    assert children_of_this_process() <= before


def children_of_this_process():
    return {child.pid for child in psutil.Process().children(recursive=True)}


def start(qtbot, studio):
    run = studio.window.actions_.by_id["run"]
    qtbot.waitUntil(run.isEnabled, timeout=LOAD_S)
    run.trigger()
    qtbot.waitUntil(lambda: studio.session.document.activity.is_working, timeout=LOAD_S)


def wait_until_idle(qtbot, studio):
    qtbot.waitUntil(
        lambda: (
            studio.session.document.activity.state is EngineState.IDLE
            and not any(one.state in (QueueState.WAITING, QueueState.RUNNING) for one in studio.session.document.queue)
        ),
        timeout=LOAD_S,
    )


def footprint():
    """MiB, open files and processes of the window and of its engine."""
    own = psutil.Process()
    children = own.children(recursive=True)
    everyone = [own, *children]
    return (
        *(one.memory_full_info().uss / 2**20 for one in (own, max(children, key=lambda one: one.memory_info().rss))),
        sum(one.num_fds() for one in everyone),
        len(everyone),
    )


def test_many_runs_in_one_window_leave_no_memory_file_or_process_behind(qtbot, studio):
    after_warm_up = None
    for count in range(RUNS):
        start(qtbot, studio)
        wait_until_idle(qtbot, studio)
        assert studio.session.document.result is not None, studio.session.document.problems
        if count == min(WARM, RUNS // 2) - 1:
            after_warm_up = footprint()
    window, engine, files, processes = footprint()
    print(f"\nafter {WARM} and after {RUNS} runs: {after_warm_up} {(window, engine, files, processes)}")
    assert window <= 1.1 * after_warm_up[0]
    assert engine <= 1.1 * after_warm_up[1]
    assert files <= after_warm_up[2] + 4
    assert processes == after_warm_up[3]


def test_a_job_is_cancelled_in_any_phase_and_the_next_one_works(qtbot, studio):
    seen: dict[Phase, list[float]] = {}
    phases = []
    studio.session.subscribe(
        lambda document, _: phases.append(document.activity.phase) if document.activity.is_working else None
    )
    start(qtbot, studio)  # to know the phases of this job
    wait_until_idle(qtbot, studio)
    phases = list(dict.fromkeys(phases))
    assert len(phases) > 4
    for count in range(CANCELS):
        wanted = phases[count % len(phases)]
        start(qtbot, studio)
        cancel = studio.window.actions_.by_id["cancel"]
        qtbot.waitUntil(cancel.isEnabled, timeout=LOAD_S)
        qtbot.waitUntil(
            lambda wanted=wanted: (
                studio.session.document.activity.phase is wanted or not studio.session.document.activity.is_working
            ),
            timeout=LOAD_S,
        )
        if studio.session.document.activity.is_working:
            began = time.monotonic()
            cancel.trigger()
            assert studio.session.document.activity.state is not EngineState.BUSY
            wait_until_idle(qtbot, studio)
            seen.setdefault(wanted, []).append(time.monotonic() - began)
        wait_until_idle(qtbot, studio)
    print("\nseconds until idle:", {str(phase): [round(one, 2) for one in times] for phase, times in seen.items()})
    assert len(seen) > 3
    assert max(max(times) for times in seen.values()) < 5 * 3  # three times the promise, for a busy machine
    start(qtbot, studio)
    wait_until_idle(qtbot, studio)
    assert studio.session.document.result is not None
