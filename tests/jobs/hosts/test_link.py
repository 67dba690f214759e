"""Jobs on a host behind a real SSH server: files go there, events and results come back, connections are cut."""

import os
import signal
import sys
import time

from ace_studio.jobs.hosts import link
from ace_studio.records.errors import ErrorCode
from ace_studio.records.messages import JobCancelled, JobFailed, JobFinished, LogLine, Phase, Progress, TraceRequest
from ace_studio.records.recipes.recipe import EngineChoice, ModelChoice, Recipe
from ace_studio.records.safe_file import file_sha256
from ace_studio.records.sending import Word
from tests.jobs.hosts.linking import ENGINE, follow, request
from tests.jobs.hosts.ssh_host import HOST, SshHost, needs_ssh

pytestmark = needs_ssh


def test_a_run_there_gives_progress_a_result_and_its_files_here(client, folder, tmp_path, host):
    output = tmp_path / "out"
    client.send(request(folder, "work", output=output))
    *before, ended = follow(client)
    assert isinstance(ended, JobFinished) and ended.output == str(output)
    assert (output / "artifacts" / "model.pt2").read_bytes() == b"artifact" * 200_000
    said = (output / "seen.txt").read_text()
    assert f"home {host.home}" in said and "data.txt the data" in said
    phases = [event.phase for event in before if isinstance(event, Progress)]
    assert phases[:2] == [Phase.CONNECT, Phase.SEND] and {Phase.MEASURE, Phase.FETCH} <= set(phases)
    where = next(event.detail for event in before if isinstance(event, Progress) and event.phase == Phase.MEASURE)
    assert where == str(folder / "model.py")  # paths there are told as paths here
    assert client.pid is None  # no engine was started here


def test_the_source_and_contents_are_sent_once_and_the_engine_stays_for_the_next_job(client, folder, tmp_path):
    client.send(request(folder, "work", output=tmp_path / "a"))
    follow(client)
    client.send(request(folder, "work", output=tmp_path / "b"))
    second = follow(client)
    assert not any(isinstance(event, Progress) and event.detail.startswith("model.py to") for event in second)
    assert not any(isinstance(event, LogLine) and "is ready" in event.text for event in second)
    assert (tmp_path / "b" / "seen.txt").exists()


def test_jobs_of_the_same_files_share_a_folder_there_and_a_file_that_one_changed_is_as_it_was_sent(
    client, folder, tmp_path
):
    def seen(job: str) -> list[str]:
        client.send(request(folder, "spoil", output=tmp_path / job, job=job))
        assert isinstance(follow(client)[-1], JobFinished)
        return (tmp_path / job / "seen.txt").read_text().splitlines()

    first, second = seen("a"), seen("b")
    assert first == second and first[1] == "the data"
    (folder / "data.txt").write_text("other data")
    third = seen("c")
    assert third[0] != first[0] and third[1] == "other data"


def test_nothing_is_sent_before_the_code_is_trusted_here(client, folder, host):
    count = len(host.commands)
    client.send(request(folder, "work", trust_all=False))
    (problem,) = follow(client)[-1].problems
    sha256 = file_sha256(folder / "model.py")
    assert problem.code is ErrorCode.UNTRUSTED and problem.where == str(folder / "model.py")
    assert problem.details == f"sha256:{sha256}" and len(host.commands) == count
    client.send(request(folder, "work", trust_all=False, trusted_sha256=(sha256,)))
    assert isinstance(follow(client)[-1], JobFinished) and list(host.home.rglob(sha256))


def test_a_job_there_is_cancelled_also_one_that_does_not_listen(client, folder):
    for entry in ("listen", "stubborn"):
        client.send(request(folder, entry))
        follow(client, Progress)
        while not any(isinstance(one, Progress) and one.phase is Phase.LOAD for one in follow(client, Progress)):
            pass
        client.cancel(entry, grace_s=0.3)
        assert isinstance(follow(client)[-1], JobCancelled)


