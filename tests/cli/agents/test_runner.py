"""Jobs of tools: with the user's trust and no more, in one process, and cancelled when asked."""

from typing import ClassVar

import pytest
from msgspec.structs import replace

from ace_studio.cli.agents import runner as runner_module
from ace_studio.cli.agents.runner import AgentRunner
from ace_studio.jobs.client import WorkerClient
from ace_studio.records import sweeps
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import (
    FileInspected,
    FixRequest,
    InspectRequest,
    JobCancelled,
    JobFailed,
    JobFinished,
    Phase,
    Progress,
    TraceRequest,
)
from ace_studio.records.recipes.recipe import (
    CalibrationChoice,
    EngineChoice,
    EvaluateChoice,
    InputsChoice,
    ModelChoice,
    Recipe,
)
from ace_studio.records.roots import Roots, present
from ace_studio.session.kept.trust import TrustStore


@pytest.fixture
def store(tmp_path):
    return TrustStore(tmp_path / "trusted.json")


@pytest.fixture
def runner(store, fake_engine):
    found = AgentRunner(store, WorkerClient, Roots())
    yield found
    found.end()


class Engine:
    """Refuses a file until it is trusted."""

    def __init__(self, path, sha256="ab12"):
        self.requests = []
        self._path, self._sha256 = path, sha256

    def run(self, request):
        self.requests.append(request)
        problem = Problem(
            code=ErrorCode.UNTRUSTED, what="Not trusted", where=str(self._path), details=f"sha256:{self._sha256}"
        )
        is_trusted = request.trust_all or self._sha256 in request.trusted_sha256
        yield JobFinished(job=request.job) if is_trusted else JobFailed(job=request.job, problems=(problem,))

    def close(self):
        pass


@pytest.fixture
def engine(runner, tmp_path):
    found = Engine(tmp_path / "net.py")
    runner._executor = found
    return found


def trace(**values):
    return TraceRequest(job="trace", recipe=Recipe(model=ModelChoice(source="net.py")), folder="/", **values)


def test_a_file_that_is_not_trusted_is_refused_even_if_the_request_trusts_all(runner, engine):
    runner.begin(lambda event: None)
    (event,) = runner.run(trace(trust_all=True))
    assert f"ace-studio trust --add {engine._path}" in event.problems[0].remedy
    assert engine.requests[0].trust_all is False


def test_the_recipe_is_named_where_the_tool_was_given_one(runner, engine):
    runner.begin(lambda event: None, recipe="/my work/a.toml")
    (event,) = runner.run(trace())
    assert "ace-studio trust --add '/my work/a.toml'" in event.problems[0].remedy


def test_a_file_that_the_user_trusts_runs(runner, engine, store):
    store.trust(str(engine._path), "ab12")
    assert isinstance(next(runner.run(trace())), JobFinished)


def test_a_file_in_a_folder_that_the_user_trusts_runs(runner, engine, store, tmp_path):
    store.trust_folder(tmp_path)
    (event,) = runner.run(trace())
    assert isinstance(event, JobFinished) and len(engine.requests) == 2


def test_no_job_has_the_name_of_one_before(runner, engine):
    for _ in range(2):
        list(runner.run(trace()))
    assert len({request.job for request in engine.requests}) == 2


def test_all_calls_use_one_process_and_tell_their_progress(runner):
    told = []
    for _ in range(2):
        runner.begin(told.append)
        *_, last = runner.run(InspectRequest(job="inspect", path="echo hello"))
        assert isinstance(last, FileInspected) and last.report.path == "hello"
    assert [event.detail for event in told if isinstance(event, Progress)].count("hello") == 2
    assert runner._client.pid is not None


def test_a_job_that_is_cancelled_ends_and_the_next_one_runs(runner):
    def cancel(event):
        runner.cancel()

    runner.begin(cancel)
    *_, last = runner.run(InspectRequest(job="inspect", path="listen x"))
    assert isinstance(last, JobCancelled)
    process = runner._client.pid
    runner.begin(lambda event: None)
    *_, last = runner.run(InspectRequest(job="inspect", path="echo again"))
    assert isinstance(last, FileInspected) and runner._client.pid == process


def test_a_call_that_is_cancelled_before_its_job_sends_none(runner, engine):
    runner.begin(lambda event: None)
    runner.cancel()
    assert isinstance(next(runner.run(trace())), JobCancelled) and not engine.requests


def test_a_recipe_may_name_only_a_host_that_the_user_allowed(store):
    request = TraceRequest(job="trace", recipe=Recipe(engine=EngineChoice(host="user@box")), folder="/")
    refusing = AgentRunner(store, lambda: pytest.fail("an engine was started"), Roots())
    (event,) = refusing.run(request)
    assert event.problems[0].code is ErrorCode.UNTRUSTED and "mcp --host user@box" in event.problems[0].remedy
    allowing = AgentRunner(store, lambda: pytest.fail("an engine was started"), Roots(), hosts=["user@box"])
    with pytest.raises(pytest.fail.Exception):
        list(allowing.run(request))


class FakeSweep:
    """A process of a sweep that refuses its job until the content is trusted."""

    orders: ClassVar[list] = []

    def __init__(self, order, on_event):
        self.orders.append(order)
        on_event(sweeps.SweepAdvanced(row=None, done=0, total=1, workers=1))
        on_event(sweeps.JobAdvanced(job="1", phase=str(Phase.LOWER)))
        row = sweeps.SweepRow(job="1", recipe="a.toml", axes={}, status=sweeps.RowStatus.DONE)
        if "ab12" not in order.trusted_sha256:
            file = f"{order.folder}/net.py"
            problem = Problem(code=ErrorCode.UNTRUSTED, what="no", where=file, details="sha256:ab12")
            row = sweeps.SweepRow(job="1", recipe="a.toml", axes={}, status=sweeps.RowStatus.FAILED, error=problem)
        on_event(sweeps.SweepEnded(report=sweeps.SweepReport(status=sweeps.SweepStatus.OK, rows=(row,))))

    def stop(self):
        self.orders.append("stopped")


