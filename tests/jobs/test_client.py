"""Real worker processes that misbehave in every way we know, and the client that has to live with them."""

import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from ace_studio.jobs.answer import HANDLER_NAMES, HANDLERS_VARIABLE
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.launch import Transport
from ace_studio.records import containment
from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import (
    JOB_ENDS,
    AnyEvent,
    FileInspected,
    FixRequest,
    InspectRequest,
    JobCancelled,
    JobFailed,
    JobFinished,
    LogLine,
    Progress,
    RunRequest,
    TraceRequest,
    WorkerLost,
    WorkerReady,
)
from ace_studio.records.recipes.recipe import ModelChoice, Recipe

pytestmark = pytest.mark.usefixtures("fake_engine")
posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")


@pytest.fixture
def make_client() -> Iterator[Callable[..., WorkerClient]]:
    made: list[WorkerClient] = []

    def make(*args: object, **options: object) -> WorkerClient:
        client = WorkerClient(*args, **options)  # type: ignore[arg-type]
        made.append(client)
        client.start()
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: Callable[..., WorkerClient]) -> WorkerClient:
    started = make_client()
    take(started, WorkerReady)
    return started


def ask(what: str, job: str = "job") -> InspectRequest:
    return InspectRequest(job=job, path=what)


def take(client: WorkerClient, *kinds: type[AnyEvent], within_s: float = 20.0) -> AnyEvent:
    """The next event of one of these kinds."""
    return collect(client, *kinds, within_s=within_s)[-1]


def collect(client: WorkerClient, *kinds: type[AnyEvent], within_s: float = 20.0) -> list[AnyEvent]:
    """All events up to the next one of these kinds."""
    deadline_s = time.monotonic() + within_s
    seen: list[AnyEvent] = []
    while (left_s := deadline_s - time.monotonic()) > 0:
        event = client.next_event(left_s)
        if event is not None:
            seen.append(event)
            if isinstance(event, kinds):
                return seen
    raise AssertionError(f"none of {kinds} within {within_s} s, only {seen[-5:]}")


def answer(client: WorkerClient, what: str) -> str:
    client.send(ask(what))
    event = take(client, *JOB_ENDS, WorkerLost)
    assert isinstance(event, FileInspected), event
    return event.report.path


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], within_s: float) -> bool:
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_a_worker_says_ready_and_answers(client: WorkerClient) -> None:
    client.send(ask("echo hello"))
    progress, end = take(client, Progress), take(client, *JOB_ENDS)
    assert (progress.job, progress.detail) == ("job", "hello")
    assert isinstance(end, FileInspected) and (end.job, end.report.path) == ("job", "hello")


def test_start_returns_at_once_and_a_request_sent_before_ready_is_served(
    make_client: Callable[..., WorkerClient],
) -> None:
    begin_s = time.monotonic()
    client = make_client()
    client.send(ask("echo early"))
    assert time.monotonic() - begin_s < 0.1
    take(client, FileInspected)


def test_a_recipe_travels_whole(client: WorkerClient) -> None:
    recipe = Recipe(model=ModelChoice(source="model.py", entry="echo"))
    client.send(TraceRequest(job="t", recipe=recipe, folder="/tmp"))
    events = collect(client, JobFinished)
    assert any(isinstance(event, Progress) and event.detail == "model.py" for event in events)


def test_the_loopback_channel_works_as_the_inherited_one(make_client: Callable[..., WorkerClient]) -> None:
    client = make_client(transport=Transport.LOOPBACK)
    assert answer(client, "echo over the network") == "over the network"


@pytest.mark.parametrize("what", ["fail", "divide", "exhaust", "say_nothing", "exit_politely 0", "interrupt"])
def test_a_failing_job_is_a_message_and_the_worker_lives(client: WorkerClient, what: str) -> None:
    client.send(ask(what))
    failed = take(client, *JOB_ENDS, WorkerLost)
    assert isinstance(failed, JobFailed)
    expected = {
        "fail": "bad-input",
        "exhaust": "out-of-memory",
        "exit_politely 0": "user-code",
        "interrupt": "user-code",
    }
    assert failed.problems[0].code == expected.get(what, "internal")
    assert answer(client, "echo still here") == "still here"


