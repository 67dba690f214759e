"""Builds that other processes make: real processes, real targets, tiny models."""

import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.pipeline.builders import Builders, BuildJob, Wanted, builders
from ace_studio.engine.pipeline.compress import building
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.stages import run_stages
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import CaptureChoice, MeasureChoice, Recipe, TargetsChoice
from ace_studio.records.results import RunStatus
from tests import tiny_models
from tests.engine.targets.conftest import make_job

RECIPE = Recipe(capture=CaptureChoice(rungs=("export",), cache=False))


@pytest.fixture(scope="module")
def captured() -> CapturedModel:
    """Keyword arguments, a nested dictionary, integer inputs."""
    tiny = tiny_models.text_model()
    loaded = LoadedModel(module=tiny.module, source=Path(), sha256="")
    examples = [Example.of(example) for example in tiny.examples]
    found, _ = capture_model(loaded, examples, RECIPE, device=torch.device("cpu"), reporter=Reporter())
    assert isinstance(found, CapturedModel)
    return found


def wanted(captured: CapturedModel, target: str, precision: Precision) -> Wanted:
    row = TARGETS[target]
    return Wanted(row, bind_plan(Plan(default=precision), captured.table, op_problem=row.op_problem))


def job(captured: CapturedModel, folder: Path, reporter: Reporter | None = None) -> BuildJob:
    return BuildJob(
        captured=captured,
        calibration=lambda: list(captured.examples),
        threads=1,
        ranges=RangeChoice(),
        folder=folder / "builds",
        reporter=reporter or Reporter(),
        weight_bytes=1000,
    )