@pytest.fixture
def swept(monkeypatch):
    FakeSweep.orders.clear()
    monkeypatch.setattr(runner_module, "SweepProcess", FakeSweep)
    return FakeSweep.orders


ORDER = sweeps.SweepOrder(sweep=sweeps.Sweep(recipes=("a.toml",)), folder="/w", out="/out", trusted_sha256=("cd34",))


def job(recipe, **values):
    return sweeps.SweepJob(job="1", recipe_path="a.toml", axes={}, recipe=recipe, **{"folder": "/w", **values})


def test_a_sweep_runs_with_the_trust_of_the_user_only_and_a_refusal_says_how_it_is_given(runner, swept):
    told = []
    runner.begin(told.append)
    ended = runner.sweep(ORDER, lambda event: None)
    assert [order.trusted_sha256 for order in swept] == [()]
    assert "ace-studio trust --add /w/net.py" in ended.report.rows[0].error.remedy
    assert [(one.phase, one.detail) for one in told][-1] == (Phase.LOWER, "job 1")


def test_what_a_trusted_folder_holds_is_swept_in_a_second_go(runner, swept, store, tmp_path):
    store.trust_folder(tmp_path)
    runner.begin(lambda event: None)
    ended = runner.sweep(replace(ORDER, folder=str(tmp_path)), lambda event: None)
    assert [order.trusted_sha256 for order in swept] == [(), ("ab12",)]
    assert ended.report.rows[0].status is sweeps.RowStatus.DONE


def test_a_sweep_that_was_cancelled_before_it_began_is_stopped(runner, swept):
    runner.begin(lambda event: None)
    runner.cancel()
    runner.sweep(ORDER, lambda event: None)
    assert swept[1] == "stopped"


def test_a_sweep_may_name_only_hosts_that_the_user_allowed(runner, swept):
    jobs = [job(Recipe(engine=EngineChoice(host=host))) for host in ("", "box")]
    ended = runner.sweep(ORDER, lambda event: None, jobs=jobs)
    assert ended.report is None and "mcp --host box" in ended.problems[0].remedy and not swept


def test_work_in_this_process_tells_its_progress_and_ends_when_it_is_cancelled(runner):
    told = []
    runner.begin(told.append)
    event = Progress(phase=Phase.MEASURE, detail="round 1 of 5")
    runner.told(event)
    runner.allow("")
    assert told == [event]
    with pytest.raises(AceError, match="another machine, box"):
        runner.allow("box")
    runner.cancel()
    with pytest.raises(AceError, match="was cancelled"):
        runner.told(event)


SECRETS = [
    {"model": ModelChoice(source="../.ssh/id_rsa")},
    {"model": ModelChoice(source="net.py", weights="../.ssh/id_rsa")},
    {"model": ModelChoice(source="net.py", entry="../.ssh/id_rsa:make")},
    {"inputs": InputsChoice(tracing="../.ssh/")},
    {"inputs": InputsChoice(caught="link/id_rsa")},
    {"calibration": CalibrationChoice(inputs="link/id_rsa.npz")},
    {"evaluate": EvaluateChoice(data="../.ssh/x.npz")},
]


@pytest.fixture
def acting(tmp_path):
    """Acts for an agent that may use the folder ``work``, which has a link to a secret."""
    (tmp_path / "work").mkdir()
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / ".ssh")
    token = present.set(Roots(read=((tmp_path / "work").resolve(),)))
    yield tmp_path / "work"
    present.reset(token)


@pytest.mark.parametrize("values", SECRETS, ids=str)
def test_no_path_in_a_recipe_leads_out_of_the_roots(runner, engine, swept, acting, values):
    recipe = Recipe(**{"model": ModelChoice(source="net.py"), **values})
    (event,) = runner.run(TraceRequest(job="trace", recipe=recipe, folder=str(acting)))
    assert "mcp --read DIR" in event.problems[0].remedy and not engine.requests
    ended = runner.sweep(ORDER, lambda event: None, jobs=[job(recipe, folder=str(acting))])
    assert "mcp --read DIR" in ended.problems[0].remedy and not swept


def test_files_that_are_asked_for_by_a_request_or_a_pattern_are_judged_too(runner, engine, swept, acting, tmp_path):
    (tmp_path / ".ssh" / "id_rsa").write_text("secret")
    sound = Recipe(model=ModelChoice(source="net.py"))
    for request in (
        InspectRequest(job="inspect", path=str(acting / "link" / "id_rsa")),
        FixRequest(job="fix", recipe=sound, folder=str(acting), file=str(tmp_path / ".ssh" / "id_rsa"), line=1),
    ):
        (event,) = runner.run(request)
        assert event.problems[0].code is ErrorCode.UNTRUSTED and not engine.requests
    assert runner.sweep(ORDER, lambda event: None, jobs=[job(sound, folder=str(acting), files=("../.ssh/*",))]).problems
    named = Recipe(model=ModelChoice(source="timm:resnet18"))
    assert isinstance(next(runner.run(TraceRequest(job="t", recipe=named, folder="/", trust_all=True))), JobFailed)
    assert engine.requests, "a model of a package is no path"