def test_an_unexpected_error_carries_its_traceback(client: WorkerClient) -> None:
    client.send(ask("divide"))
    failed = take(client, JobFailed)
    assert "ZeroDivisionError" in failed.problems[0].why
    assert "fake_engine.py" in failed.problems[0].details


def test_a_job_that_reports_is_cancelled_within_200_ms(client: WorkerClient) -> None:
    seconds = []
    for _ in range(3):  # the best of three, because other processes share the machine
        client.send(ask("listen"))
        take(client, Progress)
        begin_s = time.monotonic()
        client.cancel("job")
        assert isinstance(take(client, JobCancelled, JobFailed, WorkerLost), JobCancelled)
        seconds.append(time.monotonic() - begin_s)
    assert min(seconds) < 0.2
    assert answer(client, "echo again") == "again"


def test_a_job_that_sleeps_is_interrupted_and_the_worker_lives(client: WorkerClient) -> None:
    client.send(ask("sleep"))
    take(client, Progress)
    client.cancel("job")
    assert isinstance(take(client, JobCancelled, JobFailed, WorkerLost, within_s=3), JobCancelled)
    assert answer(client, "echo again") == "again"


@posix
@pytest.mark.parametrize("what", ["stubborn", "hold_lock"])
def test_a_job_that_ignores_everything_is_gone_within_5_s_and_the_next_start_works(
    client: WorkerClient, what: str
) -> None:
    client.send(ask(what))
    take(client, Progress)
    pid = client.pid
    assert pid is not None
    begin_s = time.monotonic()
    client.cancel("job", grace_s=1.5)
    lost = take(client, WorkerLost)
    assert time.monotonic() - begin_s < 5.0
    assert lost.problem.code is ErrorCode.CANCELLED and lost.job == "job"
    assert not is_alive(pid)
    client.start()
    assert answer(client, "echo back") == "back"


def test_cancelling_a_job_that_waits_keeps_it_from_running(client: WorkerClient) -> None:
    client.send(ask("listen", job="first"))
    client.send(ask("echo never", job="second"))
    take(client, Progress)
    client.cancel("second")
    client.cancel("first")
    ends = [take(client, *JOB_ENDS), take(client, *JOB_ENDS)]
    assert [(type(end), end.job) for end in ends] == [(JobCancelled, "first"), (JobCancelled, "second")]


@posix
def test_kill_9_is_one_message_within_a_second_and_the_next_start_works(client: WorkerClient) -> None:
    client.send(ask("sleep"))
    take(client, Progress)
    begin_s = time.monotonic()
    os.kill(client.pid or 0, signal.SIGKILL)
    lost = take(client, WorkerLost)
    assert time.monotonic() - begin_s < 1.0
    assert (lost.job, lost.problem.code) == ("job", ErrorCode.CRASH)
    assert "SIGKILL" in lost.problem.why
    assert client.next_event(0.5) is None
    client.start()
    assert answer(client, "echo back") == "back"


@pytest.mark.parametrize("code", [0, 7])
def test_a_process_that_ends_without_an_answer_is_a_failure(client: WorkerClient, code: int) -> None:
    client.send(ask(f"leave {code}"))
    lost = take(client, WorkerLost)
    assert lost.problem.code is ErrorCode.USER_CODE
    assert f"os._exit({code})" in lost.problem.what
    assert "leaving" in lost.problem.details


@posix
def test_a_segmentation_fault_names_the_line_of_python_that_called(client: WorkerClient) -> None:
    client.send(ask("crash"))
    lost = take(client, WorkerLost)
    assert "SIGSEGV" in lost.problem.what
    assert "fake_engine.py" in lost.problem.details


@posix
def test_user_code_that_closes_the_channel_is_found_out(client: WorkerClient) -> None:
    client.send(ask("close_descriptors 4096"))
    take(client, WorkerLost, within_s=5)


@posix
def test_user_code_that_closes_the_usual_descriptors_does_not_hit_the_channel(client: WorkerClient) -> None:
    assert answer(client, "close_descriptors 256") == "still here"