def test_a_job_is_cancelled_within_seconds_also_where_nobody_noticed_that_the_link_is_dead(
    client, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(link, "QUIET_S", 0.5)
    gate = tmp_path / "gate"
    client.send(request(folder, "wait", output=tmp_path / "out", job=f"wait {gate}"))
    while not gate.with_name("gate.begun").exists():
        follow(client, Progress)
    ssh = client._link(ENGINE)._connection._process.pid
    os.kill(ssh, signal.SIGSTOP)
    try:
        client.cancel(f"wait {gate}", grace_s=0.3)
        *_, said, ended = follow(client, within_s=5)
        assert isinstance(ended, JobCancelled) and "cannot be reached" in said.text
    finally:
        gate.touch()
        os.kill(ssh, signal.SIGCONT)


def test_a_file_that_is_gone_when_its_content_is_asked_for_fails_the_job(client, folder, monkeypatch):
    found = link.bundle_of

    def and_remove(*words):
        bundle, sources = found(*words)
        (folder / "data.txt").unlink()
        return bundle, sources

    monkeypatch.setattr(link, "bundle_of", and_remove)
    (folder / "data.txt").write_text("sent to nobody yet")
    client.send(request(folder, "work"))
    (problem,) = follow(client)[-1].problems
    assert problem.code is ErrorCode.NOT_FOUND and "cannot be read" in problem.what


def test_an_engine_that_dies_there_fails_its_job_and_the_next_one_runs(client, folder):
    client.send(request(folder, "crash"))
    (problem,) = follow(client)[-1].problems
    assert problem.code is ErrorCode.CRASH
    client.send(request(folder, "echo"))
    assert isinstance(follow(client)[-1], JobFinished)


def test_a_cut_connection_is_made_again_and_the_job_went_on(client, folder, tmp_path, host: SshHost):
    gate = tmp_path / "gate"
    client.send(request(folder, "wait", output=tmp_path / "out", job=f"wait {gate}"))
    while not gate.with_name("gate.begun").exists():
        follow(client, Progress)
    host.cut()
    lost = follow(client, LogLine)
    while "was lost; the job goes on there" not in lost[-1].text:
        lost = follow(client, LogLine)
    gate.touch()  # the job ends while nobody is connected, or just after
    ended = follow(client)
    assert isinstance(ended[-1], JobFinished)
    steps = [one.detail for one in ended if isinstance(one, Progress) and one.phase is Phase.MEASURE]
    assert steps.count("the last step") == 1
    assert (tmp_path / "out" / "seen.txt").read_text() == "waited"


def test_a_cut_while_results_are_fetched_leaves_them_whole(client, folder, tmp_path, host: SshHost):
    client.send(request(folder, "work", output=tmp_path / "out"))
    follow(client, Progress)
    while not any(one.phase is Phase.MEASURE for one in follow(client, Progress) if isinstance(one, Progress)):
        pass
    host.cut()
    assert isinstance(follow(client)[-1], JobFinished)
    assert (tmp_path / "out" / "artifacts" / "model.pt2").read_bytes() == b"artifact" * 200_000


def test_a_host_that_refuses_fails_the_job_and_can_be_tried_again(client, folder):
    bad = EngineChoice(host=HOST, python="/no/python")
    for _ in range(2):
        client.send(request(folder, "work", engine=bad))
        (problem,) = follow(client)[-1].problems
        assert problem.what == f"{HOST} has no /no/python"


def test_a_full_disk_there_is_told_as_that(client, folder, host):
    full = host.folder / "full"
    full.write_text(f'#!/bin/sh\nulimit -f 8000\nexec {sys.executable} "$@"\n')  # no file there grows above 4 MB
    full.chmod(0o755)
    (folder / "weights.bin").write_bytes(b"w" * 6_000_000)
    engine = EngineChoice(host=HOST, python=str(full))
    recipe = Recipe(model=ModelChoice(source="model.py", weights="weights.bin"), engine=engine)
    word = Word(hosts=(HOST,))
    client.send(TraceRequest(job="full", recipe=recipe, folder=str(folder), trust_all=True, word=word))
    (problem,) = follow(client)[-1].problems
    assert problem.code is ErrorCode.SYSTEM and problem.what.startswith("A file is larger than this system allows on ")


def test_a_keeper_that_is_gone_loses_the_job_and_says_so(client, folder, tmp_path, host: SshHost):
    gate = tmp_path / "gate"
    client.send(request(folder, "wait", output=tmp_path / "out", job=f"wait {gate}"))
    while not gate.with_name("gate.begun").exists():
        follow(client, Progress)
    sessions = host.home / ".cache" / "ace-studio" / "engine-here" / "sessions"
    for pid in sessions.glob("*/pid"):
        os.kill(int(pid.read_text()), signal.SIGKILL)
    (problem,) = follow(client, JobFailed)[-1].problems
    assert problem.code is ErrorCode.HOST and "is lost" in problem.what


def test_close_ends_the_keeper_there_and_removes_the_files_of_its_jobs(client, folder, host):
    sessions = host.home / ".cache" / "ace-studio" / "engine-here" / "sessions"
    before = set(sessions.glob("*"))
    client.send(request(folder, "echo"))
    follow(client)
    assert set(sessions.glob("*")) - before
    client.close()
    until = time.monotonic() + 5
    while set(sessions.glob("*")) - before and time.monotonic() < until:
        time.sleep(0.02)
    assert not set(sessions.glob("*")) - before