def until(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def children(folder: Path) -> list[psutil.Process]:
    """The processes that build for the job with this folder."""
    running = [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in running if str(folder) in " ".join(one.cmdline())]


@pytest.fixture(scope="module")
def made(captured, tmp_path_factory):
    """Three builds of one process: a float one, an 8-bit one, and one that the target refuses."""
    folder = tmp_path_factory.mktemp("made")
    asked = [
        wanted(captured, "eager", Precision.BF16),
        wanted(captured, "onnxruntime", Precision.INT8_STATIC),
        wanted(captured, "eager", Precision.FP32),
    ]
    broken = Wanted(asked[1].target, bind_plan(Plan(default=Precision.FP16), captured.table, op_problem=lambda *_: ""))
    found = Builders(job(captured, folder), most=1)
    found.expect([*asked, broken])
    until(lambda: found.waiting == 0)
    yield found, asked, broken, folder
    found.close()
    assert not children(folder)
    assert not (folder / "builds").exists()


@pytest.mark.parametrize("at", [0, 1])
def test_it_is_what_this_process_would_have_built(made, captured, tmp_path, at):
    found, asked, _, _ = made
    lowered, built = found.take(asked[at])
    target = asked[at].target
    here = target.lower(make_job(captured, asked[at].plan, tmp_path))
    for example in captured.examples:
        with torch.no_grad():
            torch.testing.assert_close(example.copied().call(lowered), example.copied().call(here), rtol=0, atol=0)
    assert [(one.op_id, one.actual, one.reason) for one in lowered.read_back()] == [
        (one.op_id, one.actual, one.reason) for one in here.read_back()
    ]
    assert lowered.runs_in_torch is here.runs_in_torch
    assert built.seconds > 0
    folder = tmp_path / "kept"
    folder.mkdir()
    path = lowered.save(folder)
    assert path.parent == folder
    flat = target.load(path, threads=1)(*captured.example.tensors())
    assert torch.isfinite(next(iter(flat))).all()
    assert found.take(asked[at]) is None, "a build is taken once"


def test_what_the_target_refuses_is_the_error_of_the_target(made):
    found, _, broken, _ = made
    with pytest.raises(AceError) as caught:
        found.take(broken)
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
    assert "fp16" in caught.value.problem.as_text()


def test_nothing_runs_beside_a_measurement(made):
    found, _, _, folder = made
    (child,) = children(folder)
    with found.paused():
        until(lambda: child.status() == psutil.STATUS_STOPPED)
    until(lambda: child.status() != psutil.STATUS_STOPPED)


def test_what_a_lost_process_had_begun_is_built_here_and_what_it_built_says_nothing_more(captured, tmp_path):
    asked = [wanted(captured, "eager", precision) for precision in (Precision.FP32, Precision.INT8_WEIGHT)]
    found = Builders(job(captured, tmp_path), most=1)
    try:
        found.expect(asked)
        until(lambda: found.waiting == 0)
        lowered, _ = found.take(asked[1])
        (child,) = children(tmp_path)
        child.kill()
        assert lowered.read_back() == []
        found.expect([asked[1]])
        until(lambda: found.waiting == 0)
        assert found.take(asked[1]) is None
    finally:
        found.close()


def test_a_stop_ends_the_wait_for_a_build(captured, tmp_path):
    is_asked = False
    reporter = Reporter(is_cancelled=lambda: is_asked)
    found = Builders(job(captured, tmp_path, reporter), most=1)
    asked = [wanted(captured, "onnxruntime", precision) for precision in (Precision.FP32, Precision.INT8_STATIC)]
    try:
        found.expect(asked)
        until(lambda: found.waiting < 2)
        with found.paused():
            is_asked = True
            with pytest.raises(Cancelled):
                found.take(asked[1])
    finally:
        found.close()
    assert not children(tmp_path)


# --- whether there are processes at all ---


def many(captured: CapturedModel, count: int) -> list[Wanted]:
    plans = [Plan(default=Precision.FP32, rest=rest) for rest in (None, Precision.BF16, Precision.FP16)]
    rows = [TARGETS[name] for name in ("eager", "onnxruntime", "openvino", "inductor")]
    pairs = [(row, plan) for row in rows for plan in plans][:count]
    return [Wanted(row, bind_plan(plan, captured.table, op_problem=lambda *_: "")) for row, plan in pairs]


class Large:
    """A table of so many ops; nothing else of a graph decides."""

    def __init__(self, ops: int) -> None:
        self.ops = ops

    def op_rows(self):
        return iter(range(self.ops))


@pytest.mark.parametrize(
    ("ops", "builds", "cores", "free_bytes", "expected"),
    [
        (10, 8, 8, 64e9, 0),  # opening the libraries elsewhere takes longer than all of it
        (300, 1, 8, 64e9, 0),
        (300, 8, 1, 64e9, 0),
        (300, 8, 2, 64e9, 1),
        (300, 8, 8, 64e9, 4),
        (300, 8, 8, 7e9, 2),
        (300, 8, 8, 2e9, 0),
    ],
)
def test_processes_follow_from_work_cores_and_memory(
    captured, tmp_path, monkeypatch, ops, builds, cores, free_bytes, expected
):
    started = []
    monkeypatch.setattr(Builders, "_start", lambda _, processes: started.append(processes))
    monkeypatch.setattr(builders.measure, "resolve_threads", lambda _: cores)
    monkeypatch.setattr(builders.psutil, "virtual_memory", lambda: SimpleNamespace(available=free_bytes))
    large = SimpleNamespace(table=Large(ops))
    found = Builders(job(large, tmp_path))
    found.expect(many(captured, builds))
    assert (started or [0]) == [expected]


# --- in a job ---


@pytest.mark.slow
def test_a_job_with_another_process_gives_the_same_runs(tmp_path, monkeypatch):
    taken = []
    first_take = Builders.take

    def take(self, one):
        until(lambda: self.waiting <= 1)  # the other process has begun all but the first
        found = first_take(self, one)
        taken.append((one.target.name, found is not None))
        return found

    monkeypatch.setattr(Builders, "_worth", lambda *_: 1)
    monkeypatch.setattr(Builders, "take", take)
    torch.manual_seed(0)
    tiny = tiny_models.conv_net()
    loaded = LoadedModel(module=tiny.module, source=tmp_path, sha256="")
    recipe = Recipe(
        capture=RECIPE.capture,
        plan=Plan(default=Precision.INT8_STATIC),
        targets=TargetsChoice(names=("onnxruntime", "openvino")),
        measure=MeasureChoice(rounds=3, profile=False),
    )
    with torch.no_grad():
        captured, report = capture_model(
            loaded, [Example.of(one) for one in tiny.examples], recipe, device=torch.device("cpu"), reporter=Reporter()
        )
        outcome = run_stages(
            CompressionJob.of(loaded, captured, report, recipe=recipe, output=tmp_path, reporter=Reporter())
        )
    assert ("openvino", True) in taken
    assert [run.status for run in outcome.result.runs] == [RunStatus.OK, RunStatus.OK]
    assert all(run.verified and run.ops and run.latency_ms and run.build_seconds for run in outcome.result.runs)
    assert all((tmp_path / run.artifact).exists() for run in outcome.result.runs)
    assert not (tmp_path / ".builds").exists()
    assert not children(tmp_path)


def test_a_changed_capture_is_built_here(monkeypatch):
    expected = []
    job = SimpleNamespace(
        builders=SimpleNamespace(expect=expected.append),
        recipe=SimpleNamespace(improve=SimpleNamespace(methods=("equalize",))),
    )
    building.expect_builds(job, [(TARGETS["onnxruntime"], Plan(default=Precision.INT8_STATIC))])
    assert not expected