@posix
def test_jobs_behind_one_that_spoiled_the_engine_are_served_by_another_and_one_line_says_so(
    client: WorkerClient,
) -> None:
    pid = client.pid
    client.send(ask("close_descriptors 10", job="first"))
    client.send(ask("echo second", job="second"))
    client.send(ask("echo third", job="third"))
    events = collect(client, FileInspected)
    told = [one.text for one in events if isinstance(one, LogLine) and "started anew" in one.text]
    assert len(told) == 1 and "descriptors" in told[0]
    assert events[-1].job == "first"
    for name in ("second", "third"):
        end = take(client, FileInspected, JobFailed, WorkerLost)
        assert isinstance(end, FileInspected) and (end.job, end.report.path) == (name, name)
    assert client.pid != pid and client.is_running


@posix
def test_a_job_that_was_cancelled_behind_one_that_spoiled_the_engine_does_not_run(client: WorkerClient) -> None:
    client.send(ask("close_descriptors 10", job="first"))
    client.send(ask("listen", job="second"))
    client.send(ask("echo third", job="third"))
    take(client, Progress)
    client.cancel("second")
    ends = [take(client, *JOB_ENDS, WorkerLost) for _ in range(3)]
    assert [(type(end), end.job) for end in ends] == [
        (FileInspected, "first"), (JobCancelled, "second"), (FileInspected, "third")
    ]  # fmt: skip


@posix
def test_an_engine_that_is_killed_while_it_is_spoiled_is_lost_as_ever(client: WorkerClient) -> None:
    client.send(ask("close_descriptors 10"))
    take(client, Progress)
    client.kill()
    assert take(client, WorkerLost).problem.code is ErrorCode.CANCELLED


def test_everything_printed_arrives_whoever_prints_it(client: WorkerClient) -> None:
    client.send(ask("shout"))
    wanted = {"by print", "by stderr", "by descriptor", "by a child"}
    seen: set[str] = set()
    while not wanted <= seen:
        line = take(client, LogLine, within_s=5)
        seen.add(line.text)


def test_a_flood_of_output_is_thinned_and_does_not_stop_the_job(client: WorkerClient) -> None:
    client.send(ask("flood 200000"))
    events = collect(client, FileInspected, within_s=30)
    lines = [event.text for event in events if isinstance(event, LogLine)]
    assert lines[0].startswith("line 0 ")
    assert len(lines) < 10_000
    later = [event.text for event in drain(client, 1.0) if isinstance(event, LogLine)]
    assert any("lines left out" in line for line in lines + later)


def drain(client: WorkerClient, seconds: float) -> list[AnyEvent]:
    deadline_s = time.monotonic() + seconds
    seen = []
    while (left_s := deadline_s - time.monotonic()) > 0:
        event = client.next_event(left_s)
        if event is not None:
            seen.append(event)
    return seen


def test_stdin_is_empty(client: WorkerClient) -> None:
    assert answer(client, "read_stdin") == "''"


@posix
@pytest.mark.parametrize("end", ["close", "kill", "crash"])
def test_no_child_of_a_job_survives_the_worker(client: WorkerClient, end: str) -> None:
    pids = [int(pid) for pid in answer(client, "spawn").split()]
    worker = client.pid or 0
    assert all(is_alive(pid) for pid in pids)
    if end == "close":
        client.close()
    elif end == "kill":
        client.kill()
    else:
        os.kill(worker, signal.SIGKILL)
    assert wait_until(lambda: not any(is_alive(pid) for pid in [worker, *pids]), within_s=2.0)


PARENT = """
import sys, time
from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import InspectRequest, FileInspected
client = WorkerClient()
client.start()
client.send(InspectRequest(job="j", path="spawn"))
for event in client.events():
    if isinstance(event, FileInspected):
        print(client.pid, event.report.path, flush=True)
        client.send(InspectRequest(job="k", path=sys.argv[1]))
"""


@posix
@pytest.mark.parametrize("what", ["sleep", "stubborn", "hold_lock"])
def test_nothing_survives_a_parent_that_was_killed(what: str, root: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, what], stdout=subprocess.PIPE, cwd=root, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 4
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not any(is_alive(pid) for pid in pids), within_s=2.0)


def test_the_worker_sees_a_clean_environment_and_no_token(
    make_client: Callable[..., WorkerClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "PYTHONHOME", "QT_PLUGIN_PATH"):
        monkeypatch.setenv(name, "/nonexistent")
    client = make_client(environment={"ACE_TEST_EXTRA": "yes"})
    assert answer(client, "environment TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD") == "<unset>"
    assert answer(client, "environment QT_PLUGIN_PATH") == "<unset>"
    assert answer(client, "environment ACE_STUDIO_WORKER") == "<unset>"
    assert answer(client, "environment ACE_TEST_EXTRA") == "yes"


def test_the_package_is_found_without_its_folder_on_the_path(client: WorkerClient, root: Path) -> None:
    package, *path = answer(client, "path").split("\n")
    assert Path(package) == root / "ace_studio"
    assert str(root / "ace_studio" / "jobs") not in path


def test_an_interpreter_that_is_not_there_is_named(make_client: Callable[..., WorkerClient]) -> None:
    client = make_client("/nonexistent/python")
    lost = take(client, WorkerLost, within_s=2)
    assert lost.problem.code is ErrorCode.NOT_FOUND and "/nonexistent/python" in lost.problem.why


def test_an_interpreter_without_a_package_is_told_what_to_install(
    make_client: Callable[..., WorkerClient], tmp_path: Path
) -> None:
    handlers = tmp_path / "needs_more.py"
    handlers.write_text("import torch_that_is_missing.nn\n")
    lost = take(make_client(environment={HANDLERS_VARIABLE: str(handlers)}), WorkerLost, within_s=10)
    assert lost.problem.code is ErrorCode.NOT_INSTALLED
    assert lost.problem.what == "The Python of the engine has no torch_that_is_missing"
    assert f"{sys.executable} -m pip install torch_that_is_missing" in lost.problem.remedy
    assert lost.problem.details.strip() == "ModuleNotFoundError: No module named 'torch_that_is_missing'"


def test_a_worker_that_cannot_come_up_says_its_last_words(
    make_client: Callable[..., WorkerClient], tmp_path: Path
) -> None:
    handlers = tmp_path / "broken.py"
    handlers.write_text("raise RuntimeError('the licence server is down')\n")
    lost = take(make_client(environment={HANDLERS_VARIABLE: str(handlers)}), WorkerLost, within_s=10)
    assert "the licence server is down" in lost.problem.why


def test_a_worker_of_another_version_is_refused(make_client: Callable[..., WorkerClient], tmp_path: Path) -> None:
    handlers = tmp_path / "other_version.py"
    names = " = ".join(HANDLER_NAMES.values())
    handlers.write_text(f"from ace_studio.records import messages\nmessages.PROTOCOL_VERSION = 99\n{names} = None\n")
    lost = take(make_client(environment={HANDLERS_VARIABLE: str(handlers)}), WorkerLost, within_s=10)
    assert "version 99" in lost.problem.why


def test_closing_ends_the_iteration_and_says_nothing_of_a_loss(client: WorkerClient) -> None:
    pid = client.pid or 0
    client.close()
    assert not any(isinstance(event, WorkerLost) for event in client.events())
    assert not is_alive(pid)


def test_a_restart_gives_a_new_worker_without_a_loss(client: WorkerClient) -> None:
    old = client.pid
    client.send(ask("sleep"))
    take(client, Progress)
    client.restart()
    ready = take(client, WorkerReady, WorkerLost)
    assert isinstance(ready, WorkerReady) and ready.pid != old
    assert answer(client, "echo new") == "new"


@posix
def test_an_interpreter_without_ace_studio_runs_the_worker_with_its_own_packages_only(
    make_client: Callable[..., WorkerClient], tmp_path: Path, root: Path
) -> None:
    venv.EnvBuilder(symlinks=True, with_pip=False).create(tmp_path / "venv")
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    client = make_client(str(tmp_path / "venv" / "bin" / "python"))
    package, *path = answer(client, "path").split("\n")
    assert Path(package) == root / "ace_studio"
    assert str(root) not in path
    assert not any("site-packages" in entry and str(tmp_path) not in entry for entry in path)


@posix
def test_an_engine_that_hangs_while_it_starts_is_given_up_after_the_stated_time(make_client, tmp_path):
    stuck = tmp_path / "python"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(0o755)
    client = make_client(str(stuck), start_limit_s=0.3)
    end = take(client, WorkerLost)
    assert end.problem.code is ErrorCode.TIMEOUT and "within 0.3 s" in end.problem.what
    assert not client.is_running


@posix
def test_an_engine_that_hangs_while_it_starts_can_be_ended(make_client, tmp_path):
    stuck = tmp_path / "python"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(0o755)
    client = make_client(str(stuck))
    client.kill()
    assert take(client, WorkerLost).problem.code is ErrorCode.CANCELLED
    assert not client.is_running


@pytest.mark.skipif(not containment.available()[0], reason=containment.available()[1])
def test_a_contained_job_gets_a_worker_of_its_own_that_writes_only_where_it_may(
    make_client: Callable[..., WorkerClient], tmp_path: Path
) -> None:
    wanted = [True]
    home = tmp_path / "home"
    home.mkdir()
    client = make_client(contain=lambda: wanted[0], environment={"HOME": str(home)})
    assert answer(client, "echo no code runs") == "no code runs"
    recipe = Recipe(model=ModelChoice(source="model.py", entry="write_home"))

    client.send(RunRequest(job="1", recipe=recipe, folder="/", output=str(tmp_path / "out")))
    problem = take(client, JobFailed).problems[0]
    assert f"would change {home / 'from-the-job'}" in problem.why
    assert str(tmp_path / "out") in problem.why
    assert "--no-contain" in problem.remedy
    scratch = Path(problem.why.rpartition(" and ")[2])
    assert scratch.is_dir()

    wanted[0] = False
    client.send(TraceRequest(job="2", recipe=recipe, folder="/"))
    take(client, JobFinished)
    assert (home / "from-the-job").exists()
    assert not scratch.exists()


@pytest.mark.parametrize(
    ("choice", "is_able", "is_contained"), [(None, True, True), (None, False, False), (False, True, False)]
)
def test_unless_the_user_says_otherwise_fixes_and_strangers_files_are_contained_where_the_kernel_can(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch, choice: bool | None, is_able: bool, is_contained: bool
) -> None:
    started: list[bool] = []
    monkeypatch.setattr(containment, "available", lambda: (is_able, ""))
    monkeypatch.setattr(client, "_contain", lambda: choice)
    monkeypatch.setattr(client, "restart", lambda: started.append(client._options.contained_to is not None))
    recipe = Recipe(model=ModelChoice(source="model.py", entry="nothing"))
    client.send(TraceRequest(job="1", recipe=recipe, folder="/"))
    assert not started, "neither a fix nor a stranger's"
    client.send(FixRequest(job="2", recipe=recipe, folder="/"))
    assert started == [True] * is_contained
    monkeypatch.setattr(containment, "from_elsewhere", lambda path: "it was downloaded" * (path == Path("/model.py")))
    client.send(RunRequest(job="3", recipe=recipe, folder="/", output="/tmp/out"))
    assert started == [True] * 2 * is_contained
    logged = [event.text for event in drain(client, 0.5) if isinstance(event, LogLine)]
    assert any("model.py: it was downloaded" in text and "--no-contain" in text for text in logged) == is_contained


def test_where_nothing_can_be_contained_the_job_does_not_start(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containment, "available", lambda: (False, "containment needs Linux"))
    monkeypatch.setattr(client, "_contain", lambda: True)
    client.send(TraceRequest(job="1", recipe=Recipe(model=ModelChoice(source="m.py", entry="exit_now")), folder="/"))
    problem = take(client, JobFailed).problems[0]
    assert (problem.code, problem.why) == (ErrorCode.UNSUPPORTED, "containment needs Linux")
